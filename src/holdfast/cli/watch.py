"""`holdfast watch`: calls as they happen, one line each."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json
from holdfast.cli.screen import console, show, text
from holdfast.cli.session import caller, with_gateway
from holdfast.cli.shown import STYLES
from holdfast.cli.watching import Watching
from holdfast.model.errors import ConfigError
from holdfast.model.observation import Status
from holdfast.model.view import RUNNING, CallRow, Wanted

if TYPE_CHECKING:
    from holdfast.gateway import Gateway

LOOK_S = 0.5
STATUSES = (RUNNING, *(status.value for status in Status))


def add(app: typer.Typer) -> None:
    app.command()(watch)


def watch(
    tool: Annotated[
        str | None, typer.Option(metavar="TOOL", help="Only this tool, or all of an upstream: shop.*")
    ] = None,
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Only calls that ended like this, such as failed.")
    ] = None,
    caller_: Annotated[str | None, typer.Option("--caller", metavar="USER", help="Only this user's.")] = None,
    once: Annotated[
        int | None, typer.Option(min=1, max=500, metavar="N", help="Show the last N calls and end.")
    ] = None,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Show calls as they happen, one line each, until ctrl-c; a call that was held shows again when it ends.

    Operators see everybody's calls, others their own.
    """
    if status is not None and status not in STATUSES:
        raise ConfigError(f"no call ends {status!r}; take one of {', '.join(STATUSES)}")

    async def watched(gateway: "Gateway") -> None:
        by = caller(gateway, as_)
        if once is not None:
            await gateway.views.fresh()
            wanted = Wanted(limit=once, tool=tool, status=status, caller=caller_)
            for row in reversed((await gateway.views.calls(by, wanted)).rows):
                _show(row, as_json)
            return
        await _follow(gateway, Watching(gateway.views, by, tool=tool, status=status, caller=caller_), as_json)

    with suppress(KeyboardInterrupt):
        with_gateway(config, watched)


async def _follow(gateway: "Gateway", watching: Watching, as_json: bool) -> None:
    import asyncio

    await watching.begin(gateway.identity.now())
    if sys.stderr.isatty():
        sys.stderr.write("waiting for calls; ctrl-c ends\n")
    while True:
        for row in await watching.news(gateway.identity.now()):
            _show(row, as_json)
        sys.stdout.flush()
        await asyncio.sleep(LOOK_S)


def _show(row: CallRow, as_json: bool) -> None:
    if as_json:
        import orjson

        sys.stdout.write(orjson.dumps(row._asdict()).decode() + "\n")
        return
    from holdfast.model.moment import iso

    known = row.status in STYLES
    style = STYLES[Status(row.status)] if known else "bold"
    aside = "" if row.latency_ms is None else f"{row.latency_ms:.0f} ms"
    line = text(
        (f"{iso(row.at)[11:19]}  ", "dim"),
        (f"{row.status:<8}", style),
        f"  {row.tool:<28}",
        (f"  {aside:>8}  ", "dim"),
        f"{row.agent} for {row.caller}",
    )
    code = f"{row.code}  " if row.code and row.status != Status.HELD else ""
    rest = text((code, "red"), (row.approval_id or row.call_id, "dim"))
    fits = len(line) + len(rest) + 2 <= console().width
    show(line.append("  " if fits else "\n" + " " * 20).append_text(rest))
