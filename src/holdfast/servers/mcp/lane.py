"""How does a plain `tools/call` go to its tool and back without the SDK?

The caller is known and the body is read (`front`); what is not plainly right is left to the SDK (`plain`).
What remains is handled by the same function as any other call, and written as it is.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from mcp.server.runner import modern_error_data
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp_types import JSONRPCError

from holdfast.model.strict_json import Limits, ParseError, parse
from holdfast.servers.front import Plain
from holdfast.servers.mcp.answering import Answer, Room, encoded
from holdfast.servers.mcp.calls import call_permitted
from holdfast.servers.mcp.delivery import Delivery
from holdfast.servers.mcp.errors import told
from holdfast.servers.mcp.exchange import Exchange
from holdfast.servers.mcp.names import Entry
from holdfast.servers.mcp.older import Caller, Older
from holdfast.servers.mcp.plain import CALL, MODERN, Asked, Forms, asked, mirrors, plain_meta
from holdfast.servers.mcp.results import enveloped
from holdfast.servers.mcp.sessions import HEADER
from holdfast.servers.mcp.shown import descriptor

if TYPE_CHECKING:
    from mcp.server.connection import Connection

    from holdfast.servers.mcp.hub import Hub


class Lane:
    def __init__(self, hub: "Hub", older: Older, limits: Limits, stamp: Mapping[str, Any]) -> None:
        self._gateway = hub.gateway
        self._hub, self.older, self._limits, self._stamp = hub, older, limits, stamp
        self._forms, self._room = Forms(), Room()
        self._loop = asyncio.get_running_loop()
        self._home, self._numbers = token_hex(12), count()
        self._names = hub.names
        self._entries: dict[str, Entry] = {}

    async def take(self, plain: Plain) -> bool:
        """Answers a call; False for whatever else it is, or might be."""
        headers = plain.headers
        if b"origin" in headers or not self._forms.takes_both(headers):
            return False
        try:
            found = asked(parse(plain.body, self._limits))
        except ParseError:
            return False
        if found is None:
            return False
        if HEADER in headers:
            return await self._in_session(plain, found)
        return headers.get(b"mcp-protocol-version") in MODERN and await self._modern(plain, found)

    async def _modern(self, plain: Plain, found: Asked) -> bool:
        entry = self._entry(plain, found[1]["name"])
        if entry is None or not self._forms.names_itself(plain.headers, found):
            return False
        task = asyncio.current_task(self._loop)
        assert task is not None  # noqa: S101  # a coroutine runs in one
        answer = RawLine(plain.scope, plain.receive, plain.send, task.cancel)
        delivery = Delivery(self._gateway, plain.principal)
        session = f"{self._home}-{next(self._numbers)}"
        exchange = self._exchange(plain, found, delivery, answer, session)
        arrived = False
        self._room.enter(answer)
        try:
            body, status = await self._called(exchange, entry)
            arrived = answer.at_once(body, status) or await answer.give(body, status)
        except asyncio.CancelledError:
            if not answer.left:
                raise
            task.uncancel()
        finally:
            self._over(plain, answer, delivery, arrived)
        return True

    async def _in_session(self, plain: Plain, found: Asked) -> bool:
        params = found[1]
        entry, caller = self._entry(plain, params["name"]), self.older.caller(plain)
        if entry is None or caller is None or not plain_meta(params.get("_meta", {})):
            return False
        running = self.older.begin(caller, found[0])
        if running is None:
            return False
        delivery = Delivery(self._hub.gateway, plain.principal)
        # The call of a client that leaves goes on, and may be asked for again.
        answer = RawLine(plain.scope, plain.receive, plain.send, partial(delivery.ended, False))
        answer.caller = caller
        exchange = self._exchange(plain, found, delivery, answer, caller.session.name)
        exchange.modern, exchange.asks = False, caller.session.asks
        arrived = False
        self._room.enter(answer)
        try:
            body, status = await self._called(exchange, entry)
            self.older.done(running)
            arrived = answer.at_once(body, status) or await answer.give(body, status)
        except asyncio.CancelledError:
            if running.stopped is None:
                raise
            running.task.uncancel()
            why, status = running.stopped
            message = {"jsonrpc": "2.0", "id": found[0] if status == 200 else None, "error": why}
            arrived = await answer.give(encoded(message), status)
        finally:
            self.older.done(running)
            self._over(plain, answer, delivery, arrived)
        return True

    def _exchange(
        self, plain: Plain, found: Asked, delivery: Delivery, line: "RawLine", session: str
    ) -> Exchange:
        request_id, params = found
        return Exchange(
            plain.principal,
            session,
            delivery,
            True,  # modern, until it is known to be older
            params,
            params.get("_meta", {}),
            request_id,
            line,
            raw=True,
        )

    def _over(self, plain: Plain, answer: Answer, delivery: Delivery, arrived: bool) -> None:
        plain.begun = answer.begun
        self._room.leave(answer)
        delivery.ended(arrived)

    def _entry(self, plain: Plain, name: str) -> Entry | None:
        """A tool that is there for this caller, and whose arguments need not be repeated in headers.

        One that is not theirs goes the same way as one that nobody has, or the ways could be told apart.
        """
        if self._names is not self._hub.names:
            self._names, self._entries = self._hub.names, {}
        entry = self._entries.get(name)
        if entry is None:
            entry = self._names.by_name.get(name)
            if entry is None or mirrors(descriptor(entry).get("inputSchema")):
                return None
            self._entries[name] = entry
        return entry if self._hub.may(plain.principal, entry.tool) else None

    async def _called(self, exchange: Exchange, entry: Entry) -> tuple[bytes, int]:
        try:
            whole = await call_permitted(self._hub, exchange, entry, exchange.params.get("arguments") or {})
        except Exception as error:
            return _refused(exchange, error)
        result = enveloped(whole, self._stamp if exchange.modern else None, own=True)
        return encoded({"jsonrpc": "2.0", "id": exchange.request_id, "result": result}), 200


class RawLine(Answer):
    """Straight to the client's connection."""

    caller: Caller | None = None
    """In the older era."""

    @property
    def connection(self) -> "Connection":
        if self.caller is None:
            raise RuntimeError("a modern request stands alone")
        return self.caller.connection

    @property
    def capabilities(self) -> Mapping[str, Any]:
        return {} if self.caller is None else self.caller.capabilities

    @property
    def client(self) -> str | None:
        return None if self.caller is None else self.caller.client

    async def request(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        raise RuntimeError("a client that can be asked is served by the SDK")

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = dict(params)
        await self.tell(message)


def _refused(exchange: Exchange, error: Exception) -> tuple[bytes, int]:
    said = modern_error_data(told(error, CALL))
    message = JSONRPCError(jsonrpc="2.0", id=exchange.request_id, error=said)
    status = ERROR_CODE_HTTP_STATUS.get(said.code, 200) if exchange.modern else 200
    return encoded(message.model_dump(mode="json", by_alias=True, exclude_none=True)), status
