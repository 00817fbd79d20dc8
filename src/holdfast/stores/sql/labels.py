"""What sessions have seen. Gained in the transaction of the outcome, looked at in that of the claim."""

from collections.abc import Awaitable, Callable, Sequence

from holdfast.model.holders import Holders
from holdfast.model.labels import implied
from holdfast.model.stage import SeenLabels, Stage
from holdfast.ports import Clock, HeldLabel, Relabelled
from holdfast.records.body import act_body
from holdfast.stores.denial import relabelled
from holdfast.stores.labels import FRESH_S, Gain
from holdfast.stores.sql.engine import Reader, Row, Transaction, Values, Writer

GAIN = """
INSERT INTO session_label (tenant, holder, label, principal, call_id, at, seen_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
ON CONFLICT (tenant, holder, label, principal, lifted_at) DO UPDATE SET seen_at = excluded.seen_at
"""
OF_NAMED = """
SELECT DISTINCT label FROM session_label
WHERE tenant = ?1 AND holder IN (?2, ?3, ?4) AND lifted_at = 0
"""
OF_PRINCIPAL = """
SELECT DISTINCT label FROM session_label WHERE tenant = ? AND principal = ? AND lifted_at = 0
"""
LIST = """
SELECT tenant, holder, label, principal, call_id, at, seen_at, lifted_at, lifted_by, note
FROM session_label WHERE tenant = ? ORDER BY holder, label, at, principal
"""
LIFT = """
UPDATE session_label SET lifted_at = ?1, lifted_by = ?2, note = ?3
WHERE tenant = ?4 AND holder = ?5 AND label = ?6 AND lifted_at = 0
"""
FORGET = "DELETE FROM session_label WHERE seen_at < ?1 AND (lifted_at = 0 OR lifted_at < ?1)"


class SqlLabels:
    def __init__(self, writer: Writer, reader: Reader, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def of(self, holders: Holders) -> frozenset[str]:
        async def ask(statement: str, values: Values) -> list[Row]:
            return await self._reader.all(holders.tenant, statement, values)

        return await _of(ask, holders)

    async def list(self, tenant: str) -> Sequence[HeldLabel]:
        return [_held(row) for row in await self._reader.slow(tenant, LIST, (tenant,))]

    async def lift(self, tenant: str, holder: str, label: str, by: str, note: str) -> int:
        now = self._clock.now()
        lifted = await self._writer.submit(tenant, True, _lift, tenant, holder, label, by, note, now)
        if lifted:  # others may believe for as long that the store has it, and not say so again
            await self._clock.sleep(FRESH_S)
        return lifted

    async def forget(self, before: float) -> int:
        return await self._writer.submit_long("*", _forget, before)


async def gain(transaction: Transaction, gained: Sequence[Gain]) -> None:
    for one in sorted(gained):  # everybody in one order, so that no two wait for each other
        await transaction.run(GAIN, one)


async def moved(transaction: Transaction, staged: Sequence[tuple[str, Stage]]) -> Relabelled | None:
    """Whether a caller has seen something else by now than the call was judged with."""
    for gate, stage in staged:
        if isinstance(stage, SeenLabels) and await _of(transaction.all, stage.holders) != stage.labels:
            return relabelled(gate)
    return None


async def _of(ask: Callable[[str, Values], Awaitable[list[Row]]], holders: Holders) -> frozenset[str]:
    tenant, principal, _ = holders
    if not (seen := holders.seen):
        rows = await ask(OF_PRINCIPAL, (tenant, principal))
    else:
        rows = await ask(OF_NAMED, (tenant, *seen, *("",) * (3 - len(seen))))
    return implied(label for (label,) in rows)


async def _lift(
    transaction: Transaction, tenant: str, holder: str, label: str, by: str, note: str, now: float
) -> int:
    lifted = await transaction.run(LIFT, (now, by, note, tenant, holder, label))
    if lifted:
        body = act_body(now, "lift_label", by, holder=holder, label=label, note=note)
        transaction.record(tenant, "", "control", now, body)
    return lifted


async def _forget(transaction: Transaction, before: float) -> int:
    return await transaction.run(FORGET, (before,))


def _held(row: Row) -> HeldLabel:
    tenant, holder, label, principal, call_id, at, seen_at, lifted_at, lifted_by, note = row
    return HeldLabel(
        tenant=tenant,
        holder=holder,
        label=label,
        principal=principal,
        call_id=call_id,
        at=at,
        seen_at=seen_at,
        lifted_at=lifted_at or None,
        lifted_by=lifted_by,
        note=note,
    )
