"""How do MCP clients reach us over HTTP?

One endpoint for both eras. Whoever sends a request is known before its body is read, the body is held to the
limits before it is parsed, and a session of the older era belongs to the caller who opened it. The SDK's
session manager does the rest.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from holdfast.model.call import Principal
from holdfast.model.strict_json import ParseError, parse
from holdfast.servers.answers import TransportError, answer
from holdfast.servers.mcp.delivery import Delivery
from holdfast.servers.mcp.sessions import HEADER, Session, Sessions, stay
from holdfast.servers.visit import authenticate, body_limits, read

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from holdfast.gateway import Gateway
    from holdfast.servers.front import Plain
    from holdfast.servers.mcp.hub import Hub
    from holdfast.servers.mcp.lane import Lane

PATH = "/mcp"
METHODS = ("GET", "POST", "DELETE")
TOUCHES = 4
"""How often in its time a session is kept open whose requests the SDK does not see."""
VISIT = "holdfast.visit"
"""Where a request's scope keeps who sent it and whether its answer arrived."""

SENDER: ContextVar[Principal | None] = ContextVar("holdfast_mcp_sender", default=None)
"""Who sent the request under way, for the one place where the SDK does not say."""


@dataclass(frozen=True, slots=True)
class Visitor:
    principal: Principal
    delivery: Delivery
    session: Session | None = None
    """Of the older era, once it is open."""


class Door:
    """The ASGI application at `/mcp`; it answers while `running`."""

    def __init__(self, gateway: "Gateway", command: str = "holdfast", *, alone: bool = True) -> None:
        self._gateway, self._command = gateway, command
        self._sessions = Sessions(gateway, alone=alone)
        self.idle_s = 1800.0
        """How long a session is kept open for a client that says nothing; it can be taken up again."""
        self._manager: StreamableHTTPSessionManager | None = None
        self._hub: Hub | None = None
        self._lane: Lane | None = None
        self._streams: set[anyio.CancelScope] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Door"]:
        """Raises ConfigError where two tools would have one name."""
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from holdfast.servers.mcp.hub import Hub
        from holdfast.servers.mcp.lane import Lane
        from holdfast.servers.mcp.older import Older
        from holdfast.servers.mcp.results import WHO
        from holdfast.servers.mcp.server import build

        hub = self._hub = Hub(self._gateway, self._command)
        server = build(hub)
        manager = StreamableHTTPSessionManager(
            server,
            max_request_body_size=self._gateway.config.limits.body_bytes,
            session_idle_timeout=self.idle_s,
        )
        begun, stop = asyncio.Event(), asyncio.Event()
        sessions = asyncio.create_task(_sessions(manager, begun, stop), name="holdfast-mcp-sessions")
        await begun.wait()
        hub.open()
        self._manager = manager
        stamp = {WHO: server.server_info_stamp}
        older = Older(hub, self._sessions, self._stay, self.idle_s / TOUCHES)
        self._lane = Lane(hub, older, body_limits(self._gateway), stamp)
        try:
            yield self
        finally:
            self._manager = self._lane = None
            self.rest()
            hub.close()
            stop.set()
            await sessions

    def rest(self) -> None:
        """End what would stay open for ever, so that a server can stop."""
        if self._hub is not None:
            self._hub.subscriptions.close()
        for scope in self._streams:
            scope.cancel()

    def short(self, plain: "Plain") -> Awaitable[bool]:
        """Answers what is plainly a call; whatever else comes by is for `__call__`."""
        return _nothing() if self._lane is None else self._lane.take(plain)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._manager is None:
            raise TransportError(503, "MCP is not served now", "try again later")
        request = Request(scope, receive)
        refuse_foreign_origin(request)
        principal = await authenticate(self._gateway, request)
        body, message = None, None
        if request.method == "POST":
            limits = body_limits(self._gateway)
            body = await read(request, limits.max_bytes)
            try:
                message = parse(body, limits)
            except ParseError as error:
                await _unparsed(error)(scope, receive, send)
                return
        SENDER.set(principal)
        delivery = Delivery(self._gateway, principal)
        known = {**scope, VISIT: Visitor(principal, delivery), "user": _owner(principal)}
        watch = Watch(body, receive, send)
        try:
            if not await self._in_session(request, known, message, watch):
                await self._handled(known, watch, streams=request.method == "GET")
        finally:
            delivery.ended(watch.arrived)

    async def _stay(self, plain: "Plain", local: str) -> None:
        if self._manager is None:
            return
        visitor = Visitor(plain.principal, Delivery(self._gateway, plain.principal))
        scope = {**plain.scope, VISIT: visitor, "user": _owner(plain.principal)}
        await stay(self._manager.handle_request, scope, local)

    async def _handled(self, scope: Scope, watch: "Watch", *, streams: bool = False) -> None:
        if self._manager is None:
            raise TransportError(503, "MCP is not served now", "try again later")
        with anyio.CancelScope() as ending:
            if streams:
                self._streams.add(ending)
            try:
                await self._manager.handle_request(scope, watch.receive, watch.send)
            finally:
                self._streams.discard(ending)
        if ending.cancelled_caught:
            await watch.finish()

    async def _in_session(self, request: Request, scope: Scope, message: Any, watch: "Watch") -> bool:
        """Handles what belongs to a session of the older era; whether it did."""
        principal: Principal = scope[VISIT].principal
        given = request.headers.get(HEADER.decode())
        if given is None:
            if isinstance(message, Mapping) and message.get("method") == "initialize":
                said = message.get("params")
                watch.names = lambda local: self._sessions.opened(
                    principal, said if isinstance(said, Mapping) else {}, local
                )
            return False
        manager = self._manager
        for _ in range(2):  # the SDK ends sessions that were idle for long: then it is taken up anew
            session = None
            if manager is not None:
                session = await self._sessions.find(principal, given, manager.handle_request, scope)
            if session is None:
                return False
            if self._lane is not None and is_cancellation(message):
                self._lane.older.cancel(session.local, message["params"]["requestId"])
            if not session.asks and is_answer(message):
                await _unasked()(scope, watch.receive, watch.send)
                return True
            watch.begin(lambda _: given, spare=404)
            visitor = Visitor(principal, scope[VISIT].delivery, session)
            inside = {**scope, VISIT: visitor, "headers": _as(session, scope["headers"])}
            await self._handled(inside, watch, streams=request.method == "GET")
            if not watch.spared:
                if request.method == "DELETE":
                    self._sessions.forget(principal, given, ended=True)
                    if self._lane is not None:
                        self._lane.older.end(session.local)
                return True
            self._sessions.forget(principal, given)
        return False


