"""The brakes on SQLite. A claim looks at the halts in its own transaction: one is felt everywhere at once."""

import sqlite3
from collections.abc import Mapping, Sequence

from holdfast.model.errors import StoreError
from holdfast.ports import Clock
from holdfast.records.body import act_body
from holdfast.stores.halted import EVERYWHERE, describe
from holdfast.stores.sqlite.writer import Transaction, Writer


class SqliteControls:
    def __init__(self, writer: Writer, reader: sqlite3.Connection, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def halt(self, target: str, by: str, note: str) -> None:
        await self._writer.submit(True, _halt, target, by, note, self._clock.now())

    async def resume(self, target: str, by: str) -> bool:
        return await self._writer.submit(True, _resume, target, by, self._clock.now())

    async def halts(self) -> Mapping[str, str]:
        rows = self._read("SELECT target, halted_by, note FROM halt WHERE tenant = '*' ORDER BY target")
        return {target: describe(by, note) for target, by, note in rows}

    async def request_cancel(self, tenant: str, call_id: str, by: str) -> None:
        await self._writer.submit(True, _cancel, tenant, call_id, by, self._clock.now())

    async def cancellations(self) -> Sequence[str]:
        return [call_id for (call_id,) in self._read("SELECT call_id FROM cancel ORDER BY at, call_id")]

    def _read(self, statement: str) -> list[tuple[str, ...]]:
        try:
            return self._reader.execute(statement).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"the store cannot be read: {error}") from error


def _halt(transaction: Transaction, target: str, by: str, note: str, now: float) -> None:
    transaction.execute(
        "INSERT INTO halt VALUES (?, ?, ?, ?, ?) ON CONFLICT (tenant, target) DO UPDATE SET"
        " halted_by = excluded.halted_by, note = excluded.note, at = excluded.at",
        (EVERYWHERE, target, by, note, now),
    )
    transaction.forget_halts()
    transaction.record(EVERYWHERE, "", "control", now, act_body(now, "halt", by, target=target, note=note))


def _resume(transaction: Transaction, target: str, by: str, now: float) -> bool:
    gone = transaction.execute("DELETE FROM halt WHERE tenant = ? AND target = ?", (EVERYWHERE, target))
    if gone.rowcount == 0:
        return False
    transaction.forget_halts()
    transaction.record(EVERYWHERE, "", "control", now, act_body(now, "resume", by, target=target))
    return True


def _cancel(transaction: Transaction, tenant: str, call_id: str, by: str, now: float) -> None:
    new = transaction.execute(
        "INSERT INTO cancel VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", (tenant, call_id, by, now)
    )
    if new.rowcount == 1:
        transaction.record(tenant, call_id, "control", now, act_body(now, "cancel", by))
