"""Which tool of a capability answers for a key? Asked in the transaction of a claim, moved in one of its own.

Whoever claims and whoever moves takes the row first: who moves sees every claim that was made, and who claims
every move.
"""

from collections.abc import Sequence

from holdfast.model.operation import OperationRef
from holdfast.model.stage import AnswerFor
from holdfast.ports import Clock, Denied, Place
from holdfast.stores.denial import elsewhere
from holdfast.stores.sql.engine import Reader, Transaction, Writer

FIND = """
SELECT tool FROM capability_level WHERE tenant = ? AND principal = ? AND capability = ? AND key = ?
"""
TAKE = "INSERT INTO capability_level VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
IN_FORCE = f"{FIND} /* FOR UPDATE */"
MOVE = """
UPDATE capability_level SET tool = ?5, updated_at = ?6
WHERE tenant = ?1 AND principal = ?2 AND capability = ?3 AND key = ?4
"""
STATE = "SELECT state FROM operation WHERE tenant = ? AND principal = ? AND tool = ? AND key = ?"
ACTED = """
SELECT tool FROM operation
WHERE tenant = ? AND principal = ? AND key = ? AND state <> 'no_effect' AND tool IN ({}) LIMIT 1
"""

UNDONE = frozenset({None, "no_effect"})
"""States of an operation that is not there, or has done nothing: another tool may be claimed."""
FREE = UNDONE | {"held"}
"""The same, of one that does nothing until it is claimed again: the gateway may go on elsewhere."""


class SqlCapabilities:
    def __init__(self, writer: Writer, reader: Reader, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def tool(self, place: Place) -> str | None:
        rows = await self._reader.all(place.tenant, FIND, place)
        return rows[0][0] if rows else None

    async def move(self, place: Place, tool: str, to: str, tools: Sequence[str] = ()) -> str:
        now = self._clock.now()
        return await self._writer.submit(place.tenant, True, _move, place, tool, to, tools, now)


async def check(
    transaction: Transaction, gate: str, stage: AnswerFor, ref: OperationRef | None, now: float
) -> Denied | None:
    """Whether this tool may be claimed under the key; from then on no other one can be."""
    if ref is None:
        return None  # a read: many answers do no harm
    place = Place(ref.tenant, ref.principal, stage.capability, ref.key)
    in_force = await _in_force(transaction, place, ref.tool, stage.tools, now)
    if in_force == ref.tool:
        return None
    if await _state(transaction, place, in_force) not in UNDONE:
        return elsewhere(gate, stage)
    await transaction.run(MOVE, (*place, ref.tool, now))
    return None


async def _move(
    transaction: Transaction, place: Place, tool: str, to: str, tools: Sequence[str], now: float
) -> str:
    in_force = await _in_force(transaction, place, tool, tools, now)
    if in_force != tool:
        return in_force
    if await _state(transaction, place, tool) not in FREE:
        return tool
    await transaction.run(MOVE, (*place, to, now))
    return to


async def _in_force(
    transaction: Transaction, place: Place, tool: str, tools: Sequence[str], now: float
) -> str:
    if await transaction.run(TAKE, (*place, tool, now)) == 1:
        return await _acted(transaction, place, tool, tools, now)
    found = await transaction.one(IN_FORCE, place)
    assert found is not None  # noqa: S101  no such row is ever deleted
    in_force: str = found[0]
    return in_force


async def _acted(transaction: Transaction, place: Place, tool: str, tools: Sequence[str], now: float) -> str:
    """Who was called under a key before anybody was said to answer for it, else `tool`."""
    others = [one for one in tools if one != tool]
    if not others:
        return tool
    acted = ACTED.format(", ".join("?" * len(others)))
    found = await transaction.one(acted, (place.tenant, place.principal, place.key, *others))
    if found is None:
        return tool
    await transaction.run(MOVE, (*place, found[0], now))
    before: str = found[0]
    return before


async def _state(transaction: Transaction, place: Place, tool: str) -> str | None:
    found = await transaction.one(STATE, (place.tenant, place.principal, tool, place.key))
    return None if found is None else found[0]
