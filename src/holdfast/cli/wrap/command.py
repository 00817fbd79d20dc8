"""`holdfast wrap`: put a gateway in front of the servers that a client already has."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import Json
from holdfast.cli.screen import show, show_json, text


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
    from holdfast.cli.wrap.screen import tell
    from holdfast.cli.wrap.work import Order, already, work

    trail = Trail(file.absolute())
    if undo:
        done = trail.undo().value
    elif (said := already(trail, project)) is not None:
        done = said
    else:
        order = Order(trail, out.absolute(), project, serve.value, apply=apply, connect=not no_connect)
        result = work(order)
        if as_json:
            show_json(result.json())
        else:
            tell(result)
        if apply and not result.applied:
            from holdfast.cli.exits import Exit

            raise typer.Exit(Exit.FAILED)
        return
    if as_json:
        show_json({"file": str(trail.file), "done": done})
    else:
        show(text((done, "bold green"), f"  {file}"))
