"""How do MCP clients reach us over HTTP?

One endpoint for both eras. Whoever sends a request is known before its body is read, the body is held to the
limits before it is parsed, and a session of the older era belongs to the caller who opened it. The SDK's
session manager does the rest. It is loaded when the first request comes, and keeps no others waiting: so a
server is up in half the time.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from importlib import import_module
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
from holdfast.servers.mcp.roster import Roster
from holdfast.servers.mcp.sessions import HEADER, Session, Sessions, stay
from holdfast.servers.visit import authenticate, body_limits, read

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.servers.front import Plain
    from holdfast.servers.mcp.inside import Inside

PATH = "/mcp"
METHODS = ("GET", "POST", "DELETE")
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
        self._roster: Roster | None = None
        """While it runs."""
        self._inside: Inside | None = None
        self._loading: asyncio.Task[Inside] | None = None
        self._streams: set[anyio.CancelScope] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Door"]:
        """Raises ConfigError where two tools would have one name."""
        self._roster = roster = Roster(self._gateway)
        roster.open()
        try:
            yield self
        finally:
            self.rest()
            self._roster = self._inside = None
            loading, self._loading = self._loading, None
            if loading is not None:
                await asyncio.wait((loading,))
                if loading.exception() is None:
                    await loading.result().close()
            roster.close()

    async def load(self) -> "Inside":
        """What answers requests. It belongs to none of them, so whoever asked first may leave."""
        roster = self._roster
        if roster is None:
            raise _not_now()
        if self._loading is None or (self._loading.done() and self._inside is None):  # or that failed
            self._loading = asyncio.create_task(self._load(roster), context=Context())
        return await asyncio.shield(self._loading)

    async def _load(self, roster: Roster) -> "Inside":
        await asyncio.to_thread(import_module, "holdfast.servers.mcp.inside")
        from holdfast.servers.mcp.inside import enter

        inside = await enter(self._gateway, self._command, roster, self._sessions, self._stay, self.idle_s)
        if self._roster is roster:
            self._inside = inside
        return inside

    def rest(self) -> None:
        """End what would stay open for ever, so that a server can stop."""
        if self._inside is not None:
            self._inside.hub.subscriptions.close()
        for scope in self._streams:
            scope.cancel()

    def short(self, plain: "Plain") -> Awaitable[bool]:
        """Answers what is plainly a call; whatever else comes by is for `__call__`."""
        return self._first(plain) if self._inside is None else self._inside.lane.take(plain)

    async def _first(self, plain: "Plain") -> bool:
        return self._roster is not None and await (await self.load()).lane.take(plain)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._roster is None:
            raise _not_now()
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
        inside = self._inside or await self.load()
        SENDER.set(principal)
        delivery = Delivery(self._gateway, principal)
        known = {**scope, VISIT: Visitor(principal, delivery), "user": _owner(principal)}
        watch = Watch(body, receive, send)
        try:
            if not await self._in_session(inside, request, known, message, watch):
                await self._handled(inside, known, watch, streams=request.method == "GET")
        finally:
            delivery.ended(watch.arrived)

    async def _stay(self, plain: "Plain", local: str) -> None:
        if self._inside is None:
            return
        visitor = Visitor(plain.principal, Delivery(self._gateway, plain.principal))
        scope = {**plain.scope, VISIT: visitor, "user": _owner(plain.principal)}
        await stay(self._inside.manager.handle_request, scope, local)

    async def _handled(self, inside: "Inside", scope: Scope, watch: "Watch", *, streams: bool) -> None:
        if self._inside is not inside:
            raise _not_now()
        with anyio.CancelScope() as ending:
            if streams:
                self._streams.add(ending)
            try:
                await inside.manager.handle_request(scope, watch.receive, watch.send)
            finally:
                self._streams.discard(ending)
        if ending.cancelled_caught:
            await watch.finish()

    async def _in_session(
        self, inside: "Inside", request: Request, scope: Scope, message: Any, watch: "Watch"
    ) -> bool:
        """Handles what belongs to a session of the older era; whether it did."""
        principal: Principal = scope[VISIT].principal
        given = request.headers.get(HEADER.decode())
        if given is None:
            if isinstance(message, Mapping) and message.get("method") == "initialize":
                said = message.get("params")
                await self._gateway.ready_to_seal(principal)
                watch.names = lambda local: self._sessions.opened(
                    principal, said if isinstance(said, Mapping) else {}, local
                )
            return False
        for _ in range(2):  # the SDK ends sessions that were idle for long: then it is taken up anew
            session = await self._sessions.find(principal, given, inside.manager.handle_request, scope)
            if session is None:
                return False
            if is_cancellation(message):
                inside.lane.older.cancel(session.local, message["params"]["requestId"])
            if not session.asks and is_answer(message):
                await _unasked()(scope, watch.receive, watch.send)
                return True
            watch.begin(lambda _: given, spare=404)
            visitor = Visitor(principal, scope[VISIT].delivery, session)
            known = {**scope, VISIT: visitor, "headers": _as(session, scope["headers"])}
            await self._handled(inside, known, watch, streams=request.method == "GET")
            if not watch.spared:
                if request.method == "DELETE":
                    self._sessions.forget(principal, given, ended=True)
                    inside.lane.older.end(session.local)
                return True
            self._sessions.forget(principal, given)
        return False


def _not_now() -> TransportError:
    return TransportError(503, "MCP is not served now", "try again later")


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
