"""How does one plain request, whole when it arrives, get its answer?

As in uvicorn's cycle, of which this is one: it can be answered in pieces, be streamed to, and say whether its
client is there. What most requests never need is made when it is needed.
"""

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from holdfast.cli.joined import Joined

if TYPE_CHECKING:
    from logging import Logger

    from uvicorn.protocols.http.flow_control import FlowControl

    from holdfast.cli.protocol import Protocol


class Turn(RequestResponseCycle):
    # As a cycle begins; an attribute that is never set on its own costs nothing.
    access_log = False
    disconnected = False
    waiting_for_100_continue = False
    response_started = False
    response_complete = False
    chunked_encoding = None
    expected_content_length = 0
    listening: asyncio.Event | None = None
    """Set when there is something to hear; None where nobody listens."""
    _read = False

    def __init__(self, protocol: "Protocol", scope: Any, body: bytes, keep_alive: bool) -> None:
        self._protocol, self.scope, self._whole, self.keep_alive = protocol, scope, body, keep_alive
        self.task: asyncio.Task[None] | None = None

    async def run(self, app: Any) -> None:
        try:
            await app(self.scope, self.receive, self.send)
            if not self.response_complete:
                await self.run_asgi(_nothing)  # which says what is missing
        except BaseException as error:
            await self.run_asgi(_broken(error))  # which says so, and answers
        finally:
            if self.task is not None:
                self._protocol.tasks.discard(self.task)
                self.task = None
            self._protocol.linger.over()

    async def receive(self) -> Any:
        if not self._read:
            self._read = True
            return {"type": "http.request", "body": self._whole, "more_body": False}
        return await super().receive()

    def on_response(self) -> None:
        self._protocol.on_response_complete()

    @property
    def message_event(self) -> asyncio.Event:  # type: ignore[override]
        if self.listening is None:
            self.listening = asyncio.Event()
        return self.listening

    @cached_property
    def transport(self) -> Joined:  # type: ignore[override]
        return Joined(self._protocol.transport)

    @property
    def flow(self) -> "FlowControl":  # type: ignore[override]
        return self._protocol.flow

    @property
    def logger(self) -> "Logger":  # type: ignore[override]
        return self._protocol.logger

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:  # type: ignore[override]
        return self._protocol.server_state.default_headers


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    """An application that has done what it does already."""


def _broken(error: BaseException) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise error

    return app
