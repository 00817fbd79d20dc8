"""Promoted policies on SQLite. A claim looks at the promotions in its own transaction, as at the halts."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from holdfast.model.errors import StoreError
from holdfast.ports import Clock, Promoted
from holdfast.records.body import act_body
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.sqlite.writer import ACTIVE_VERSION, Transaction, Writer

LIST = """
SELECT number, version, content, promoted_by, note, at, ended_by
FROM promotion JOIN bundle USING (tenant, version) WHERE tenant = '*' ORDER BY number DESC
"""
STANDING = """
SELECT number, version FROM promotion WHERE tenant = '*' AND ended_by IS NULL ORDER BY number DESC LIMIT 2
"""
ACTIVE = LIST.replace("ORDER BY", "AND ended_by IS NULL ORDER BY") + "LIMIT 1"


Row = tuple[Any, ...]
Rows = list[Row]


class SqliteBundles:
    def __init__(self, writer: Writer, reader: sqlite3.Connection, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def active(self) -> Promoted | None:
        rows = self._read(ACTIVE)
        return _promoted(rows[0]) if rows else None

    async def active_version(self) -> str | None:
        rows = self._read(ACTIVE_VERSION)
        return rows[0][0] if rows else None

    async def promote(self, version: str, content: str, by: str, note: str, *, first: bool = False) -> bool:
        now = self._clock.now()
        return await self._writer.submit(True, _promote, version, content, by, note, first, now)

    async def rollback(self, by: str, note: str) -> Promoted | None:
        back = await self._writer.submit(True, _rollback, by, note, self._clock.now())
        return await self.active() if back else None

    async def list(self) -> Sequence[Promoted]:
        return [_promoted(row) for row in self._read(LIST)]

    def _read(self, statement: str) -> Rows:
        try:
            return self._reader.execute(statement).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"the store cannot be read: {error}") from error


def _promote(
    transaction: Transaction, version: str, content: str, by: str, note: str, first: bool, now: float
) -> bool:
    [(number,)] = transaction.execute("SELECT coalesce(max(number), 0) FROM promotion").fetchall()
    if transaction.promoted() == version or (first and number):
        return False
    kept = (EVERYWHERE, version, content)
    transaction.execute("INSERT INTO bundle VALUES (?, ?, ?) ON CONFLICT DO NOTHING", kept)
    promotion = (EVERYWHERE, number + 1, version, by, note, now)
    transaction.execute("INSERT INTO promotion VALUES (?, ?, ?, ?, ?, ?, NULL)", promotion)
    transaction.forget_halts()
    body = act_body(now, "promote", by, version=version, note=note)
    transaction.record(EVERYWHERE, "", "policy", now, body)
    return True


def _rollback(transaction: Transaction, by: str, note: str, now: float) -> bool:
    standing = transaction.execute(STANDING).fetchall()
    if len(standing) < 2:
        return False
    (number, left), (_, version) = standing
    transaction.execute(
        "UPDATE promotion SET ended_by = ? WHERE tenant = ? AND number = ?", (by, EVERYWHERE, number)
    )
    transaction.forget_halts()
    body = act_body(now, "rollback", by, version=version, left=left, note=note)
    transaction.record(EVERYWHERE, "", "policy", now, body)
    return True


def _promoted(row: Row) -> Promoted:
    number, version, content, by, note, at, ended_by = row
    return Promoted(
        number=number, version=version, content=content, by=by, note=note, at=at, ended_by=ended_by
    )
