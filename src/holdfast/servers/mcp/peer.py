"""How is the client behind a running call asked, and told how far it has come?

A client of the older era is asked on the stream of its request. A modern one cannot be: what a tool asks it
is kept until the request is answered with it, and the call waits for the client to come back (`parked`).
"""

import asyncio
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from holdfast.model.mcp import LEVELS
from holdfast.model.peer import Unanswerable
from holdfast.servers.mcp.errors import METHOD_NOT_FOUND, MISSING_CAPABILITY

if TYPE_CHECKING:
    from holdfast.servers.mcp.exchange import Exchange

NEEDS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
"""What a client must have declared to be asked this; anything else is never asked."""
ASKABLE = frozenset(NEEDS.values())
GONE = "the client has left"
PROGRESS, MESSAGE = "notifications/progress", "notifications/message"


def can_answer(capabilities: Mapping[str, Any], method: str, params: Mapping[str, Any] | None) -> bool:
    """Whether a client declared that it can be asked this."""
    declared = capabilities.get(NEEDS.get(method, ""))
    if not isinstance(declared, Mapping):
        return False
    if method != "elicitation/create":
        return True
    mode = (params or {}).get("mode") or "form"
    return mode in declared or (mode == "form" and not declared)  # {} is how the first clients said "form"


def loud_enough(level: Any, least: str | None) -> bool:
    return level in LEVELS and least in LEVELS and LEVELS.index(level) >= LEVELS.index(least)


class Client:
    """What both kinds of client have in common; implements `model.peer.Peer` with `ask`."""

    modern = False
    _gone: asyncio.Event | None = None

    def __init__(self, exchange: "Exchange", request_state: str | None = None) -> None:
        self.exchange = exchange
        self.session = exchange.session
        self.capabilities = exchange.capabilities
        self.progress = "progressToken" in exchange.meta and exchange.progress_token is not None
        self.request_state = request_state
        self.mute = not self.capabilities or ASKABLE.isdisjoint(self.capabilities)
        """It declared nothing that it could be asked."""

    def leave(self) -> None:
        """It is not there any more: a tool that asks is told so at once, and can come to an end."""
        self._leaving().set()

    def _leaving(self) -> asyncio.Event:
        if self._gone is None:
            self._gone = asyncio.Event()
        return self._gone

    @property
    def log_level(self) -> str | None:
        # A client that never set a level is told everything, as it was before levels; a modern one nothing.
        return self.exchange.log_level or (None if self.modern else LEVELS[0])

    @property
    def input_responses(self) -> Mapping[str, Any] | None:
        given = self.exchange.params.get("inputResponses")
        return given if isinstance(given, Mapping) else None

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        said = dict(params or {})
        if method == PROGRESS:
            if (token := self.exchange.progress_token) is None:
                return
            said["progressToken"] = token
        elif method == MESSAGE and not loud_enough(said.get("level"), self.log_level):
            return
        await self.exchange.notify(method, said)

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Each kind of client is asked in its own way."""
        raise NotImplementedError

    def _check(self, method: str, params: Mapping[str, Any] | None) -> None:
        if not can_answer(self.capabilities, method, params):
            code = MISSING_CAPABILITY if self.modern else METHOD_NOT_FOUND
            raise Unanswerable(f"the client did not declare that it can be asked '{method}'", code)


class LegacyClient(Client):
    """Asked at once, on the stream of the request that waits."""

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        self._check(method, params)
        asking = asyncio.ensure_future(self.exchange.request(method, params))
        leaving = asyncio.ensure_future(self._leaving().wait())
        try:
            await asyncio.wait((asking, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise Unanswerable(GONE)
            return await asking
        except MCPError as error:
            raise Unanswerable(error.message, error.code, error.data) from None
        except ValidationError:
            raise Unanswerable(f"the client's answer to '{method}' is not one") from None
        finally:
            asking.cancel()
            leaving.cancel()


class ModernClient(Client):
    """What it is asked waits in `open` until it comes back with an answer."""

    modern = True
    _asked: asyncio.Event | None = None
    _count = 0

    @cached_property
    def open(self) -> "dict[str, tuple[dict[str, Any], asyncio.Future[Mapping[str, Any]]]]":
        return {}

    @property
    def asked(self) -> asyncio.Event:
        """Set when there is something to ask."""
        if self._asked is None:
            self._asked = asyncio.Event()
        return self._asked

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        self._check(method, params)
        if self._leaving().is_set():
            raise Unanswerable(GONE)
        self._count += 1
        name = f"ask-{self._count}"
        request: dict[str, Any] = {"method": method}
        if params is not None:
            request["params"] = dict(params)
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self.open[name] = (request, answer)
        self.asked.set()
        try:
            return await answer
        finally:
            self.open.pop(name, None)

    def leave(self) -> None:
        super().leave()
        for _, answer in self.open.values():
            if not answer.done():
                answer.set_exception(Unanswerable(GONE))

    def questions(self) -> dict[str, dict[str, Any]]:
        return {name: request for name, (request, _) in self.open.items()}

    def back(self, exchange: "Exchange") -> None:
        """The client is here again: take its answers, and talk to it on its new request. What it left
        unanswered is asked again."""
        self.exchange = exchange
        for name, said in (self.input_responses or {}).items():
            if name in self.open and isinstance(said, Mapping) and not self.open[name][1].done():
                self.open.pop(name)[1].set_result(said)
