"""`holdfast stdio`: serve one MCP client over stdin and stdout, for clients that start their servers.

Several of these and a server share one store safely (PPL-6). Whoever this process runs as is the user; the
client is an agent of theirs, and holds no role: what needs a person is approved elsewhere.
"""

import contextlib
import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.gateway import Gateway
    from holdfast.model.call import Principal
    from holdfast.servers.mcp.wire import Wire

AGENT = "stdio"


def add(app: typer.Typer) -> None:
    app.command()(stdio)


def stdio(
    config: ConfigFile = DEFAULT_CONFIG,
    as_: As = None,
    agent: Annotated[str, typer.Option(help="What the client is called in records and approvals.")] = AGENT,
) -> None:
    """Serve MCP over stdin and stdout, for a client that starts its servers itself."""
    import asyncio

    from holdfast.servers.mcp.wire import Wire

    wire = Wire()  # before anything is loaded that could print
    asyncio.run(_serve(config, as_, agent, wire))


async def _serve(config: "Path", user: str | None, agent: str, wire: "Wire") -> None:
    import asyncio

    from holdfast.cli.invoked import command
    from holdfast.config import load
    from holdfast.gateway import Gateway
    from holdfast.servers.mcp.stdio import serve
    from holdfast.telemetry.logs import configure

    loaded = load(config)
    configure(sys.stderr, loaded.telemetry.logs, loaded.telemetry.level)
    async with Gateway.open(loaded) as gateway:
        serving = asyncio.create_task(serve(gateway, client(gateway, user, agent), wire, command()))
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
        with contextlib.suppress(asyncio.CancelledError):  # told to stop: the gateway is closed in order
            await serving


def client(gateway: "Gateway", user: str | None, agent: str) -> "Principal":
    """Who is at the other end, as over HTTP: by name in local mode, else by the key in the environment."""
    import os

    from holdfast.identity.identity import AGENT as AGENT_HEADER
    from holdfast.identity.identity import USER

    headers = {AGENT_HEADER: agent}
    if user is not None:
        headers[USER] = user
    if (key := os.environ.get("HOLDFAST_API_KEY")) is not None:
        headers["authorization"] = f"Bearer {key}"
    return gateway.identity.authenticate(headers)
