"""How does a session of the older era work in any process on the same store?

The SDK keeps a session in the process that opened it. So the id a client gets is not the SDK's: it is sealed
for that caller and holds what the client said when it opened the session. A process that has not seen it yet
opens one like it and goes on. What cannot be carried along is a question to the client: its answer may arrive
in another process. So only the process that opened a session asks there, and only where it serves alone.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import anyio
import orjson
from starlette.types import Message, Receive, Scope, Send

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.model.call import Principal

HEADER = b"mcp-session-id"
PURPOSE = "mcp-session"
LIFE_S = 24 * 3600.0
"""How long an id is good; a client that is told 404 then opens a new session by itself."""
LONGEST = 4_000
"""Characters of an id; proxies take about 8,000 in all headers. What a client says beyond that stays here."""
MOST = 20_000
"""Sessions remembered here; the SDK keeps half as many open."""

Handle = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Session:
    """A session as this process knows it."""

    name: str
    """Opaque, and the same in every process; AUT-7."""
    local: str
    """The SDK's id of it here."""
    asks: bool
    """Whether its client can be asked something by this process."""


class Sessions:
    def __init__(self, gateway: "Gateway", *, alone: bool) -> None:
        self._gateway, self._alone = gateway, alone
        self._known: OrderedDict[tuple[str, str], Session] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._taking_up = asyncio.Lock()
        self._home = token_hex(8)

    def opened(self, principal: "Principal", params: Mapping[str, Any], local: str) -> str:
        """The id for the client, of a session it has just opened here."""
        session = Session(token_hex(16), local, asks=self._alone)
        said = {"name": session.name, "home": self._home, "params": dict(params)}
        given = self._gateway.seal(principal, PURPOSE, said, LIFE_S)
        if len(given) > LONGEST:
            given = local
        self._keep(principal, given, session)
        return given

    def known(self, principal: "Principal", given: str) -> Session | None:
        """The session of this id, where this process has it and it is theirs."""
        found = self._known.get((principal.id, given))
        if found is not None:
            self._known.move_to_end((principal.id, given))
        return found

    async def find(self, principal: "Principal", given: str, handle: Handle, scope: Scope) -> Session | None:
        """The session of this id, taken up if another process opened it; None where it is none of theirs."""
        if (known := self.known(principal, given)) is not None:
            return known
        said = self._gateway.unseal(principal, PURPOSE, given)
        if said is None or said["name"] in self._ended:
            return None
        async with self._taking_up:
            if (known := self._known.get((principal.id, given))) is not None:  # by another request of theirs
                return known
            local = await _open(handle, scope, said["params"])
            if local is None:
                return None
            session = Session(said["name"], local, asks=self._alone and said["home"] == self._home)
            self._keep(principal, given, session)
            return session

    def forget(self, principal: "Principal", given: str, *, ended: bool = False) -> None:
        """It is not here any more; `ended`: because its client said so."""
        session = self._known.pop((principal.id, given), None)
        if ended and session is not None:
            self._ended[session.name] = None
            while len(self._ended) > MOST:
                self._ended.popitem(last=False)

    def _keep(self, principal: "Principal", given: str, session: Session) -> None:
        self._known[(principal.id, given)] = session
        while len(self._known) > MOST:
            self._known.popitem(last=False)


async def _open(handle: Handle, scope: Scope, params: Mapping[str, Any]) -> str | None:
    """Say for the client what it said when it opened the session; the SDK's id of the new one."""
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": dict(params)}
    local = await _said(handle, scope, hello, None)
    if local is not None:
        await _said(handle, scope, {"jsonrpc": "2.0", "method": "notifications/initialized"}, local)
    return local


async def stay(handle: Handle, scope: Scope, local: str) -> None:
    """Keep a session open whose client is here, though the SDK does not see its requests."""
    await _said(handle, scope, {"jsonrpc": "2.0", "id": f"holdfast-{token_hex(8)}", "method": "ping"}, local)


async def _said(handle: Handle, scope: Scope, message: Mapping[str, Any], local: str | None) -> str | None:
    body = orjson.dumps(message)
    headers = [
        (b"host", b"localhost"),
        (b"accept", b"application/json, text/event-stream"),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if local is not None:
        headers.append((HEADER, local.encode()))
    found: str | None = None
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not parts:
            await anyio.sleep_forever()  # there until it is answered
        return parts.pop()

    async def send(message: Message) -> None:
        nonlocal found
        if message["type"] == "http.response.start" and message["status"] < 400:
            found = dict(message["headers"]).get(HEADER, b"").decode() or None

    await handle({**scope, "method": "POST", "headers": headers}, receive, send)
    return found
