"""Tools that keep all they are told: a function, and whatever is sent to a server."""

import os

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.model.function import tool
from holdfast.model.invocation import Invocation
from holdfast.model.vocabulary import Effect

HEARD: list[str] = []
"""By the function of this process; emptied by whoever looks."""


class Everything:
    """Every header and every byte of every request that reaches a server."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.bytes = bytearray()
        self.requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def heard() -> Message:
            message = await receive()
            self.bytes += message.get("body", b"")
            return message

        if scope["type"] == "http":
            self.requests += 1
            self.bytes += b"\n%s %s?%s\n" % (
                scope["method"].encode(),
                scope["raw_path"],
                scope["query_string"],
            )
            for name, value in scope["headers"]:
                self.bytes += b"%s: %s\n" % (name, value)
        await self._app(scope, heard, send)


class Ear:
    @tool(effect=Effect.READ_ONLY, scopes=["ear:hear"])
    async def hear(self, text: str, invocation: Invocation) -> int:
        """Keep what is said, and all that is known of who says it.

        Args:
            text: what is said
        """
        HEARD.append(f"{text!r} {invocation!r} environ {dict(os.environ)!r}")
        return len(HEARD)


def ear() -> Ear:
    return Ear()
