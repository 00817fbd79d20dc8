"""`holdfast stdio`: serve one MCP client over stdin and stdout, for clients that start their servers.

Several of these and a server share one store safely (PPL-6). Whoever this process runs as is the user; the
client is an agent of theirs, and holds no role: what needs a person is approved elsewhere.
"""

import contextlib
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile

if TYPE_CHECKING:
    from collections.abc import Callable
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
    from holdfast.cli.session import recognize
    from holdfast.config import load
    from holdfast.gateway import Gateway
    from holdfast.servers.mcp.stdio import serve
    from holdfast.telemetry.logs import configure

    loaded = load(config)
    configure(sys.stderr, loaded.telemetry.logs, loaded.telemetry.level)
    async with Gateway.open(loaded) as gateway:
        await recognize(gateway.identity)
        serving = asyncio.create_task(serve(gateway, sender(gateway, user, agent), wire, command()))
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
        with contextlib.suppress(asyncio.CancelledError):  # told to stop: the gateway is closed in order
            await serving


def sender(gateway: "Gateway", user: str | None, agent: str) -> "Callable[[], Principal]":
    """The client as it stands whenever it asks for something: what it was granted ends, and more may come.

    One whose credential was taken back stays who it was; whatever it does rests on that, and is refused.
    """
    from holdfast.identity import Unauthenticated

    last = client(gateway, user, agent)

    def now() -> "Principal":
        nonlocal last
        with contextlib.suppress(Unauthenticated):
            last = client(gateway, user, agent)
        return last

    return now


def client(gateway: "Gateway", user: str | None, agent: str) -> "Principal":
    """Who is at the other end, as over HTTP: by name in local mode, else by what the environment holds."""
    from holdfast.cli.session import credential
    from holdfast.identity.identity import AGENT as AGENT_HEADER
    from holdfast.identity.identity import USER
    from holdfast.model.bounds import Bounds

    headers = {AGENT_HEADER: agent}
    if user is not None:
        headers[USER] = user
    held = credential()
    if held is not None:
        headers["authorization"] = f"Bearer {held}"
    principal = gateway.identity.authenticate(headers)
    if held is None or gateway.identity.mode == "local":
        return principal
    # The client shows its credential only once, and may stay for days: no longer than the credential lasts.
    until = gateway.identity.holder(held).claim.until
    return replace(principal, bounds=principal.bounds.meet(Bounds(until=until)))
