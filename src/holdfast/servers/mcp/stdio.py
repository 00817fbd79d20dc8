"""How does one MCP client reach us over stdin and stdout?

The client started this process, so it acts for whoever it runs as.
"""

from typing import TYPE_CHECKING, Any, cast

from mcp.server.stdio import stdio_server
from mcp_types import JSONRPCError, JSONRPCResponse

from holdfast.servers.mcp.hub import Hub
from holdfast.servers.mcp.server import Sender, build
from holdfast.servers.mcp.wire import Wire
from holdfast.servers.visit import body_limits

if TYPE_CHECKING:
    from anyio import AsyncFile
    from mcp.shared._stream_protocols import WriteStream
    from mcp.shared.message import SessionMessage

    from holdfast.gateway import Gateway


async def serve(gateway: "Gateway", sender: Sender, wire: Wire, command: str = "holdfast") -> None:
    """`sender` says who the client is, every time it asks for something, for that may change while it stays.

    Until the client closes stdin; raises ConfigError where two tools would have one name."""
    hub = Hub(gateway, command)
    server = build(hub, sender)
    lines, out = await wire.opened(body_limits(gateway))
    ends = cast("AsyncFile[str]", lines), cast("AsyncFile[str]", out)
    async with stdio_server(*ends) as (incoming, outgoing):
        hub.open()
        try:
            await server.run(incoming, Answers(outgoing, hub), server.create_initialization_options())
        finally:
            hub.close()


class Answers:
    """The stream to the client; an answer that was written has arrived."""

    def __init__(self, stream: "WriteStream[SessionMessage]", hub: Hub) -> None:
        self._stream, self._hub = stream, hub

    async def send(self, item: "SessionMessage", /) -> None:
        await self._stream.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._hub.arrived(item.message.id)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> "Answers":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._stream.__aexit__(*error)
