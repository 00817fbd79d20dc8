"""Notices on their way out. Whoever takes one has it for a while; what it is about is sealed."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from holdfast.model.errors import StoreError
from holdfast.model.people import Notice, Tally, Untold
from holdfast.ports import Clock, Secrets
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.sql.engine import Reader, Row, Transaction, Writer

_COLUMNS = "tenant, id, channel, recipient, event, about, body, at, due_at, tries, sent_at, failed_at, said"
_WAITS = "sent_at IS NULL AND failed_at IS NULL"
PUT = f"""
INSERT INTO notice ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, NULL, NULL, '') ON CONFLICT DO NOTHING
"""  # noqa: S608
NEXT = f"SELECT min(due_at) FROM notice WHERE {_WAITS}"  # noqa: S608
DUE = f"""
SELECT {_COLUMNS} FROM notice WHERE {_WAITS} AND due_at <= ?
ORDER BY due_at, tenant, id LIMIT ? /* FOR UPDATE */
"""  # noqa: S608
MORE = f"""
SELECT {_COLUMNS} FROM notice WHERE {_WAITS} AND channel = ? AND recipient = ? AND leased <= ?
ORDER BY at, id /* FOR UPDATE */
"""  # noqa: S608
LEASE = f"""
UPDATE notice SET due_at = ?, leased = ?, tries = tries + 1
WHERE tenant = ? AND id = ? AND tries = ? AND {_WAITS}
"""  # noqa: S608
_MINE = f"WHERE tenant = ? AND id = ? AND tries = ? AND {_WAITS}"
SENT = f"UPDATE notice SET sent_at = ?, leased = 0, said = ? {_MINE}"  # noqa: S608
AGAIN = f"UPDATE notice SET due_at = ?, leased = 0, said = ? {_MINE}"  # noqa: S608
GIVE_UP = f"UPDATE notice SET failed_at = ?, leased = 0, said = ? {_MINE}"  # noqa: S608
LIST = f"SELECT {_COLUMNS} FROM notice WHERE tenant = ? ORDER BY at DESC, id LIMIT ?"  # noqa: S608
TOLD_TO = """
SELECT id, CASE WHEN sent_at IS NULL THEN leased ELSE sent_at END FROM notice
WHERE channel = ?1 AND recipient = ?2
  AND ((sent_at > ?3 AND said = '') OR (sent_at IS NULL AND failed_at IS NULL AND leased > ?4))
"""
TALLY = f"""
SELECT channel, count(sent_at), sum(CASE WHEN {_WAITS} THEN 1 ELSE 0 END), count(failed_at), max(sent_at)
FROM notice WHERE tenant = ? GROUP BY channel ORDER BY channel
"""  # noqa: S608
TROUBLE = """
SELECT channel, said FROM notice WHERE tenant = ? AND sent_at IS NULL AND said <> '' ORDER BY at, id
"""
FORGET = "DELETE FROM notice WHERE at < ? AND (sent_at IS NOT NULL OR failed_at IS NOT NULL)"
FORGET_TOLD = "DELETE FROM telling WHERE at < ? AND ended = 1"
# The inner part is bounded by the questions that are open; nothing here looks at those of the past.
UNTOLD = """
SELECT a.tenant, a.id, coalesce(t.level, -1) FROM approval a
LEFT JOIN telling t ON t.tenant = a.tenant AND t.approval_id = a.id
WHERE a.answer = 'PENDING' AND (t.level IS NULL OR t.level < a.level) ORDER BY a.expires_at LIMIT ?
"""
ANSWERED = """
SELECT t.tenant, t.approval_id, t.level FROM telling t
JOIN approval a ON a.tenant = t.tenant AND a.id = t.approval_id
WHERE t.ended = 0 AND a.answer <> 'PENDING' ORDER BY t.at LIMIT ?
"""
TOLD = """
INSERT INTO telling (tenant, approval_id, level, ended, at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, approval_id) DO UPDATE SET
  level = CASE WHEN excluded.level > telling.level THEN excluded.level ELSE telling.level END,
  ended = CASE WHEN excluded.ended > telling.ended THEN excluded.ended ELSE telling.ended END
