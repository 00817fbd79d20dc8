"""Did the client get the answer?

An operation whose answer nobody got is adopted by the next equal call of a client that knows no keys (IDM-1).
The call and the connection end in either order: a client may leave before its call is done, and a call is
done before its answer is sent.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from holdfast.model.vocabulary import KeySource

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.model.call import Principal
    from holdfast.model.observation import Observation

OURS = (KeySource.REQUEST, KeySource.ADOPTED)
"""Who names the operation knows what became of it; these the protocol named."""

_telling: set[asyncio.Task[None]] = set()


class Delivery:
    """The answer to one request on its way out."""

    _calls: tuple[str, ...] = ()
    _fetched: str | None = None
    _arrived: bool | None = None
    _left: Callable[[], None] | None = None

    def __init__(self, gateway: "Gateway", principal: "Principal") -> None:
        self._gateway, self._principal = gateway, principal

    def awaits(self, left: Callable[[], None]) -> None:
        """A call is under way; `left` is for a client that goes before it is over, and takes nothing back."""
        self._left = left

    def carries(self, observation: "Observation", *, over: bool = False) -> None:
        """The answer tells of this call; `over` where nothing more can come of it."""
        if over:
            self._left = None
        if observation.key_source not in OURS:
            return
        if self._arrived is None:
            self._calls = (*self._calls, observation.call_id)
        else:
            self._tell(observation.call_id, self._arrived)

    def fetches(self, observation: "Observation") -> None:
        """The answer tells what became of a call nobody waits for."""
        if observation.key_source in OURS:
            self._fetched = observation.call_id

    def ended(self, arrived: bool) -> None:
        """The answer was handed over to a client that was there, or was not."""
        if self._arrived is not None:
            return
        self._arrived = arrived
        if not arrived and self._left is not None:
            self._left()  # also where a call is answered already: one that was held may be running again
        for call_id in self._calls:
            self._tell(call_id, arrived)
        if arrived and self._fetched is not None:
            _later(self._gateway.fetched(self._principal, self._fetched))

    def _tell(self, call_id: str, arrived: bool) -> None:
        _later(self._told(call_id, arrived))

    async def _told(self, call_id: str, arrived: bool) -> None:
        tell = self._gateway.delivered if arrived else self._gateway.abandoned
        await tell(self._principal, call_id)


def _later(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.get_running_loop().create_task(work)
    _telling.add(task)
    task.add_done_callback(_telling.discard)