async def _sessions(
    manager: "StreamableHTTPSessionManager", begun: asyncio.Event, stop: asyncio.Event
) -> None:
    """Sessions live in a task of their own: the SDK wants them ended by whoever began them."""
    async with manager.run():
        begun.set()
        await stop.wait()


async def _nothing() -> bool:
    return False


class Watch:
    """Hands on a body that was read already, and sees whether the client stayed for the whole answer."""

    def __init__(self, body: bytes | None, receive: Receive, send: Send) -> None:
        self._body, self._receive, self._send = body, receive, send
        self._left = self._begun = self._read = False
        self._spare: int | None = None
        self.arrived = False
        self.spared = False
        """An answer with a status that was not to be sent came, and was not."""
        self.names: Callable[[str], str] | None = None
        """What a client knows a session by."""

    def begin(self, names: Callable[[str], str], *, spare: int) -> None:
        """The same request from its beginning."""
        self.names, self._spare, self.spared, self._read = names, spare, False, False

    async def receive(self) -> Message:
        if self._body is not None and not self._read:
            self._read = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        message = await self._receive()
        self._left = self._left or message["type"] == "http.disconnect"
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.spared = message["status"] == self._spare
            if self.names is not None and message["status"] < 400:
                message = {**message, "headers": _renamed(message["headers"], self.names)}
        if self.spared:
            return
        await self._send(message)
        if message["type"] == "http.response.start":
            self._begun = True
        elif not message.get("more_body", False):
            self.arrived = not self._left

    async def finish(self) -> None:
        """End an answer in the middle, as one that is complete."""
        if self._begun and not self.arrived:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})


def refuse_foreign_origin(request: Request) -> None:
    """A web page of another site may not speak to us with its visitor's rights; MCP asks for this check."""
    origin = request.headers.get("origin")
    if origin is None:
        return
    own = request.headers.get("host", "").lower()
    if urlsplit(origin.lower()).netloc != own:
        raise TransportError(
            403, "this request is refused: its Origin is another site", "send it without a browser"
        )


def _owner(principal: Principal) -> object:
    """The caller as the session manager tells callers apart. No token of theirs is in it."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    claims = {"iss": principal.tenant}
    return AuthenticatedUser(
        AccessToken(token="", client_id=principal.agent, subject=principal.user, scopes=[], claims=claims)
    )


def is_answer(message: Any) -> bool:
    """To something the client was asked."""
    return (
        isinstance(message, Mapping)
        and "method" not in message
        and ("result" in message or "error" in message)
    )


def is_cancellation(message: Any) -> bool:
    """A client of the older era takes a request back."""
    return (
        isinstance(message, Mapping)
        and message.get("method") == "notifications/cancelled"
        and isinstance(params := message.get("params"), Mapping)
        and isinstance(params.get("requestId"), str | int)
    )


def _as(session: Session, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return _renamed(headers, lambda _: session.local)


def _renamed(headers: list[tuple[bytes, bytes]], names: Callable[[str], str]) -> list[tuple[bytes, bytes]]:
    return [(k, names(v.decode("latin-1")).encode() if k.lower() == HEADER else v) for k, v in headers]


def _unasked() -> Response:
    text = "nothing was asked in this session by this process; route by Mcp-Session-Id to be asked things"
    return answer({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": text}}, 409)


def _unparsed(error: ParseError) -> Response:
    code = -32600 if error.code_hint == "limits" else -32700
    said = {"code": code, "message": f"the request cannot be read: {error.message}"}
    return answer({"jsonrpc": "2.0", "id": None, "error": said}, 400)
