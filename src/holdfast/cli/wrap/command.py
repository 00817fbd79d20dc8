"""`holdfast wrap`: put a gateway in front of the servers that a client already has."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.options import Json
from holdfast.cli.screen import show, show_json, text
from holdfast.model.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.cli.wrap.work import Order


class Served(StrEnum):
    STDIO = "stdio"
    HTTP = "http"


def add(app: typer.Typer) -> None:
    app.command()(wrap)


def wrap(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The client's own file.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where holdfast.yaml, overlays and lock go.")
    ] = Path(),
    apply: Annotated[bool, typer.Option("--apply", help="Change FILE; a copy is kept beside it.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take back what --apply did to FILE.")] = False,
    project: Annotated[
        str | None, typer.Option("--project", metavar="DIR", help="Which project of ~/.claude.json.")
    ] = None,
    no_connect: Annotated[
        bool, typer.Option("--no-connect", help="Start no server; nothing is learnt of its tools.")
    ] = False,
    serve: Annotated[
        Served, typer.Option("--serve", help="How the client will reach Holdfast.")
    ] = Served.STDIO,
    as_json: Json = False,
) -> None:
    """Wrap the MCP servers of a client's file; FILE itself is changed with --apply only."""
    from holdfast.cli.wrap.applied import Trail
    from holdfast.cli.wrap.work import Order, already

    trail = Trail(file.absolute())
    try:
        if undo:
            _say(file, trail.undo().value, as_json)
        elif (said := already(trail, project)) is not None:
            _say(file, said, as_json)
        else:
            _wrap(
                Order(trail, out.absolute(), project, serve.value, apply=apply, connect=not no_connect),
                as_json,
            )
    except OSError as error:
        what = (error.strerror or str(error)).lower()
        raise HoldfastError(f"cannot read or write {str(error.filename)!r}: {what}") from None


def _wrap(order: "Order", as_json: bool) -> None:
    from holdfast.cli.wrap.screen import tell
    from holdfast.cli.wrap.work import work

    result = work(order)
    if as_json:
        show_json(result.json())
    else:
        tell(result)
    if order.apply and not result.applied:
        raise typer.Exit(Exit.FAILED)


def _say(file: Path, done: str, as_json: bool) -> None:
    if as_json:
        show_json({"file": str(file.absolute()), "done": done})
    else:
        show(text((done, "bold green"), f"  {file}"))
