"""How much of a tool's log does a client want to be told?

An older client sets it once for its connection; a modern one says it with each request, and nothing is set.
"""

from typing import TYPE_CHECKING, Any

from holdfast.servers.mcp.exchange import LEVEL

if TYPE_CHECKING:
    from holdfast.servers.mcp.exchange import Exchange
    from holdfast.servers.mcp.hub import Hub


async def set_level(hub: "Hub", exchange: "Exchange") -> dict[str, Any]:
    one, level = exchange.line.connection, str(exchange.params["level"])
    if LEVEL not in one.state:
        one.exit_stack.callback(hub.native.forget, exchange.session)
    one.state[LEVEL] = level
    await hub.native.set_level(exchange.session, level)
    return {}
