"""`holdfast approvals`, `approve`, `deny`: what waits for a person, and what they say."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.invoked import command, with_config
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json, Note
from holdfast.cli.screen import show, show_json, text
from holdfast.cli.session import decider, with_gateway
from holdfast.cli.shown import show_approval
from holdfast.model.approval import Answer, Approval

Id = Annotated[
    str,
    typer.Argument(metavar="ID", help="The approval, as 'holdfast approvals' shows it.", show_default=False),
]


def add(app: typer.Typer) -> None:
    app.command()(approvals)
    app.command()(approve)
    app.command()(deny)


def approvals(as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """List what waits for a person to say yes."""
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
    id: Id, as_: As = None, note: Note = "", config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False
) -> None:
    """Say yes to one call, exactly as it was asked for."""
    _decide(id, True, as_, note, config, as_json)


def deny(
    id: Id, as_: As = None, note: Note = "", config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False
) -> None:
    """Say no; the call's key stays denied."""
    _decide(id, False, as_, note, config, as_json)


def _decide(id: str, yes: bool, name: str | None, note: str, config: Path, as_json: bool) -> None:
    asked = with_gateway(config, lambda gateway: gateway.decide(decider(gateway, name), id, yes, note))
    if as_json:
        from holdfast.servers.operate import shown

        show_json(shown(asked))
        return
    _show_answer(asked)


def _show_answer(asked: Approval) -> None:
    match asked.answer:
        case Answer.APPROVED:
            show(text(("approved", "bold green"), f"  {asked.id}  {asked.ref.tool}"))
            show(text(("  next: ", "dim"), f"{asked.ref.principal} calls again with key {asked.ref.key!r}"))
        case Answer.PENDING:
            missing = ", ".join(f"{count} x {role}" for role, count in asked.missing.items())
            show(text(("noted", "bold yellow"), f"  {asked.id}  still waits for {missing}"))
        case _:
            show(text(("denied", "bold red"), f"  {asked.id}  {asked.ref.tool}; its key stays denied"))
