"""`holdfast delegate`: hand on what you hold to an agent, for a while."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.invoked import command, with_config
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json
from holdfast.cli.screen import fail, show_json
from holdfast.cli.session import caller, credential, with_gateway

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.gateway.delegation import Issued
    from holdfast.identity.delegation import Wish


def add(app: typer.Typer) -> None:
    app.command()(delegate)


def delegate(
    agent: Annotated[
        str | None, typer.Option("--agent", help="Who gets it; yourself when left out, if you are an agent.")
    ] = None,
    scopes: Annotated[
        list[str] | None, typer.Option("--scope", help="A scope or pattern; repeat it for more.")
    ] = None,
    tools: Annotated[
        list[str] | None, typer.Option("--tool", help="Only these tools: shop.refund, 'shop.*'.")
    ] = None,
    resources: Annotated[
        list[str] | None, typer.Option("--resource", help="Only these: orders/o-1, 'orders/*'.")
    ] = None,
    life: Annotated[
        str | None, typer.Option("--for", metavar="LIFE", help="How long: 90s, 30m, 1h; 1h when left out.")
    ] = None,
    narrow: Annotated[bool, typer.Option("--narrow", help="Less than asked for will do.")] = False,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Print a token for an agent, with no more than you hold: everything you hold, unless you say less."""
    from holdfast.cli.lasting import life as lasting
    from holdfast.gateway.delegation import told
    from holdfast.identity.delegation import Wider, Wish

    wish = Wish(
        agent=agent,
        scopes=_patterns(scopes),
        tools=_patterns(tools),
        resources=_patterns(resources),
        life_s=None if life is None else lasting(life),
        narrow=narrow,
    )
    try:
        issued = with_gateway(config, lambda gateway: _issued(gateway, as_, wish))
    except Wider as error:
        fail(str(error))
        typer.echo(f"# --narrow would give: {_told(told(error.given))}", err=True)
        raise typer.Exit(Exit.REFUSED) from None
    if as_json:
        show_json({"access_token": issued.token, "expires_in": issued.life_s, **told(issued.given)})
        return
    typer.echo(issued.token)
    given = issued.given
    typer.echo(f"# {' <- '.join((*given.act, given.user))} until {told(given)['until']}", err=True)
    again = f"{command()} keys revoke token:{issued.jti}{f' --as {as_}' if as_ else ''}{with_config(config)}"
    typer.echo(f"# take it back: {again}", err=True)


async def _issued(gateway: "Gateway", name: str | None, wish: "Wish") -> "Issued":
    from holdfast.gateway.delegation import Subject

    by, shown = caller(gateway, name), credential()
    local = gateway.identity.mode == "local"
    subject = Subject(by) if local or shown is None else await gateway.delegation.subject(shown)
    return await gateway.delegation.issue(by, subject, wish)


def _told(given: dict[str, Any]) -> str:
    """What narrows, in a line."""
    said = {name: given[name] for name in ("scopes", "tools", "resources") if given[name] is not None}
    return "; ".join(f"{name} {', '.join(held) or 'none'}" for name, held in said.items())


def _patterns(said: list[str] | None) -> frozenset[str] | None:
    return frozenset(said) if said else None
