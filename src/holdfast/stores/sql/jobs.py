"""Jobs that go on at their upstream: which are due, and who asks after them."""

import logging
from collections.abc import Sequence
from typing import Any

import orjson

from holdfast.model.errors import StoreError
from holdfast.model.job import JobState, Submitted
from holdfast.ports import Clock, Secrets
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.sql.engine import Reader, Row, Transaction, Values, Writer
from holdfast.stores.worker import Workers

log = logging.getLogger(__name__)

_SELECT = """
SELECT tenant, call_id, state, body, progress, ends_at, polls, next_at, give_up_at, why, updated_at, taken_by,
  taken_until
FROM job
"""
GET = _SELECT + "WHERE tenant = ? AND call_id = ?"
DUE = _SELECT + "WHERE state <> 'ENDED' AND next_at <= ? ORDER BY next_at LIMIT ?"
SOONEST = """
SELECT min(CASE WHEN next_at > ?1 THEN next_at ELSE ?2 END) FROM job WHERE state <> 'ENDED'
"""
# Whoever saw it as it is has it: two that look at once do not both ask.
TAKE = """
UPDATE job SET taken_by = ?, taken_until = ?, polls = polls + 1
WHERE tenant = ? AND call_id = ? AND taken_by = ? AND taken_until = ? AND state <> 'ENDED' AND next_at <= ?
"""
# What became due while it was asked after stays due.
NOTE = """
UPDATE job SET progress = ?1, ends_at = ?2, next_at = CASE WHEN next_at = ?3 THEN ?4 ELSE next_at END,
  taken_by = '', taken_until = 0, updated_at = ?5
WHERE tenant = ?6 AND call_id = ?7 AND taken_by = ?8 AND taken_until = ?9 AND state <> 'ENDED'
"""
# However many want to know at once, the first of them has moved it.
HURRY = """
UPDATE job SET next_at = ?1, polls = 0
WHERE tenant = ?2 AND call_id = ?3 AND state <> 'ENDED' AND taken_by = '' AND next_at > ?1 AND updated_at = ?4
"""
CANCEL = """
UPDATE job SET state = 'CANCELLING', why = ?1, give_up_at = ?2, next_at = ?3, updated_at = ?3
WHERE tenant = ?4 AND call_id = ?5 AND state = 'RUNNING'
"""
END = """
UPDATE job SET state = 'ENDED', taken_by = '', taken_until = 0, updated_at = ?
WHERE tenant = ? AND call_id = ? AND taken_by = ? AND taken_until = ?
"""
KNOWN = "SELECT 1 FROM job WHERE token = ? AND state <> 'ENDED'"
NEWS = "UPDATE job SET next_at = ?1 WHERE token = ?2 AND state <> 'ENDED' AND next_at > ?1"


class SqlJobs:
    def __init__(
        self, writer: Writer, reader: Reader, secrets: Secrets, clock: Clock, workers: Workers
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._secrets = secrets
        self._clock = clock
        self._workers = workers

    async def get(self, tenant: str, call_id: str) -> Submitted | None:
        rows = await self._reader.all(tenant, GET, (tenant, call_id))
        return self._read(rows[0]) if rows else None

    async def take(self, now: float, until: float, limit: int) -> Sequence[Submitted]:
        rows = await self._reader.all(EVERYWHERE, DUE, (now, 4 * limit))
        free = [row for row in rows if self._is_free(row, now)][:limit]
        if not free:
            return ()
        taken = await self._writer.submit(EVERYWHERE, True, _take, free, self._workers.id, until, now)
        return [job for row in taken if (job := await self._readable(row)) is not None]

    async def _readable(self, row: Row) -> Submitted | None:
        """None where its tenant was erased, say: nobody else's job waits for that."""
        try:
            return self._read(row)
        except StoreError as error:
            (tenant, call_id), (by, until), give_up_at = row[:2], row[-2:], row[8]
            log.warning("the job of call %s cannot be followed: %s", call_id, error)
            if self._clock.now() >= give_up_at:
                await self._run(tenant, END, (self._clock.now(), tenant, call_id, by, until))
            return None

    async def soonest(self, now: float, again_at: float) -> float | None:
        [(at,)] = await self._reader.all(EVERYWHERE, SOONEST, (now, again_at))
        return None if at is None else float(at)

    async def note(
        self, job: Submitted, progress: float | None, ends_at: float | None, next_at: float
    ) -> bool:
        said = (progress, ends_at, job.next_at, next_at, self._clock.now())
        return await self._run(job.tenant, NOTE, (*said, job.tenant, job.call_id, *job.taken))

    async def hurry(self, tenant: str, call_id: str, every_s: float) -> bool:
        job = await self.get(tenant, call_id)
        at = None if job is None else job.due(self._clock.now(), every_s)
        if job is None or at is None:
            return False
        return await self._run(tenant, HURRY, (at, tenant, call_id, job.looked_at))

    async def cancel(self, tenant: str, call_id: str, why: str, give_up_at: float) -> bool:
        return await self._run(tenant, CANCEL, (why, give_up_at, self._clock.now(), tenant, call_id))

    async def end(self, job: Submitted) -> None:
        await self._run(job.tenant, END, (self._clock.now(), job.tenant, job.call_id, *job.taken))

    async def news(self, token: str) -> bool:
        if not await self._reader.all(EVERYWHERE, KNOWN, (token,)):
            return False
        await self._run(EVERYWHERE, NEWS, (self._clock.now(), token))
        return True

    def _is_free(self, row: Row, now: float) -> bool:
        by, until = row[-2:]
        return not by or until <= now or not self._workers.alive(by)

    def _read(self, row: Row) -> Submitted:
        tenant, call_id, state, body, progress, ends_at, polls, next_at, give_up_at, why, at, by, until = row
        said: dict[str, Any] = orjson.loads(self._secrets.unseal(tenant, body))
        return Submitted(
            tenant=tenant,
            call_id=call_id,
            state=JobState(state),
            name=said["id"],
            progress=progress,
            ends_at=ends_at,
            polls=polls,
            next_at=next_at,
            give_up_at=give_up_at,
            why=why,
            looked_at=at,
            verify=tuple(said.get("verify", ())),
            taken=(by, until),
        )

    async def _run(self, tenant: str, statement: str, values: Values) -> bool:
        return await self._writer.submit(tenant, True, _changed, statement, values)


async def _changed(transaction: Transaction, statement: str, values: Values) -> bool:
    return await transaction.run(statement, values) > 0


async def _take(transaction: Transaction, rows: list[Row], by: str, until: float, now: float) -> list[Row]:
    return [
        (*row[:6], row[6] + 1, *row[7:-2], by, until)
        for row in rows
        if await transaction.run(TAKE, (by, until, *row[:2], *row[-2:], now))
    ]
