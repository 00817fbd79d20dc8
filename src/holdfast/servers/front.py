"""Which requests take the short way, and what becomes of all others?

Most requests are calls that need nothing unusual. Those go from the socket to the gateway by a few small
functions. Whatever is not plainly one of them goes the general way, with what was read of its body, and is
answered there as if there were no other: nothing is refused here.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any

from starlette.applications import Starlette
from starlette.types import Message, Receive, Scope, Send

from holdfast.gateway import Gateway
from holdfast.identity import Unauthenticated
from holdfast.identity.identity import AGENT, SECRET, USER
from holdfast.identity.standing import Standing
from holdfast.model.call import Principal
from holdfast.servers.answers import TransportError
from holdfast.servers.guard import refuse_strangers, response_to
from holdfast.servers.offers import FIELDS
from holdfast.servers.visit import body_limits

CREDENTIALS = {name: name.encode() for name in (USER, AGENT, "authorization")}
_USER, _AGENT, _SECRET = USER.encode(), AGENT.encode(), SECRET.encode()
MOST_KNOWN = 1024
"""Combinations of headers that are remembered; anybody can make up more of them."""

Headers = Mapping[bytes, bytes]
Seen = tuple[str | None, bytes | None, bytes | None, bytes | None, bytes | None]
"""From where a request came, to which name of ours, from which site, and who it says sent it."""


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
        self._now = gateway.identity.now
        self._standing: dict[Seen, Standing] = {}
        gateway.identity.caches.append(self._standing.clear)

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
        headers: Headers | None = scope.get(FIELDS)
        if headers is None:
            headers = dict(scope["headers"])
            declared = headers.get(b"content-length", b"0")
            if len(headers) != len(scope["headers"]) or len(declared) > 9 or not declared.isdigit():
                return receive
            if int(declared) > self._most:  # nothing is read that says it is too large
                return receive
        principal = self._lets_in(scope, headers)
        if principal is None:
            return receive
        message = await receive()
        if message["type"] != "http.request" or message.get("more_body", False):
            message = await _whole(message, receive, self._most)
            if message["more_body"]:
                return _again(message, receive)
        body = message.get("body", b"")
        if len(body) > self._most:
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

    def _lets_in(self, scope: Scope, headers: Headers) -> Principal | None:
        """Who sent this, if they may be here; not where that takes a slow hash.

        On this machine names are as good as credentials, so what follows from them is remembered.
        """
        if _SECRET in headers:
            return None
        if not self._local:
            standing = self._known(headers)
            return None if standing is None else standing.principal
        if b"authorization" in headers:  # whoever shows a credential is taken by it
            standing = self._welcome(scope, headers)
            return None if standing is None else standing.principal
        client, get = scope.get("client"), headers.get
        seen = None if client is None else client[0], get(b"host"), get(b"origin"), get(_USER), get(_AGENT)
        standing = self._standing.get(seen)
        if standing is None or (standing.until != inf and self._now() >= standing.until):
            standing = self._welcome(scope, headers)
            if standing is None:
                return None
            if len(self._standing) >= MOST_KNOWN:
                self._standing.clear()
            self._standing[seen] = standing
        return standing.principal

    def _welcome(self, scope: Scope, headers: Headers) -> Standing | None:
        """By the same rules as `guard`."""
        try:
            refuse_strangers(scope)
        except TransportError:
            return None
        return self._known(headers)

    def _known(self, headers: Headers) -> Standing | None:
        try:
            return self._identity.standing(_told(headers))
        except Unauthenticated:
            return None


def _told(headers: Headers) -> Mapping[str, str]:
    """Credentials as the general way tells them, by names that need not be looked at again."""
    said = {name: headers.get(raw) for name, raw in CREDENTIALS.items()}
    return MappingProxyType({name: one.decode("latin-1") for name, one in said.items() if one is not None})


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
