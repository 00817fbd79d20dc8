"""`holdfast serve`: open the gateway and answer over HTTP until told to stop."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.options import DEFAULT_CONFIG, ConfigFile

if TYPE_CHECKING:
    import socket

    from holdfast.cli.patience import Patience
    from holdfast.config import Config


def add(app: typer.Typer) -> None:
    app.command()(serve)


def serve(
    config: ConfigFile = DEFAULT_CONFIG,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8080,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes that serve, kept running by this one; else it serves itself."),
    ] = None,
    notice: Annotated[
        float, typer.Option(min=0, help="Seconds that /ready says no before a stop refuses connections.")
    ] = 0.0,
    grace: Annotated[
        float, typer.Option(min=0, help="Seconds that what is under way then has to finish.")
    ] = 10.0,
    worker: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Serve the gateway over HTTP."""
    from holdfast.cli.links import Links
    from holdfast.cli.listening import address, listening
    from holdfast.cli.patience import Patience
    from holdfast.config import load

    links, patience = None if worker is None else Links.parse(worker), Patience(notice, grace)
    loaded = load(config)
    loaded.check_host(host)
    with listening(host, port) if links is None else links.socket() as bound:
        if workers is not None and links is None:
            raise typer.Exit(_supervise(loaded, _again(config, host, patience), bound, workers, patience))
        from holdfast.cli.serving import run

        where = address(host, bound)
        run(loaded.model_copy(update={"base_url": loaded.base_url or where}), where, bound, patience, links)


def _supervise(
    config: "Config", again: list[str], bound: "socket.socket", count: int, patience: "Patience"
) -> int:
    import asyncio

    from holdfast.cli.supervisor import Supervisor
    from holdfast.telemetry.logs import configure

    configure(sys.stderr, config.telemetry.logs, config.telemetry.level)
    return asyncio.run(Supervisor(again, bound, count, patience).run())


def _again(config: Path, host: str, patience: "Patience") -> list[str]:
    """This command once more, for a worker. The configuration is read by each, so a new one may be new."""
    alone = [] if os.getcwd() in sys.path[:1] else ["-P"]  # finds what this process found, and no more
    stopping = ["--notice", str(patience.notice_s), "--grace", str(patience.grace_s)]
    command = [sys.executable, *alone, "-m", "holdfast", "serve"]
    return [*command, "--config", str(config), "--host", host, *stopping]
