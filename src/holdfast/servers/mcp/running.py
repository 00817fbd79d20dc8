"""How does one request become one governed call, whether or not the client is asked something on the way?

A call answers, or asks. What a modern upstream asks comes back as its result; what an older one asks comes
while it runs. To a modern client both are `input_required`, and it comes back with the answers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.model.observation import Observation, Status
from holdfast.servers.mcp import keys
from holdfast.servers.mcp.errors import lacks_capability
from holdfast.servers.mcp.parked import Parked
from holdfast.servers.mcp.peer import Client, LegacyClient, ModernClient
from holdfast.servers.mcp.state import State, opened, sealed

if TYPE_CHECKING:
    from holdfast.servers.mcp.exchange import Exchange
    from holdfast.servers.mcp.hub import Hub

KIND, ASKS = "resultType", "input_required"
HELD = Status.HELD
Propose = Callable[[Client, str], Awaitable[Observation]]
"""Makes the call, for this client, under this key where the client knows none."""


@dataclass(frozen=True, slots=True)
class Question:
    """The client is asked something before there is an answer."""

    result: dict[str, Any]


class Ran(NamedTuple):
    observation: Observation
    key: str
    """What the protocol calls the operation; empty where it needs no name."""


async def run(
    hub: "Hub",
    exchange: "Exchange",
    what: str,
    arguments: Mapping[str, Any],
    propose: Propose,
    *,
    named: bool = True,
) -> Ran | Question:
    """`named` where the protocol has to have a name for the operation."""
    state = came_back(hub, exchange, what)
    if state is not None and state.parked is not None:
        parked = hub.parking.take(state.parked, exchange.principal, arguments)
        parked.client.back(exchange)
        return await _attend(hub, exchange, what, parked, state.key or "")
    key = key_of(exchange, state) if named else ""
    upstream = None if state is None else state.upstream
    client = ModernClient(exchange, upstream) if exchange.modern else LegacyClient(exchange, upstream)
    if isinstance(client, LegacyClient):
        exchange.delivery.awaits(partial(_left, hub, client))
    if client.mute:  # nothing can happen but an answer
        return finished(hub, exchange, what, await propose(client, key), key)
    task = asyncio.ensure_future(propose(client, key))
    if isinstance(client, LegacyClient):
        return finished(hub, exchange, what, await _whole(task), key)
    parked = Parked(exchange.principal, arguments, task, client)
    return await _attend(hub, exchange, what, parked, key)


def mute(hub: "Hub", exchange: "Exchange") -> Client | None:
    """The client of a request that brings no answers, where it can be asked nothing: it only waits."""
    if "requestState" in exchange.params:
        return None
    if exchange.modern:
        alone = ModernClient(exchange)
        return alone if alone.mute else None
    client = LegacyClient(exchange)
    if not client.mute:
        return None
    exchange.delivery.awaits(partial(_left, hub, client))
    return client


def came_back(hub: "Hub", exchange: "Exchange", what: str) -> State | None:
    given = exchange.params.get("requestState") if exchange.modern else None
    if given is None:
        return None
    return opened(hub.gateway, exchange.principal, what, given)


async def _attend(hub: "Hub", exchange: "Exchange", what: str, parked: Parked, key: str) -> Ran | Question:
    """Wait until the call is over or asks something."""
    while not (parked.running.done() or parked.client.open):
        parked.client.asked.clear()
        asked = asyncio.ensure_future(parked.client.asked.wait())
        try:
            await asyncio.wait((parked.running, asked), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # the client left: what has not acted yet is not begun
            parked.running.cancel()
            parked.client.leave()
            raise
        finally:
            asked.cancel()
    if parked.running.done():
        return finished(hub, exchange, what, await parked.running, key)
    asks = {"inputRequests": parked.client.questions()}
    state = State(what=what, key=key, parked=hub.parking.park(parked))
    return Question(_input_required(hub, exchange, asks, state))


def _left(hub: "Hub", client: LegacyClient) -> None:
    client.leave()
    hub.gateway.left(client)


async def _whole(task: "asyncio.Future[Observation]") -> Observation:
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        raise


def answers(exchange: "Exchange", seen: Observation) -> bool:
    """Whether a call came to an answer that is the client's, as most do."""
    native = seen.native
    if seen.status is HELD:
        return False
    return native is None or not exchange.modern or ("error" not in native and native.get(KIND) != ASKS)


def finished(hub: "Hub", exchange: "Exchange", what: str, seen: Observation, key: str) -> Ran | Question:
    """What a call that is over comes to; of a request that told what it carries."""
    exchange.delivery.carries(seen, over=seen.status is not HELD)
    native = seen.native
    if native is None or not exchange.modern:
        return Ran(seen, key)
    if (missing := lacks_capability(native)) is not None:
        raise missing
    if native.get(KIND) != ASKS:
        return Ran(seen, key)
    given = native.get("requestState")
    state = State(what=what, key=key, upstream=given if isinstance(given, str) else None)
    return Question(_input_required(hub, exchange, native, state))


def _input_required(
    hub: "Hub", exchange: "Exchange", said: Mapping[str, Any], state: State
) -> dict[str, Any]:
    token = sealed(hub.gateway, exchange.principal, state)
    return {**said, KIND: ASKS, "requestState": token}


def key_of(exchange: "Exchange", state: State | None) -> str:
    """What the protocol calls the operation of a request."""
    if state is not None and state.key:
        return state.key
    return keys.fresh() if exchange.modern else keys.of_request(exchange.session, exchange.request_id)
