"""`holdfast approvals`, `approve`, `deny`: what waits for a person, and what they say."""

import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import live
from holdfast.cli.exits import Exit
from holdfast.cli.invoked import command, with_config
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json, Note
from holdfast.cli.packets import show_packet
from holdfast.cli.screen import show, show_json, text
from holdfast.cli.session import decider, with_gateway
from holdfast.cli.shown import show_approval
from holdfast.model.approval import Answer, Approval
from holdfast.model.errors import NotFound
from holdfast.model.standing import PLAN, RULE

if TYPE_CHECKING:
    from holdfast.gateway import Gateway

_OF_RUN = re.compile(r"(run_[0-9a-f]{24})\.")
"""The key of a step is made of its run's name: nobody calls again with that one."""

Id = Annotated[
    str,
    typer.Argument(metavar="ID", help="The approval, as 'holdfast approvals' shows it.", show_default=False),
]
OneId = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="Show this one in full.", show_default=False)
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not show the packet and ask first.")]
Once = Annotated[bool, typer.Option("--once", help="Print the list and end, at a terminal too.")]


def add(app: typer.Typer) -> None:
    app.command()(approvals)
    app.command()(approve)
    app.command()(deny)


def approvals(
    id: OneId = None,
    once: Once = False,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """List what waits for a person to say yes, or show one with everything known about it.

    At a terminal the list stays, follows what happens, and is answered by keys.
    """
    if id is not None:
        _show_one(id, as_, config, as_json)
        return
    if not (once or as_json) and live.is_possible():
        _answer_live(as_, config)
        return
    found = with_gateway(config, lambda gateway: gateway.approvals(decider(gateway, as_)))
    if as_json:
        from holdfast.servers.operate import shown

        show_json({"approvals": [shown(asked) for asked in found]})
        return
    for asked in found:
        show_approval(asked)
    if not found:
        show(text("nothing waits for you"))
    else:
        show(text(("answer with: ", "dim"), f"{command()} approve|deny ID --as NAME{with_config(config)}"))


def approve(
    id: Id,
    as_: As = None,
    note: Note = "",
    yes: Yes = False,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Say yes to one call, exactly as it was asked for; at a terminal it is shown first."""
    _decide(id, True, as_, note, config, as_json, ask=not (yes or as_json))


def deny(
    id: Id, as_: As = None, note: Note = "", config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False
) -> None:
    """Say no; the call's key stays denied."""
    _decide(id, False, as_, note, config, as_json, ask=False)


def _answer_live(name: str | None, config: Path) -> None:
    with suppress(KeyboardInterrupt):  # one way to leave
        with_gateway(config, lambda gateway: live.answer(gateway, decider(gateway, name)))


def _show_one(id: str, name: str | None, config: Path, as_json: bool) -> None:
    asked = with_gateway(config, lambda gateway: gateway.approval(decider(gateway, name), id))
    if asked is None:
        raise NotFound(f"no approval {id!r} is yours to see; give --as NAME of somebody who may")
    if as_json:
        from holdfast.servers.operate import shown

        show_json(shown(asked))
        return
    show_packet(asked)
    if asked.answer is Answer.PENDING:
        show(text(("answer with: ", "dim"), f"{command()} approve|deny {id} --as NAME{with_config(config)}"))


def _decide(
    id: str, yes: bool, name: str | None, note: str, config: Path, as_json: bool, *, ask: bool
) -> None:
    async def decided(gateway: "Gateway") -> Approval | None:
        by = decider(gateway, name)
        asked = await gateway.approval(by, id) if ask and sys.stdin.isatty() else None
        if asked is not None and asked.answer is Answer.PENDING:
            show_packet(asked)
            if not typer.confirm(f"approve as {by.user}?", default=False):
                return None
        return await gateway.decide(by, id, yes, note)

    answered = with_gateway(config, decided)
    if answered is None:
        show(text("nothing was decided; it still waits"))
        raise typer.Exit(Exit.REFUSED)
    if as_json:
        from holdfast.servers.operate import shown

        show_json(shown(answered))
        return
    _show_answer(answered)


def _show_answer(asked: Approval) -> None:
    match asked.answer:
        case Answer.APPROVED:
            show(text(("approved", "bold green"), f"  {asked.id}  {asked.ref.tool}"))
            then = f"{asked.ref.principal} calls again with key {asked.ref.key!r}"
            if asked.ref.tool in (PLAN, RULE):
                then = f"{asked.ref.key} stands now"
            elif (run := _OF_RUN.match(asked.ref.key)) is not None:
                then = "its run goes on where 'serve' runs, when it is started again with its own key, "
                then += f"or for an operator with: {command()} chain resume {run[1]}"
            elif asked.release == "gateway":
                then = f"the gateway runs it; its outcome is that of call {asked.call_id}"
            show(text(("  next: ", "dim"), then))
        case Answer.PENDING:
            missing = ", ".join(f"{count} x {role}" for role, count in asked.missing.items())
            show(text(("noted", "bold yellow"), f"  {asked.id}  still waits for {missing}"))
        case _:
            show(text(("denied", "bold red"), f"  {asked.id}  {asked.ref.tool}; its key stays denied"))
