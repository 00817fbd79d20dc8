"""Runs of chains: begun once for a key, taken up by one process after the other."""

from collections.abc import Mapping, Sequence

from holdfast.model.errors import HoldfastError
from holdfast.model.run import PERSON, Evidence, Inversion, Line, Run, RunState, is_time, waited_on
from holdfast.model.trail import Origin
from holdfast.ports import Clock, Secrets
from holdfast.records.body import act_body
from holdfast.stores.sql.engine import Reader, Row, Transaction, Writer
from holdfast.stores.sql.run_journal import (
    ERASE,
    LINE,
    LINES,
    SqlJournal,
    line_of,
    line_sealed,
    opened,
    seal,
    write_line,
)

_RUN = (
    "SELECT tenant, id, chain, version, principal, key, fingerprint, call_id, state, waits_for, waits_on,"
    " why, body, output, round, created_at, updated_at, spent_s, cancelled_by FROM chain_run"
)
ONE = f"{_RUN} WHERE tenant = ? AND id = ?"
BY_KEY = f"{_RUN} WHERE tenant = ? AND principal = ? AND chain = ? AND key = ?"
NEWEST = f"{_RUN} WHERE tenant = ? AND (? = '' OR principal = ?) ORDER BY created_at DESC, id DESC LIMIT ?"
OPEN = """
SELECT tenant, id FROM chain_run WHERE state IN ('RUNNING', 'COMPENSATING', 'COMPENSATION_FAILED')
ORDER BY updated_at, id
"""
DUE = """
SELECT r.tenant, r.id, r.round FROM chain_run r WHERE r.waits_on <> ''
AND r.waits_on NOT LIKE '% %' AND r.waits_on NOT LIKE 'at:%' AND (r.tenant, r.waits_on) NOT IN (
  SELECT tenant, id FROM approval WHERE answer = 'PENDING'
) AND NOT EXISTS (
  SELECT 1 FROM operation o WHERE o.tenant = r.tenant AND o.call_id = r.waits_on
  AND o.state IN ('claimed', 'dispatched', 'unknown')
)
"""
"""What it waited for may be forgotten by now; it is over all the same.

Questions that are open are read once, whatever the planner knows of them: looked up run by run through an
index of open questions, a thousand runs that wait took PostgreSQL a million comparisons at every look.
"""
SEVERAL = """
SELECT tenant, id, round, waits_on FROM chain_run WHERE waits_on <> ''
AND (waits_on LIKE '% %' OR waits_on LIKE 'at:%')
"""
"""Those that wait for a moment, or for whichever of several is over first."""
GOES_ON = """
SELECT 1 FROM approval WHERE tenant = ?1 AND id = ?2 AND answer = 'PENDING'
UNION ALL SELECT 1 FROM operation WHERE tenant = ?1 AND call_id = ?2
  AND state IN ('claimed', 'dispatched', 'unknown')
"""
IDLE = """
SELECT tenant, id, round FROM chain_run WHERE state IN ('RUNNING', 'COMPENSATING', 'COMPENSATION_FAILED')
AND updated_at <= ? AND waits_for = '' ORDER BY updated_at, id
"""
ENDED = """
SELECT r.tenant, r.id FROM operation o JOIN chain_run r ON r.tenant = o.tenant AND r.call_id = o.call_id
WHERE o.state = 'unknown' AND r.call_id <> '' AND r.state IN ('COMPLETED', 'COMPENSATED', 'ABORTED')
"""
STUCK = f"""
{_RUN} WHERE tenant = ? AND state IN ('RUNNING', 'COMPENSATING', 'COMPENSATION_FAILED')
  AND waits_for LIKE '{PERSON}%' ORDER BY updated_at, id LIMIT ?
"""
BEGIN = """
INSERT INTO chain_run (tenant, id, chain, version, principal, key, fingerprint, call_id, state, body,
  created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11) ON CONFLICT DO NOTHING
"""
TAKE_UP = """
UPDATE chain_run SET round = round + 1, updated_at = ?, state = CASE WHEN state = 'COMPENSATION_FAILED'
  THEN 'COMPENSATING' ELSE state END, waits_for = '', waits_on = ''
WHERE tenant = ? AND id = ? AND state IN ('RUNNING', 'COMPENSATING', 'COMPENSATION_FAILED')
"""
CANCEL = """
UPDATE chain_run SET cancelled_by = ? WHERE tenant = ? AND id = ? AND cancelled_by = '' AND state = 'RUNNING'
"""
CHOOSE = """
UPDATE chain_run SET round = round + 1, waits_for = '', waits_on = '', updated_at = ?
WHERE tenant = ? AND id = ? AND state = 'RUNNING' AND waits_for <> ''
"""
ABANDON = """
UPDATE chain_run SET state = 'ABORTED', round = round + 1, waits_for = '', waits_on = '', why = ?,
  updated_at = ? WHERE tenant = ? AND id = ? AND state IN ('RUNNING', 'COMPENSATING', 'COMPENSATION_FAILED')
"""
ATTEST = """
INSERT INTO chain_evidence (tenant, digest, how, person, body, at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, digest) DO UPDATE SET how = excluded.how, person = excluded.person,
  body = excluded.body, at = excluded.at
"""
ATTESTED = "SELECT digest, how, person, body, at FROM chain_evidence WHERE tenant = ? AND digest = ?"


