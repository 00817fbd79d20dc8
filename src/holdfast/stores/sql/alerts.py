"""What is wrong now, and was. One of a kind and subject is open at a time, whoever raises it."""

from collections.abc import Sequence

import orjson

from holdfast.model.people import Alert
from holdfast.ports import Clock
from holdfast.stores.alerts import ended_body, raised_body
from holdfast.stores.sql.engine import Reader, Row, Transaction, Writer

_RAISE = """
INSERT INTO alert (tenant, id, kind, subject, text, facts, at, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
_SEEN = """
UPDATE alert SET text = ?1, facts = ?2, seen_at = ?3
WHERE tenant = ?4 AND kind = ?5 AND subject = ?6 AND ended_at IS NULL AND seen_at < ?3
"""
_END = "UPDATE alert SET ended_at = ? WHERE tenant = ? AND id = ? AND ended_at IS NULL"
_OPEN = """
SELECT tenant, id, kind, subject, text, facts, at, seen_at, ended_at FROM alert
WHERE tenant = ? AND ended_at IS NULL ORDER BY at DESC, id DESC
"""
_LIST = """
SELECT tenant, id, kind, subject, text, facts, at, seen_at, ended_at FROM alert
WHERE tenant = ? AND at >= ? ORDER BY at DESC, id DESC LIMIT ?
"""
_FORGET = "DELETE FROM alert WHERE ended_at < ?"


class SqlAlerts:
    def __init__(self, writer: Writer, reader: Reader, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def open(self, tenant: str) -> Sequence[Alert]:
        return [_read(row) for row in await self._reader.all(tenant, _OPEN, (tenant,))]

    async def list(self, tenant: str, since: float, limit: int) -> Sequence[Alert]:
        return [_read(row) for row in await self._reader.slow(tenant, _LIST, (tenant, since, limit))]

    async def raise_(self, alert: Alert) -> bool:
        return await self._writer.submit(alert.tenant, True, _raise, alert)

    async def end(self, alert: Alert) -> bool:
        return await self._writer.submit(alert.tenant, True, _end, alert, self._clock.now())

    async def forget(self, before: float) -> int:
        return await self._writer.submit_long("*", _forget, before)


async def _raise(transaction: Transaction, alert: Alert) -> bool:
    facts = orjson.dumps(dict(alert.facts)).decode()
    said = (alert.kind, alert.subject, alert.text, facts, alert.at, alert.seen_at)
    if await transaction.run(_RAISE, (alert.tenant, alert.id, *said)):
        transaction.record(alert.tenant, "", "control", alert.at, raised_body(alert))
        return True
    seen = (alert.text, facts, alert.seen_at, alert.tenant, alert.kind, alert.subject)
    await transaction.run(_SEEN, seen)
    return False


async def _end(transaction: Transaction, alert: Alert, now: float) -> bool:
    if not await transaction.run(_END, (now, alert.tenant, alert.id)):
        return False
    transaction.record(alert.tenant, "", "control", now, ended_body(alert, now))
    return True


async def _forget(transaction: Transaction, before: float) -> int:
    return await transaction.run(_FORGET, (before,))


def _read(row: Row) -> Alert:
    tenant, name, kind, subject, text, facts, at, seen_at, ended_at = row
    return Alert(
        tenant=tenant,
        id=name,
        kind=kind,
        subject=subject,
        text=text,
        facts=orjson.loads(facts),
        at=at,
        seen_at=seen_at,
        ended_at=ended_at,
    )
