"""The brakes. A claim looks at the halts in its own transaction: one is felt everywhere at once."""

from collections.abc import Mapping, Sequence

from holdfast.ports import Clock
from holdfast.records.body import act_body
from holdfast.stores.halted import EVERYWHERE, describe
from holdfast.stores.sql.engine import CANCELLED, HALTED, HALTS, Reader, Row, Transaction, Writer


class SqlControls:
    def __init__(self, writer: Writer, reader: Reader, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def halt(self, target: str, by: str, note: str) -> None:
        await self._writer.submit(EVERYWHERE, True, _halt, target, by, note, self._clock.now())

    async def resume(self, target: str, by: str) -> bool:
        return await self._writer.submit(EVERYWHERE, True, _resume, target, by, self._clock.now())

    async def halts(self) -> Mapping[str, str]:
        rows = await self._read(f"{HALTS} ORDER BY target")
        return {target: describe(by, note) for target, by, note in rows}

    async def request_cancel(self, tenant: str, call_id: str, by: str) -> None:
        await self._writer.submit(tenant, True, _cancel, tenant, call_id, by, self._clock.now())

    async def cancellations(self) -> Sequence[str]:
        return [call_id for (call_id,) in await self._read("SELECT call_id FROM cancel ORDER BY at, call_id")]

    async def _read(self, statement: str) -> list[Row]:
        return await self._reader.all(EVERYWHERE, statement)


async def _halt(transaction: Transaction, target: str, by: str, note: str, now: float) -> None:
    await transaction.brake()
    await transaction.run(
        "INSERT INTO halt VALUES (?, ?, ?, ?, ?) ON CONFLICT (tenant, target) DO UPDATE SET"
        " halted_by = excluded.halted_by, note = excluded.note, at = excluded.at",
        (EVERYWHERE, target, by, note, now),
    )
    transaction.record(EVERYWHERE, "", "control", now, act_body(now, "halt", by, target=target, note=note))
    transaction.ring(HALTED)


async def _resume(transaction: Transaction, target: str, by: str, now: float) -> bool:
    await transaction.brake()
    gone = await transaction.run("DELETE FROM halt WHERE tenant = ? AND target = ?", (EVERYWHERE, target))
    if gone == 0:
        return False
    transaction.record(EVERYWHERE, "", "control", now, act_body(now, "resume", by, target=target))
    transaction.ring(HALTED)
    return True


async def _cancel(transaction: Transaction, tenant: str, call_id: str, by: str, now: float) -> None:
    new = await transaction.run(
        "INSERT INTO cancel VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", (tenant, call_id, by, now)
    )
    if new == 1:
        transaction.record(tenant, call_id, "control", now, act_body(now, "cancel", by))
        transaction.ring(CANCELLED)
