"""What is one connection to a server?

Whoever opens a link closes it. A link that broke says so once, through `over`, and sends nothing more.
"""

import asyncio
from typing import Any, Protocol

from holdfast.upstreams.mcp.exchange import Exchange
from holdfast.upstreams.mcp.protocol import Facts


class Ending:
    """Why a link is over, told once."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.reason: str | None = None

    def __bool__(self) -> bool:
        return self.reason is not None

    def tell(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason
            self._event.set()

    async def wait(self) -> str:
        await self._event.wait()
        return self.reason or ""


class Link(Protocol):
    facts: Facts
    over: Ending
    in_flight: dict[int, Exchange]
    """The calls of clients on it; what the gateway asks for itself is not among them."""

    @property
    def heard(self) -> int:
        """How many messages came; a server that says nothing at all may have hung."""
        ...

    async def request(
        self, method: str, params: dict[str, Any] | None, exchange: Exchange | None = None
    ) -> dict[str, Any]:
        """The result as it came. Cancelling it tells the server."""
        ...

    async def notify(self, method: str, params: dict[str, Any] | None) -> None: ...

    async def close(self) -> str | None:
        """End it; what is known only now about how it ended, if anything."""
        ...
