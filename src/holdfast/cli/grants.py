"""`holdfast grants`, `elevate`: scopes that somebody holds for a while."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.invoked import command, with_config
from holdfast.cli.listed import Listed
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json, Note
from holdfast.cli.screen import show, show_json, table, text
from holdfast.cli.session import caller, decider, with_gateway

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.gateway.grants import Elevation
    from holdfast.model.access import AccessGrant

For = Annotated[str, typer.Option("--for", metavar="LIFE", help="How long: 90s, 30m, 1h, 30d.")]
Scope = Annotated[
    str,
    typer.Argument(metavar="SCOPE", help="A scope or pattern: orders:read, orders:*.", show_default=False),
]


def add(app: typer.Typer) -> None:
    group = typer.Typer(cls=Listed, help="Give scopes for a while, and take them back.", no_args_is_help=True)
    group.command()(give)
    group.command("list")(list_)
    group.command()(revoke)
    app.add_typer(group, name="grants")
    app.command()(elevate)


def give(
    person: Annotated[str, typer.Argument(metavar="PERSON", help="Who gets it.", show_default=False)],
    scope: Scope,
    life: For = "1h",
    agent: Annotated[str | None, typer.Option("--agent", help="Only this agent of theirs.")] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Renew it before it ends, as long as you may give it.")
    ] = False,
    note: Note = "",
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Let somebody hold a scope for a while, within what their agents and keys are limited to."""
    from holdfast.cli.lasting import life as lasting

    async def given(gateway: "Gateway") -> "AccessGrant":
        by = decider(gateway, as_)
        how = {"agent": agent, "life_s": lasting(life), "note": note, "renew": renew}
        return await gateway.grants.give(by, person, scope, **how)  # type: ignore[arg-type]

    grant = with_gateway(config, given)
    if as_json:
        from holdfast.servers.grants import shown

        show_json(shown(grant))
        return
    again = f"{command()} grants revoke {grant.id}{f' --as {as_}' if as_ else ''}{with_config(config)}"
    show(
        text(("granted", "bold green"), f"  {grant.id}  {grant.scope} to {_whom(grant)} for {life}"),
        text(("  take it back: ", "dim"), again),
    )


def list_(as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """List grants: everybody's for an operator, else one's own."""
    from holdfast.servers.grants import shown, state_of

    async def listed(gateway: "Gateway") -> "list[tuple[AccessGrant, str]]":
        now = gateway.identity.now()
        return [(one, state_of(one, now)) for one in await gateway.grants.list(decider(gateway, as_))]

    found = with_gateway(config, listed)
    if as_json:
        show_json({"grants": [{**shown(grant), "state": state} for grant, state in found]})
    elif found:
        rows = [(g.id, _whom(g), g.scope, g.granted_by, _until(g), state) for g, state in found]
        show(table(("grant", "to", "scope", "given by", "until", "state"), rows))
    else:
        show(text("nobody holds a grant; 'holdfast grants give' gives one"))


def revoke(
    id: Annotated[
        str, typer.Argument(metavar="ID", help="The grant, as 'grants list' shows it.", show_default=False)
    ],
    note: Note = "",
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Take a grant back, at once in every process."""
    gone = with_gateway(config, lambda gateway: gateway.grants.revoke(decider(gateway, as_), id, note))
    show(text(("revoked", "bold red"), f"  {gone.id}  {gone.scope} of {_whom(gone)}"))


def elevate(
    scope: Scope,
    reason: Annotated[str, typer.Option("--reason", help="Why; people decide by it.", show_default=False)],
    life: For = "1h",
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Ask for a scope you do not hold; it is held for a while once somebody has approved it."""
    from holdfast.cli.lasting import life as lasting

    async def asked(gateway: "Gateway") -> "Elevation":
        return await gateway.grants.elevate(caller(gateway, as_), scope, reason, lasting(life))

    found = with_gateway(config, asked)
    if as_json:
        from holdfast.servers.grants import asked_for

        show_json(asked_for(found))
    else:
        show(
            text(("held", "bold yellow"), f"  {found.approval.id}  {found.message}"),
            text(
                ("  approve: ", "dim"),
                f"{command()} approve {found.approval.id} --as NAME{with_config(config)}",
            ),
        )
    raise typer.Exit(Exit.HELD)


def _whom(grant: "AccessGrant") -> str:
    return grant.person if grant.agent is None else f"{grant.person}/{grant.agent}"


def _until(grant: "AccessGrant") -> str:
    from holdfast.cli.shown import moment

    return "" if grant.waits else moment(grant.expires_at) + (", renewed" if grant.renewed else "")
