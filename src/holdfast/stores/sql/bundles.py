"""Promoted policies. A claim looks at the promotions in its own transaction, as at the halts."""

from collections.abc import Sequence

from holdfast.ports import Clock, Promoted
from holdfast.records.body import act_body
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.sql.engine import ACTIVE_VERSION, POLICIES, Reader, Row, Transaction, Writer

LIST = """
SELECT number, version, content, promoted_by, note, at, ended_by
FROM promotion JOIN bundle USING (tenant, version) WHERE tenant = '*' ORDER BY number DESC
"""
STANDING = """
SELECT number, version FROM promotion WHERE tenant = '*' AND ended_by IS NULL ORDER BY number DESC LIMIT 2
"""
ACTIVE = LIST.replace("ORDER BY", "AND ended_by IS NULL ORDER BY") + "LIMIT 1"


class SqlBundles:
    def __init__(self, writer: Writer, reader: Reader, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def active(self) -> Promoted | None:
        rows = await self._read(ACTIVE)
        return _promoted(rows[0]) if rows else None

    async def active_version(self) -> str | None:
        rows = await self._read(ACTIVE_VERSION)
        return rows[0][0] if rows else None

    async def promote(self, version: str, content: str, by: str, note: str, *, first: bool = False) -> bool:
        now = self._clock.now()
        return await self._writer.submit(EVERYWHERE, True, _promote, version, content, by, note, first, now)

    async def rollback(self, by: str, note: str) -> Promoted | None:
        back = await self._writer.submit(EVERYWHERE, True, _rollback, by, note, self._clock.now())
        return await self.active() if back else None

    async def list(self) -> Sequence[Promoted]:
        return [_promoted(row) for row in await self._read(LIST)]

    async def _read(self, statement: str) -> Sequence[Row]:
        return await self._reader.all(EVERYWHERE, statement)


async def _promote(
    transaction: Transaction, version: str, content: str, by: str, note: str, first: bool, now: float
) -> bool:
    await transaction.brake()
    [(number,)] = await transaction.all("SELECT coalesce(max(number), 0) FROM promotion")
    if await transaction.promoted() == version or (first and number):
        return False
    kept = (EVERYWHERE, version, content)
    await transaction.run("INSERT INTO bundle VALUES (?, ?, ?) ON CONFLICT DO NOTHING", kept)
    promotion = (EVERYWHERE, number + 1, version, by, note, now)
    await transaction.run("INSERT INTO promotion VALUES (?, ?, ?, ?, ?, ?, NULL)", promotion)
    body = act_body(now, "promote", by, version=version, note=note)
    transaction.record(EVERYWHERE, "", "policy", now, body)
    transaction.ring(POLICIES)
    return True


async def _rollback(transaction: Transaction, by: str, note: str, now: float) -> bool:
    await transaction.brake()
    standing = await transaction.all(STANDING)
    if len(standing) < 2:
        return False
    (number, left), (_, version) = standing
    await transaction.run(
        "UPDATE promotion SET ended_by = ? WHERE tenant = ? AND number = ?", (by, EVERYWHERE, number)
    )
    body = act_body(now, "rollback", by, version=version, left=left, note=note)
    transaction.record(EVERYWHERE, "", "policy", now, body)
    transaction.ring(POLICIES)
    return True


def _promoted(row: Row) -> Promoted:
    number, version, content, by, note, at, ended_by = row
    return Promoted(
        number=number, version=version, content=content, by=by, note=note, at=at, ended_by=ended_by
    )