"""


class SqlOutbox:
    def __init__(self, writer: Writer, reader: Reader, secrets: Secrets, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._secrets = secrets
        self._clock = clock

    async def put(self, notice: Notice) -> bool:
        await self._secrets.ready(notice.tenant)
        sealed = self._secrets.seal(notice.tenant, orjson.dumps(notice.body, default=str))
        named = (notice.tenant, notice.id, notice.channel, notice.to, notice.event, notice.about)
        row = (*named, sealed, notice.at, notice.due_at)
        return await self._writer.submit(notice.tenant, True, _run, PUT, row) == 1

    async def take(self, limit: int, until: float) -> Sequence[Notice]:
        now = self._clock.now()
        due = await self.next_due()
        if due is None or due > now:
            return ()
        rows = await self._writer.submit(EVERYWHERE, True, _take, DUE, (now, limit), until)
        return [self._notice(row) for row in rows]

    async def gather(self, notice: Notice, until: float) -> Sequence[Notice]:
        asked = (notice.channel, notice.to, self._clock.now())
        rows = await self._writer.submit(EVERYWHERE, True, _take, MORE, asked, until)
        return [self._notice(row) for row in rows]

    async def next_due(self) -> float | None:
        [(due,)] = await self._reader.all(EVERYWHERE, NEXT)
        return None if due is None else float(due)

    async def sent(self, notice: Notice) -> None:
        await self._end(notice, SENT, self._clock.now(), "")

    async def again(self, notice: Notice, due_at: float | None, said: str) -> None:
        if due_at is None:
            await self._end(notice, GIVE_UP, self._clock.now(), said)
        else:
            await self._end(notice, AGAIN, due_at, said)

    async def told_with(self, notices: Sequence[Notice], said: str) -> None:
        for notice in notices:
            await self._end(notice, SENT, self._clock.now(), said)

    async def told_to(self, notices: Sequence[Notice], since: float) -> Sequence[float]:
        now, own = self._clock.now(), {notice.id for notice in notices}
        asked = (notices[0].channel, notices[0].to, since, now)
        rows = await self._reader.all(EVERYWHERE, TOLD_TO, asked)
        return sorted(min(float(at), now) for id, at in rows if id not in own)

    async def list(self, tenant: str, limit: int) -> Sequence[Notice]:
        return [self._notice(row) for row in await self._reader.slow(tenant, LIST, (tenant, limit))]

    async def tally(self, tenant: str) -> Sequence[Tally]:
        said: dict[str, str] = dict(await self._reader.slow(tenant, TROUBLE, (tenant,)))
        return [
            Tally(
                channel=channel,
                sent=sent,
                waiting=int(waiting),
                failed=failed,
                last_sent_at=last,
                said=said.get(channel, ""),
            )
            for channel, sent, waiting, failed, last in await self._reader.slow(tenant, TALLY, (tenant,))
        ]

    async def forget(self, before: float) -> int:
        return await self._writer.submit_long(EVERYWHERE, _forget, before)

    async def untold(self, limit: int) -> Sequence[Untold]:
        asked = await self._reader.all(EVERYWHERE, UNTOLD, (limit,))
        answered = await self._reader.all(EVERYWHERE, ANSWERED, (limit,))
        rows = (*asked, *answered)
        return [Untold(tenant=tenant, approval_id=id, level=level) for tenant, id, level in rows]

    async def told(self, tenant: str, approval_id: str, level: int, ended: bool) -> None:
        row = (tenant, approval_id, level, int(ended), self._clock.now())
        await self._writer.submit(tenant, True, _run, TOLD, row)

    async def _end(self, notice: Notice, how: str, at: float, said: str) -> None:
        """Nothing where somebody else has taken it meanwhile: then it is theirs."""
        row = (at, said, notice.tenant, notice.id, notice.tries)
        await self._writer.submit(notice.tenant, True, _run, how, row)

    def _notice(self, row: Row) -> Notice:
        tenant, id, channel, to, event, about, sealed, at, due_at, tries, sent_at, failed_at, said = row
        return Notice(
            tenant=tenant,
            id=id,
            channel=channel,
            to=to,
            event=event,
            about=about,
            body=self._opened(tenant, sealed),
            at=at,
            due_at=due_at,
            tries=tries,
            sent_at=sent_at,
            failed_at=failed_at,
            said=said,
        )

    def _opened(self, tenant: str, sealed: bytes) -> Mapping[str, Any]:
        try:
            body: dict[str, Any] = orjson.loads(self._secrets.unseal(tenant, sealed))
        except StoreError:  # erased with its tenant's key
            return {}
        return body


async def _run(transaction: Transaction, statement: str, row: tuple[object, ...]) -> int:
    return await transaction.run(statement, row)


async def _take(transaction: Transaction, which: str, asked: tuple[object, ...], until: float) -> list[Row]:
    """A row that somebody else has taken in the same moment is theirs: its count of tries has moved."""
    taken = []
    for row in await transaction.all(which, asked):
        tenant, id, tries = row[0], row[1], row[9]
        if await transaction.run(LEASE, (until, until, tenant, id, tries)) == 1:
            taken.append((*row[:8], until, tries + 1, *row[10:]))
    return taken


async def _forget(transaction: Transaction, before: float) -> int:
    await transaction.run(FORGET_TOLD, (before,))
    return await transaction.run(FORGET, (before,))
