"""`holdfast keys`: make API keys and hash approver secrets."""

from typing import Annotated

import typer

from holdfast.cli.options import DEFAULT_CONFIG, ConfigFile
from holdfast.cli.screen import fail
from holdfast.model.errors import ConfigError


def add(app: typer.Typer) -> None:
    group = typer.Typer(help="Make API keys and hash secrets.", no_args_is_help=True)
    group.command()(create)
    group.command("hash")(hash_)
    app.add_typer(group, name="keys")


def create(
    user: Annotated[str, typer.Option("--user", help="The person whose key it is.", show_default=False)],
    agent: Annotated[str | None, typer.Option("--agent", help="The agent that will hold it.")] = None,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Make an API key: the key to hand over, and the entry for the configuration."""
    import yaml

    from holdfast.identity import mint

    _check_names(config, user, agent)
    plain, entry = mint(user, agent)
    _record(config, entry)
    typer.echo(f"{plain}\n")
    typer.echo("# this is shown once: hand it over now. add under auth.keys:", err=True)
    typer.echo(yaml.safe_dump([entry], sort_keys=False, width=200).rstrip())


def hash_() -> None:
    """Hash an approver secret, for auth.people.NAME.approver_secret."""
    from holdfast.identity.keys import hash_chosen

    secret = typer.prompt("secret", hide_input=True, confirmation_prompt=True, err=True)
    typer.echo(hash_chosen(secret))


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
    """Only a hint: the first key is often made before the configuration is right."""
    from holdfast.config import load

    try:
        auth = load(str(config)).auth
    except ConfigError:
        return
    if user not in auth.people:
        fail(f"there is no person {user!r} in {config}; add them under 'auth.people' before you use this key")
    if agent is not None and agent not in auth.agents:
        fail(f"there is no agent {agent!r} in {config}; add it under 'auth.agents' before you use this key")
