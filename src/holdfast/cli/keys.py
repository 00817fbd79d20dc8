"""`holdfast keys`: make API keys, list them, take them back, and hash approver secrets."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.listed import Listed
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json, Note
from holdfast.cli.screen import fail, show, show_json, table, text
from holdfast.cli.session import decider, with_gateway
from holdfast.model.errors import ConfigError

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.model.access import AccessKey

ONCE = "# this is shown once: hand it over now."


def add(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=Listed, help="Make API keys, take them back, and hash secrets.", no_args_is_help=True
    )
    group.command()(create)
    group.command("list")(list_)
    group.command()(revoke)
    group.command("hash")(hash_)
    app.add_typer(group, name="keys")


def create(
    user: Annotated[str, typer.Option("--user", help="The person whose key it is.", show_default=False)],
    agent: Annotated[str | None, typer.Option("--agent", help="The agent that will hold it.")] = None,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="Narrow it to this; may be given several times.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", help="When it ends: 30d, or an ISO time with its zone.")
    ] = None,
    for_config: Annotated[
        bool, typer.Option("--for-config", help="Print an entry for 'auth.keys' instead of storing the key.")
    ] = False,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Make an API key; it is printed once, stored hashed, and works at once in every process."""
    if for_config:
        _print_entry(user, agent, scope, expires, config, as_json)
        return
    plain, key = with_gateway(config, lambda gateway: _created(gateway, user, agent, scope, expires, as_))
    if as_json:
        show_json({"key": plain, **shown(key)})
        return
    typer.echo(plain)
    typer.echo(f"{ONCE} it is called {key.id}", err=True)


def list_(as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """List keys, never the keys themselves."""
    found = with_gateway(config, lambda gateway: gateway.keys.list(decider(gateway, as_)))
    if as_json:
        show_json({"keys": [shown(key) for key in found]})
    elif found:
        show(table(("key", "person", "agent", "scopes", "made by", "expires", "state"), map(_row, found)))
    else:
        show(text("there are no keys; 'holdfast keys create' makes one"))


def revoke(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="The key's id; or token:JTI for a token.", show_default=False)
    ],
    note: Note = "",
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Take a key or a token back, at once in every process; also a key of the configuration."""
    gone = with_gateway(config, lambda gateway: gateway.keys.revoke(decider(gateway, as_), name, note))
    show(text(("revoked", "bold red"), f"  {gone}"))


def hash_() -> None:
    """Hash an approver secret, for auth.people.NAME.approver_secret."""
    from holdfast.identity.keys import hash_chosen

    secret = typer.prompt("secret", hide_input=True, confirmation_prompt=True, err=True)
    typer.echo(hash_chosen(secret))


async def _created(
    gateway: "Gateway",
    user: str,
    agent: str | None,
    scopes: list[str] | None,
    expires: str | None,
    as_: str | None,
) -> "tuple[str, AccessKey]":
    """By an operator; the first key of all by whoever can read the store here."""
    import getpass
    from math import inf

    from holdfast.cli.lasting import end

    until = inf if expires is None else end(expires, gateway.identity.now())
    keys = gateway.keys
    if gateway.config.auth.mode == "local":
        typer.echo("# auth.mode is 'local': keys count once it is 'api_key' or 'jwt'", err=True)
    elif as_ is None and not os.environ.get("HOLDFAST_API_KEY") and not os.environ.get("HOLDFAST_TOKEN"):
        by = f"terminal:{getpass.getuser()}"
        return await keys.create_first(by, user, agent=agent, scopes=scopes or None, expires_at=until)
    return await keys.create(
        decider(gateway, as_), user, agent=agent, scopes=scopes or None, expires_at=until
    )


def shown(key: "AccessKey") -> dict[str, object]:
    """Everything but the hash."""
    from math import inf

    from holdfast.model.moment import iso

    return {
        "id": key.id,
        "person": key.person,
        "agent": key.agent,
        "scopes": None if key.scopes is None else list(key.scopes),
        "made_by": key.made_by,
        "expires_at": None if key.expires_at == inf else iso(key.expires_at),
        "revoked_at": None if key.ended_at is None else iso(key.ended_at),
        "revoked_by": key.ended_by,
    }


def _row(key: "AccessKey") -> tuple[str, ...]:
    from math import inf

    from holdfast.cli.shown import moment

    ends = "never" if key.expires_at == inf else moment(key.expires_at)
    scopes = "all of theirs" if key.scopes is None else ", ".join(key.scopes)
    state = "holds" if key.ended_at is None else f"revoked by {key.ended_by}"
    return key.id, key.person, key.agent or "", scopes, key.made_by, ends, state


# --- for the configuration ----------------------------------------------------------------


def _print_entry(
    user: str, agent: str | None, scopes: list[str] | None, expires: str | None, config: object, as_json: bool
) -> None:
    """The key to hand over, and what to put under `auth.keys`."""
    import time

    import yaml

    from holdfast.cli.lasting import end
    from holdfast.identity import mint
    from holdfast.model.moment import iso

    _check_names(config, user, agent)
    plain, entry = mint(user, agent)
    narrowed = {"scopes": scopes} if scopes else {}
    ending = {"expires": iso(end(expires, time.time()))} if expires else {}
    whole = {**entry, **narrowed, **ending}
    _record(config, entry)
    if as_json:
        show_json({"key": plain, "entry": whole})
        return
    typer.echo(f"{plain}\n")
    typer.echo(f"{ONCE} add under auth.keys:", err=True)
    typer.echo(yaml.safe_dump([whole], sort_keys=False, width=200).rstrip())


def _record(config: object, entry: dict[str, str]) -> None:
    """Where there is a log, that a key was made belongs into it."""
    import asyncio
    import getpass

    from holdfast.config import load
    from holdfast.gateway.logfile import note_issued

    try:
        known = load(str(config))
    except ConfigError:
        return
    asyncio.run(note_issued(known, getpass.getuser(), entry))


def _check_names(config: object, user: str, agent: str | None) -> None:
    """Only a hint: such a key is often made before the configuration is right."""
    from holdfast.config import load

    try:
        auth = load(str(config)).auth
    except ConfigError:
        return
    if user not in auth.people:
        fail(f"there is no person {user!r} in {config}; add them under 'auth.people' before you use this key")
    if agent is not None and agent not in auth.agents:
        fail(f"there is no agent {agent!r} in {config}; add it under 'auth.agents' before you use this key")
