"""Which calls of sessions of the older era are under way without the SDK?

A session is the SDK's: it was opened there, and everything but plain calls goes there. What it would do to a
call in one of its sessions is done here: take it back when its client says so, and break it off when the
session ends.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http import REQUEST_CANCELLED
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import INTERNAL_ERROR

from holdfast.servers.front import Plain
from holdfast.servers.mcp.exchange import ASKED, called, declared
from holdfast.servers.mcp.plain import OLDER
from holdfast.servers.mcp.sessions import HEADER

if TYPE_CHECKING:
    from mcp.server.connection import Connection

    from holdfast.servers.mcp.hub import Hub
    from holdfast.servers.mcp.sessions import Session, Sessions

CANCELLED = {"code": REQUEST_CANCELLED, "message": "Request cancelled"}
ENDED = {"code": INTERNAL_ERROR, "message": "Session terminated before the request completed"}
CALLER = "holdfast/caller"
"""Where a connection keeps what is known of its client."""

Stay = Callable[[Plain, str], Coroutine[Any, Any, None]]
"""Keeps a session open, by the SDK's id of it."""
Name = tuple[str, str | int]
"""A request: the SDK's id of its session, and its own."""


@dataclass(slots=True)
class Caller:
    """The client of a session, and what it said when it opened it."""

    session: "Session"
    connection: "Connection"
    said: Any
    capabilities: Mapping[str, Any]
    client: str | None
    touched: float = 0.0


class Older:
    def __init__(self, hub: "Hub", sessions: "Sessions", stay: Stay, touch_s: float) -> None:
        self._hub, self._sessions, self._stay, self._touch_s = hub, sessions, stay, touch_s
        self._loop = asyncio.get_running_loop()
        self._running: dict[Name, Running] = {}

    def caller(self, plain: Plain) -> Caller | None:
        """Whose session a request names; None unless it is plainly theirs, and nothing can be asked there."""
        version = plain.headers.get(b"mcp-protocol-version")
        if version is not None and version not in OLDER:
            return None
        session = self._sessions.known(plain.principal, plain.headers[HEADER].decode("latin-1"))
        connection = None if session is None else self._hub.connections.get(session.local)
        if session is None or connection is None:
            return None
        caller: Caller | None = connection.state.get(CALLER)
        if caller is None or caller.said is not connection.client_params or caller.session is not session:
            caller = connection.state[CALLER] = _met(session, connection)
        if session.asks and not caller.capabilities.keys().isdisjoint(ASKED):
            return None
        self._keep(plain, caller)
        return caller

    def begin(self, caller: Caller, request_id: str | int) -> "Running | None":
        """A call under way; None where another one has the same id."""
        name = caller.session.local, coerce_request_id(request_id)
        if name in self._running:
            return None
        task = asyncio.current_task(self._loop)
        assert task is not None  # noqa: S101  # a coroutine runs in one
        running = self._running[name] = Running(name, task)
        return running

    def done(self, running: "Running") -> None:
        """From now on it can be neither taken back nor broken off."""
        if self._running.get(running.name) is running:
            del self._running[running.name]

    def cancel(self, local: str, request_id: str | int) -> None:
        running = self._running.get((local, coerce_request_id(request_id)))
        if running is not None:
            self._stop(running, CANCELLED, 200)

    def end(self, local: str) -> None:
        """A session is over."""
        for running in [one for one in self._running.values() if one.name[0] == local]:
            self._stop(running, ENDED, 500)

    def _stop(self, running: "Running", why: Mapping[str, Any], status: int) -> None:
        self.done(running)
        running.stopped = why, status
        running.task.cancel()

    def _keep(self, plain: Plain, caller: Caller) -> None:
        now = self._loop.time()
        if now >= caller.touched + self._touch_s:
            caller.touched = now
            self._hub.later(self._stay(plain, caller.session.local))


@dataclass(slots=True)
class Running:
    name: Name
    task: "asyncio.Task[Any]"
    stopped: tuple[Mapping[str, Any], int] | None = None
    """What to tell instead of a result, and with which status, where it was stopped."""


def _met(session: "Session", connection: "Connection") -> Caller:
    return Caller(session, connection, connection.client_params, declared(connection), called(connection))