class SqlRuns:
    def __init__(self, writer: Writer, reader: Reader, secrets: Secrets, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._secrets = secrets
        self._clock = clock
        self._unchanged: dict[str, int] = {}
        """The version of the store in which nothing was due, and in which nothing had ended."""

    async def begin(self, run: Run) -> Run:
        said = {"declared": run.declared, "input": run.input, "wanted_by": run.wanted_by}
        if run.origin is not None:
            said["origin"] = run.origin.kept()
        values = (
            *(
                run.tenant,
                run.id,
                run.chain,
                run.version,
                run.principal,
                run.key,
                run.fingerprint,
                run.call_id,
            ),
            *(run.state.value, seal(self._secrets, run.tenant, said), self._clock.now()),
        )
        await self._writer.submit(run.tenant, True, _begin, run, values, self._clock.now())
        found = await self._reader.all(run.tenant, BY_KEY, (run.tenant, run.principal, run.chain, run.key))
        kept = self._run(found[0])
        if kept.fingerprint != run.fingerprint:
            raise HoldfastError(
                f"key {run.key!r} was used for another run of {run.chain!r}; use a new key for something else"
            )
        return kept

    async def get(self, tenant: str, run_id: str) -> Run | None:
        found = await self._reader.all(tenant, ONE, (tenant, run_id))
        return self._run(found[0]) if found else None

    async def list(self, tenant: str, *, principal: str | None = None, limit: int = 50) -> Sequence[Run]:
        who = principal or ""
        return [self._run(row) for row in await self._reader.slow(tenant, NEWEST, (tenant, who, who, limit))]

    async def open(self) -> Sequence[tuple[str, str]]:
        return [(str(tenant), str(id)) for tenant, id in await self._reader.slow("*", OPEN)]

    async def due(self) -> Sequence[tuple[str, str, int]]:
        now = await self._reader.version()
        if now is not None and now == self._unchanged.get("due"):
            return []
        found = [
            (str(tenant), str(id), int(round_)) for tenant, id, round_ in await self._reader.all("*", DUE)
        ]
        several = await self._reader.all("*", SEVERAL)
        for tenant, id, round_, waits_on in several:
            if is_time(waits_on, self._clock.now()) or await self._is_over(tenant, waits_on):
                found.append((tenant, id, round_))
        self._look("due", now, again=bool(found or several))
        return found

    def _look(self, what: str, version: int | None, *, again: bool) -> None:
        """What was not there is not looked for while the store does not change: to wait costs nothing."""
        if version is None or again:
            self._unchanged.pop(what, None)
        else:
            self._unchanged[what] = version

    async def _is_over(self, tenant: str, waits_on: str) -> bool:
        """The first of the approvals and calls that it waits for."""
        for on in waited_on(waits_on):
            if not await self._reader.all(tenant, GOES_ON, (tenant, on)):
                return True
        return False

    async def idle(self, since: float) -> Sequence[tuple[str, str, int]]:
        found = await self._reader.all("*", IDLE, (since,))
        return [(str(tenant), str(id), int(round_)) for tenant, id, round_ in found]

    async def ended(self) -> Sequence[tuple[str, str]]:
        now = await self._reader.version()
        if now is not None and now == self._unchanged.get("ended"):
            return []
        found = [(str(tenant), str(id)) for tenant, id in await self._reader.slow("*", ENDED)]
        self._look("ended", now, again=bool(found))
        return found

    async def stuck(self, tenant: str, limit: int) -> Sequence[Run]:
        return [self._run(row) for row in await self._reader.slow(tenant, STUCK, (tenant, limit))]

    async def take_up(self, tenant: str, run_id: str) -> Run | None:
        taken = await self._writer.submit(tenant, True, _take_up, tenant, run_id, self._clock.now())
        return None if taken is None else self._run(taken)

    def journal(self, run: Run) -> SqlJournal:
        return SqlJournal(run, self._writer, self._reader, self._secrets, self._clock)

    async def lines(self, tenant: str, run_id: str) -> Sequence[Line]:
        rows = await self._reader.all(tenant, LINES, (tenant, run_id))
        return [line_of(row, self._secrets, tenant) for row in rows]

    async def cancel(self, tenant: str, run_id: str, by: str) -> bool:
        return await self._writer.submit(tenant, True, _cancel, tenant, run_id, by, self._clock.now())

    async def choose(self, run: Run, line: Line, by: str) -> Run | None:
        sealed = line_sealed(line, self._secrets, run.tenant)
        taken = await self._writer.submit(run.tenant, True, _choose, run, line, by, sealed, self._clock.now())
        return None if taken is None else self._run(taken)

    async def abandon(self, tenant: str, run_id: str, by: str, note: str) -> bool:
        return await self._writer.submit(tenant, True, _abandon, tenant, run_id, by, note, self._clock.now())

    async def attest(self, tenant: str, found: Sequence[Evidence]) -> None:
        now = self._clock.now()
        rows = [
            (
                one,
                seal(self._secrets, tenant, {"chain": one.chain, "step": one.step, "note": one.note}),
            )
            for one in found
        ]
        await self._writer.submit(tenant, True, _attest, tenant, rows, now)

    async def attested(self, tenant: str, digests: Sequence[str]) -> Mapping[str, Evidence]:
        found: dict[str, Evidence] = {}
        for wanted in dict.fromkeys(digests):
            for digest, how, by, body, at in await self._reader.all(tenant, ATTESTED, (tenant, wanted)):
                said = opened(self._secrets, tenant, body) or {"chain": "", "step": "", "note": ""}
                found[wanted] = Evidence(digest=digest, how=Inversion(how), by=by, at=at, **said)
        return found

    def _run(self, row: Row) -> Run:
        tenant = row[0]
        said = opened(self._secrets, tenant, row[12]) or {}
        return Run(
            tenant=tenant,
            id=row[1],
            chain=row[2],
            version=row[3],
            principal=row[4],
            key=row[5],
            fingerprint=row[6],
            call_id=row[7],
            state=RunState(row[8]),
            waits_for=row[9],
            waits_on=row[10],
            why=row[11],
            declared=said.get("declared", {}),
            input=said.get("input"),
            wanted_by=said.get("wanted_by", {}),
            origin=Origin.found(said.get("origin")),
            output=opened(self._secrets, tenant, row[13]),
            round=row[14],
            created_at=row[15],
            updated_at=row[16],
            spent_s=row[17],
            cancelled_by=row[18],
        )


async def _begin(transaction: Transaction, run: Run, values: Sequence[object], now: float) -> None:
    if await transaction.run(BEGIN, values):
        body = act_body(now, "chain_run", run.principal, chain=run.chain, version=run.version, key=run.key)
        transaction.record(run.tenant, run.id, "control", now, body)


async def _take_up(transaction: Transaction, tenant: str, run_id: str, now: float) -> Row | None:
    if not await transaction.run(TAKE_UP, (now, tenant, run_id)):
        return None
    return await transaction.one(ONE, (tenant, run_id))


async def _cancel(transaction: Transaction, tenant: str, run_id: str, by: str, now: float) -> bool:
    if not await transaction.run(CANCEL, (by, tenant, run_id)):
        return False
    transaction.record(tenant, run_id, "control", now, act_body(now, "chain_cancel", by))
    return True


async def _choose(
    transaction: Transaction, run: Run, line: Line, by: str, sealed: tuple[bytes, str], now: float
) -> Row | None:
    name = (run.tenant, run.id)
    said_before = await transaction.one(LINE, (*name, line.name)) is not None
    if said_before or not await transaction.run(CHOOSE, (now, *name)):
        return None
    await write_line(transaction, run, line, *sealed, now)
    told = act_body(now, "chain_choose", by, step=line.name, said=line.message)
    transaction.record(run.tenant, run.id, "control", now, told)
    return await transaction.one(ONE, name)


async def _abandon(
    transaction: Transaction, tenant: str, run_id: str, by: str, note: str, now: float
) -> bool:
    if not await transaction.run(ABANDON, (f"abandoned by {by}: {note}", now, tenant, run_id)):
        return False
    await transaction.run(ERASE, (tenant, run_id))
    transaction.record(tenant, run_id, "control", now, act_body(now, "chain_abandon", by, note=note))
    return True


async def _attest(
    transaction: Transaction, tenant: str, rows: Sequence[tuple[Evidence, bytes]], now: float
) -> None:
    for one, body in rows:
        await transaction.run(ATTEST, (tenant, one.digest, one.how.value, one.by, body, now))
        said = {"chain": one.chain, "step": one.step, "digest": one.digest, "note": one.note}
        told = act_body(now, f"chain_{one.how}", one.by, **said)
        transaction.record(tenant, "", "control", now, told)
