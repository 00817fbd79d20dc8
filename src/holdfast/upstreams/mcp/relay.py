"""Which client gets what a server sends beside its answers?

The one whose call it belongs to. Where the transport does not say which call that is, everything in flight
must belong to one client, else nobody gets it: what is meant for one never goes to another.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from holdfast.model.mcp import LEVELS
from holdfast.model.peer import Peer, Unanswerable
from holdfast.model.timeout import timeout
from holdfast.upstreams.mcp.errors import METHOD_NOT_FOUND
from holdfast.upstreams.mcp.exchange import Exchange
from holdfast.upstreams.mcp.protocol import SUBSCRIPTION_ID_META_KEY

log = logging.getLogger(__name__)

QUESTIONS = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
INVALID_REQUEST = -32600
TELL_S = 2.0
"""How long a client may take to be told something before it is told nothing more of this call."""
LEFT_S = 60.0
"""How long a server may go on with a call it was told to give up."""


class Left:
    """Whose calls were given up here a moment ago: the server may still be at work on them, and ask."""

    def __init__(self) -> None:
        self._owners: dict[int, tuple[str | None, float]] = {}

    def add(self, number: int, owner: str | None) -> None:
        now = asyncio.get_running_loop().time()
        self._owners = {n: one for n, one in self._owners.items() if one[1] > now}
        self._owners[number] = owner, now + LEFT_S

    def discard(self, number: int | None) -> None:
        """It is over there too."""
        if number is not None:
            self._owners.pop(number, None)

    def others(self, owner: str | None) -> bool:
        """Whether any of them was somebody else's."""
        now = asyncio.get_running_loop().time()
        return any(whose != owner and until > now for whose, until in self._owners.values())


def sole(in_flight: Iterable[Exchange], left: Left) -> Exchange | None:
    """The call to which something without an address must belong, if there is only one client."""
    found: Exchange | None = None
    for exchange in in_flight:
        if exchange.peer is None or (found is not None and found.owner != exchange.owner):
            return None
        found = exchange
    return None if found is None or left.others(found.owner) else found


def listened(params: dict[str, Any] | None) -> bool:
    """Whether a notification belongs to the gateway's own listening, and to no client."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, dict) and SUBSCRIPTION_ID_META_KEY in meta


async def tell(exchange: Exchange, method: str, params: dict[str, Any] | None) -> None:
    """Pass a notification on to the client behind an exchange, if it wants it."""
    peer = exchange.peer
    if peer is None or exchange.deaf or (method == "notifications/message" and not _wanted(peer, params)):
        return
    if method == "notifications/progress":
        if not peer.progress:
            return
        params = {name: value for name, value in (params or {}).items() if name != "progressToken"}
    if exchange.hidden is not None:
        params = exchange.hidden.purged(params)
    try:
        async with timeout(TELL_S):
            await peer.tell(method, params)
    except TimeoutError:
        exchange.deaf = True  # its answer is worth more than what it does not listen to
    except Exception:
        log.debug("a client could not be told %s", method, exc_info=True)


def _wanted(peer: Peer, params: dict[str, Any] | None) -> bool:
    least, level = peer.log_level, (params or {}).get("level")
    if least is None:
        return not peer.modern  # modern clients opt in, others take what the server chooses
    return level not in LEVELS or least not in LEVELS or LEVELS.index(level) >= LEVELS.index(least)


async def answered(message: dict[str, Any], exchange: Exchange | None) -> dict[str, Any]:
    """The answer to a request of the server, from the client behind `exchange`."""
    method, params = message.get("method"), message.get("params")
    head = {"jsonrpc": "2.0", "id": message.get("id")}
    if method == "ping":
        return {**head, "result": {}}
    if method not in QUESTIONS:
        return {**head, "error": {"code": METHOD_NOT_FOUND, "message": f"{method!r} is not served here"}}
    if exchange is None or exchange.peer is None:
        said = "no single client has calls in flight here, so nobody can be asked"
        return {**head, "error": {"code": INVALID_REQUEST, "message": said}}
    if exchange.hidden is not None:
        params = exchange.hidden.purged(params)
    try:
        result = await exchange.peer.ask(method, params if isinstance(params, dict) else None)
    except Unanswerable as error:
        told = {"code": error.code, "message": str(error)}
        return {**head, "error": told if error.data is None else {**told, "data": error.data}}
    except Exception:
        log.debug("a client could not be asked %s", method, exc_info=True)
        return {**head, "error": {"code": -32603, "message": "the client could not be asked"}}
    return {**head, "result": dict(result)}
