"""Which labels does the end of a call bring, and is that news to the store?"""

from typing import NamedTuple

import orjson

from holdfast.model.call import Call
from holdfast.model.holders import brought, holders, holders_then
from holdfast.model.observation import Observation
from holdfast.model.operation import Operation

FRESH_S = 1.0
"""How long a process believes that the store still has what it wrote. Whoever lifts a label waits that long:
what was read until then is what was lifted."""
MOST = 16_384


class Gain(NamedTuple):
    """A row of the table of labels."""

    tenant: str
    holder: str
    label: str
    principal: str
    call_id: str
    at: float


def gains(call: Call, observation: Observation, now: float) -> tuple[Gain, ...]:
    """What somebody has seen once this observation is told."""
    if not (labels := brought(call, observation)):
        return ()
    who = holders(call.proposal)
    return tuple(
        Gain(who.tenant, holder, label, who.principal, call.id, now)
        for holder in who.gaining
        for label in labels
    )


def settled(operation: Operation, labels: tuple[str, ...], now: float) -> tuple[Gain, ...]:
    """The same, of an outcome that was found out later: the proposal that is kept says in whose session."""
    if not labels or operation.payload is None:
        return ()
    said, ref = orjson.loads(operation.payload), operation.ref
    named = {name: said[name] for name in ("session", "task")}
    who = holders_then(
        {"tenant": ref.tenant, "principal": ref.principal, "user": said["principal"]["user"], **named}
    )
    return tuple(
        Gain(who.tenant, holder, label, who.principal, operation.call_id, now)
        for holder in who.gaining
        for label in labels
    )


class Known:
    """Labels that the store is known to have, for as long as that can be believed."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, ...], float] = {}

    def news(self, gained: tuple[Gain, ...], now: float) -> tuple[Gain, ...]:
        """Those that must be written; `now` is monotonic."""
        until = self._until
        return tuple(gain for gain in gained if until.get(gain[:4], now) <= now)

    def add(self, gained: tuple[Gain, ...], now: float) -> None:
        """They are committed; `now` was before they were submitted."""
        if not gained:
            return
        if len(self._until) > MOST:
            self._until.clear()
        for gain in gained:
            self._until[gain[:4]] = now + FRESH_S
