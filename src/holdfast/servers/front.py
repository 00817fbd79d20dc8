"""Which requests take the short way, and what becomes of all others?

Most requests are calls that need nothing unusual. Those go from the socket to the gateway by a few small
functions. Whatever is not plainly one of them goes the general way, with what was read of its body, and is
answered there as if there were no other: nothing is refused here.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from starlette.applications import Starlette
from starlette.types import Message, Receive, Scope, Send

from holdfast.gateway import Gateway
from holdfast.identity import Unauthenticated
from holdfast.identity.identity import AGENT, SECRET, USER
from holdfast.model.call import Principal
from holdfast.servers.answers import TransportError
from holdfast.servers.guard import refuse_strangers, response_to
from holdfast.servers.visit import body_limits

CREDENTIALS = (USER, AGENT, "authorization")
_USER, _AGENT, _SECRET = USER.encode(), AGENT.encode(), SECRET.encode()
MOST_KNOWN = 1024
"""Combinations of headers that are remembered; anybody can make up more of them."""

Headers = Mapping[bytes, bytes]
Shown = tuple[bytes | None, ...]
"""The values of `CREDENTIALS` in a request."""


@dataclass(slots=True)
class Plain:
    """One request of a known caller, read. Each of its headers was given once."""

    scope: Scope
    receive: Receive
    send: Send
    headers: Headers
    principal: Principal
    body: bytes
    begun: bool = False
    """Whether something of the answer was sent."""


Way = Callable[[Plain], Awaitable[bool]]
"""Answers a request, or says that it is not for it; then it has done nothing."""


class Front(Starlette):
    """The general way, with short ways before it."""

    def __init__(self, gateway: Gateway, ways: Mapping[str, Way], **routes: Any) -> None:
        super().__init__(**routes)
        self._ways = ways
        self._identity = gateway.identity
        self._local = gateway.config.auth.mode == "local"
        self._most = body_limits(gateway).max_bytes
        self._shown: dict[Shown, Mapping[str, str]] = {}
        self._welcome: set[tuple[str | None, bytes | None, bytes | None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            way = self._ways.get(scope["path"])
            if way is not None:
                again = await self._short(way, scope, receive, send)
                if again is None:
                    return
                receive = again
        await super().__call__(scope, receive, send)

    async def _short(self, way: Way, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        """Nothing where the request was answered, else how the general way hears of it."""
        headers = dict(scope["headers"])
        if len(headers) != len(scope["headers"]) or not self._lets_in(scope, headers):
            return receive
        principal = self._known(headers)
        if principal is None:
            return receive
        message = await receive()
        if message["type"] != "http.request" or message.get("more_body", False):
            message = await _whole(message, receive, self._most)
        body = message.get("body", b"")
        if message["type"] != "http.request" or message.get("more_body", False) or len(body) > self._most:
            return _again(message, receive)
        plain = Plain(scope, receive, send, headers, principal, body)
        try:
            if await way(plain):
                return None
        except Exception as error:
            if plain.begun:
                raise
            await response_to(error, scope["path"])(scope, receive, send)
            return None
        return _again(message, receive)

    def _lets_in(self, scope: Scope, headers: Headers) -> bool:
        """By the same rules as `guard`, remembered; and nothing is read that says it is too large."""
        declared = headers.get(b"content-length", b"0")
        if len(declared) > 9 or not declared.isdigit() or int(declared) > self._most:
            return False
        if not self._local:
            return True
        client = scope.get("client")
        seen = (None if client is None else client[0], headers.get(b"host"), headers.get(b"origin"))
        if seen in self._welcome:
            return True
        try:
            refuse_strangers(scope)
        except TransportError:
            return False
        if len(self._welcome) >= MOST_KNOWN:
            self._welcome.clear()
        self._welcome.add(seen)
        return True

    def _known(self, headers: Headers) -> Principal | None:
        """Who sent this; not where that takes a slow hash."""
        if _SECRET in headers:
            return None
        shown = headers.get(_USER), headers.get(_AGENT), headers.get(b"authorization")
        said = self._shown.get(shown)
        if said is None:
            said = _told(shown)
            if shown[-1] is None:  # a key is not kept
                if len(self._shown) >= MOST_KNOWN:
                    self._shown.clear()
                self._shown[shown] = said
        try:
            return self._identity.authenticate(said)
        except Unauthenticated:
            return None


def _told(shown: Shown) -> Mapping[str, str]:
    """Credentials as the general way tells them, by names that need not be looked at again."""
    named = zip(CREDENTIALS, shown, strict=True)
    return MappingProxyType({name: one.decode("latin-1") for name, one in named if one is not None})


async def _whole(message: Message, receive: Receive, most: int) -> Message:
    """A body that comes in pieces, as one message; incomplete where it is too large, or its sender left."""
    body = bytearray()
    while message["type"] == "http.request":
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return {"type": "http.request", "body": bytes(body), "more_body": False}
        if len(body) > most:
            break
        message = await receive()
    return {"type": "http.request", "body": bytes(body), "more_body": True}


def _again(message: Message, receive: Receive) -> Receive:
    """What was read already, then the rest."""
    read = [message]

    async def hear() -> Message:
        return read.pop() if read else await receive()

    return hear
