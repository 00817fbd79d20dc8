"""`holdfast sessions`: what upstreams keep open for callers, and how it is ended or taken back."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.listed import Listed
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json, Note
from holdfast.cli.screen import show, show_json, table, text
from holdfast.cli.session import caller, decider, with_gateway

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.gateway.upstream_sessions import ShownSession, Undone
    from holdfast.model.upstream_session import UpstreamSession

sessions = typer.Typer(
    cls=Listed, name="sessions", help="Sessions that upstreams keep open for callers.", no_args_is_help=True
)

SessionId = Annotated[
    str,
    typer.Argument(metavar="SESSION", help="The session, as 'sessions list' names it.", show_default=False),
]
Outcome = Annotated[
    str, typer.Argument(metavar="committed|rolled-back", help="How it ended.", show_default=False)
]

STYLES = {
    "OPEN": "bold cyan",
    "COMMITTING": "bold cyan",
    "COMMITTED": "bold green",
    "ROLLING_BACK": "bold yellow",
    "ROLLED_BACK": "yellow",
    "UNKNOWN": "bold red",
    "UNDONE": "yellow",
}


def add(app: typer.Typer) -> None:
    app.add_typer(sessions)


@sessions.command("list")
def list_(as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """List sessions, newest first: everybody's for operators, else one's own."""
    from holdfast.gateway.session_shown import told

    async def listed(gateway: "Gateway") -> "list[UpstreamSession]":
        return list(await gateway.upstream_sessions.list(caller(gateway, as_)))

    found = with_gateway(config, listed)
    if as_json:
        show_json({"sessions": [told(one) for one in found]})
    elif not found:
        show(text("no session was begun; a tool whose contract says 'session' with role 'begin' begins one"))
    else:
        rows = [
            (
                one.id,
                f"{one.namespace}/{one.name}",
                (one.state.value, STYLES[one.state]),
                one.principal,
                one.why,
            )
            for one in found
        ]
        show(table(("session", "of", "state", "begun by", ""), rows))


@sessions.command("show")
def show_(
    session_id: SessionId, as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False
) -> None:
    """Show a session and what was done in it."""

    async def looked(gateway: "Gateway") -> "ShownSession":
        return await gateway.upstream_sessions.look(caller(gateway, as_), session_id)

    _told(with_gateway(config, looked), as_json)


@sessions.command("rollback")
def rollback(
    session_id: SessionId, as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False
) -> None:
    """Roll a session back in the name of whoever began it: nothing of it is left."""

    async def ended(gateway: "Gateway") -> "ShownSession":
        by = caller(gateway, as_)
        await gateway.upstream_sessions.end(by, session_id)
        return await gateway.upstream_sessions.look(by, session_id)

    shown = with_gateway(config, ended)
    _told(shown, as_json)
    raise typer.Exit(Exit.DONE if shown.session.state == "ROLLED_BACK" else Exit.FAILED)


@sessions.command("undo")
def undo(
    session_id: SessionId,
    partial: Annotated[
        bool, typer.Option("--partial", help="Also where some of its steps cannot be taken back.")
    ] = False,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Take back what was committed in a session, from the last step to the first.

    Each is a call of its own; where one waits for approval or fails, the next 'undo' goes on from there.
    """
    from holdfast.gateway.session_shown import told_undone

    async def undone(gateway: "Gateway") -> "tuple[UpstreamSession, list[Undone]]":
        now, done = await gateway.upstream_sessions.undo(caller(gateway, as_), session_id, partial=partial)
        return now, list(done)

    now, done = with_gateway(config, undone)
    if as_json:
        show_json(told_undone(now, done))
    else:
        for one in done:
            said = one.seen.message or ""
            show(
                text(
                    (f"  {one.seen.status.value:<8}", "bold"), f" {one.line.tool} by {one.seen.tool}  {said}"
                )
            )
        show(text((now.state.value, STYLES[now.state]), f"  {now.id}  {now.why}"))
    raise typer.Exit(Exit.DONE if now.state == "UNDONE" else Exit.FAILED)


@sessions.command("settle")
def settle(
    session_id: SessionId,
    outcome: Outcome,
    note: Note = "",
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Say how a session ended of which nobody knows that; for operators, on record."""
    from holdfast.model.upstream_session import SessionState

    known = {"committed": SessionState.COMMITTED, "rolled-back": SessionState.ROLLED_BACK}
    if outcome not in known:
        raise typer.BadParameter(f"{outcome!r} is no end of a session; say 'committed' or 'rolled-back'")

    async def settled(gateway: "Gateway") -> "ShownSession":
        by = decider(gateway, as_)
        await gateway.upstream_sessions.settle(by, session_id, known[outcome], note)
        return await gateway.upstream_sessions.look(by, session_id)

    _told(with_gateway(config, settled), as_json)


def _told(shown: "ShownSession", as_json: bool) -> None:
    from holdfast.cli.shown import moment
    from holdfast.gateway.session_shown import told_shown

    if as_json:
        show_json(told_shown(shown))
        return
    session = shown.session
    about = f"  {session.id}  {session.namespace}/{session.name}"
    show(text((session.state.value, STYLES[session.state]), about, (f"  {session.principal}", "dim")))
    if session.why:
        show(text((f"  {session.why}", "dim")))
    for line in shown.lines:
        undo = "" if line.compensation is None else f"  undone by {line.compensation['tool']}"
        show(text((f"  {moment(line.at)}  ", "dim"), f"{line.tool}  {line.call_id}", (undo, "dim")))
