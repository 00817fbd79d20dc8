"""What the steps of a run came to: written once, under a step's name, by whoever took the run up last."""

from collections.abc import Sequence
from typing import Any

import orjson

from holdfast.model.errors import NotFound, Overtaken, StoreError
from holdfast.model.run import Line, Run, RunState, StepState
from holdfast.ports import Clock, Secrets
from holdfast.records.body import act_body
from holdfast.stores.sql.engine import Reader, Row, Transaction, Writer

ROUND = "SELECT round, state FROM chain_run WHERE tenant = ? AND id = ? /* FOR UPDATE */"
LINES = """
SELECT name, state, tool, call_id, body, code, message, writes, at, number FROM chain_line
WHERE tenant = ? AND run = ? ORDER BY number
"""
LINE = """
SELECT name, state, tool, call_id, body, code, message, writes, at, number FROM chain_line
WHERE tenant = ? AND run = ? AND name = ?
"""
ADD = """
INSERT INTO chain_line (tenant, run, name, number, state, tool, call_id, code, message, writes, body, at)
SELECT ?1, ?2, ?3, (SELECT count(*) FROM chain_line WHERE tenant = ?1 AND run = ?2), ?4, ?5, ?6, ?7, ?8, ?9,
  ?10, ?11
"""
MOVE = """
UPDATE chain_run SET state = ?, waits_for = ?, waits_on = ?, why = ?, output = ?, updated_at = ?,
  spent_s = spent_s + ? WHERE tenant = ? AND id = ?
"""
ERASE = "UPDATE chain_line SET body = NULL WHERE tenant = ? AND run = ?"
CANCELLED = "SELECT cancelled_by, round FROM chain_run WHERE tenant = ? AND id = ?"


class SqlJournal:
    def __init__(self, run: Run, writer: Writer, reader: Reader, secrets: Secrets, clock: Clock) -> None:
        self._run = run
        self._writer = writer
        self._reader = reader
        self._secrets = secrets
        self._clock = clock
        self._since = clock.monotonic()

    async def lines(self) -> Sequence[Line]:
        rows = await self._reader.all(self._run.tenant, LINES, (self._run.tenant, self._run.id))
        return [line_of(row, self._secrets, self._run.tenant) for row in rows]

    async def add(self, line: Line) -> Line:
        run = self._run
        sealed, commitment = line_sealed(line, self._secrets, run.tenant)
        row = await self._writer.submit(
            run.tenant, True, _add, run, line, sealed, commitment, self._clock.now()
        )
        return line_of(row, self._secrets, run.tenant)

    async def move(
        self, state: RunState, *, waits_for: str = "", waits_on: str = "", why: str = "", output: Any = None
    ) -> None:
        run, now = self._run, self._clock.monotonic()
        spent, self._since = now - self._since, now
        sealed = None if output is None else seal(self._secrets, run.tenant, output)
        at = self._clock.now()
        waits = (waits_for, waits_on)
        said = (state.value, *waits, why or run.why, sealed, at, spent, run.tenant, run.id)
        await self._writer.submit(run.tenant, True, _move, run, state, said)

    async def cancelled(self) -> str:
        [(by, number)] = await self._reader.all(self._run.tenant, CANCELLED, (self._run.tenant, self._run.id))
        if number != self._run.round:
            raise Overtaken(f"run {self._run.id!r} was taken up by somebody else")
        return str(by)


async def _add(
    transaction: Transaction, run: Run, line: Line, sealed: bytes, commitment: str, now: float
) -> Row:
    await _ours(transaction, run)
    name = (run.tenant, run.id, line.name)
    kept = await transaction.one(LINE, name)
    if kept is None:
        await write_line(transaction, run, line, sealed, commitment, now)
        kept = await transaction.one(LINE, name)
    assert kept is not None  # noqa: S101 - it was written in this transaction
    return kept


async def write_line(
    transaction: Transaction, run: Run, line: Line, sealed: bytes, commitment: str, now: float
) -> None:
    """One that is not there yet, and that it was written."""
    name = (run.tenant, run.id, line.name)
    said = (line.state.value, line.tool, line.call_id, line.code, line.message, int(line.writes), sealed, now)
    await transaction.run(ADD, (*name, *said))
    told = {"step": line.name, "state": line.state, "tool": line.tool, "call": line.call_id}
    body = act_body(now, "chain_step", run.principal, **told, code=line.code, commitment=commitment)
    transaction.record(run.tenant, run.id, "control", now, body)


async def _move(transaction: Transaction, run: Run, state: RunState, said: Sequence[object]) -> None:
    await _ours(transaction, run)
    await transaction.run(MOVE, said)
    _, waits_for, _, why, _, now, *_ = said
    if state.over:  # what steps said to each other is nobody's any more; what it was is committed to
        await transaction.run(ERASE, (run.tenant, run.id))
    body = act_body(float(str(now)), "chain_state", run.principal, to=state, waits_for=waits_for, why=why)
    transaction.record(run.tenant, run.id, "control", float(str(now)), body)


async def _ours(transaction: Transaction, run: Run) -> None:
    found = await transaction.one(ROUND, (run.tenant, run.id))
    if found is None:
        raise NotFound(f"there is no run {run.id!r} any more")
    if found[0] != run.round:
        raise Overtaken(f"run {run.id!r} was taken up by somebody else")


def line_sealed(line: Line, secrets: Secrets, tenant: str) -> tuple[bytes, str]:
    """What steps said to each other, and what tells it from anything else once it is erased."""
    said = {"arguments": line.arguments, "result": line.result}
    return seal(secrets, tenant, said), secrets.commitment(tenant, orjson.dumps(said))


def seal(secrets: Secrets, tenant: str, said: Any) -> bytes:
    return secrets.seal(tenant, orjson.dumps(said))


def opened(secrets: Secrets, tenant: str, sealed: bytes | None) -> Any:
    """None where nothing was kept, or it was erased."""
    if sealed is None:
        return None
    try:
        return orjson.loads(secrets.unseal(tenant, sealed))
    except StoreError:  # with its tenant's key
        return None


def line_of(row: Row, secrets: Secrets, tenant: str) -> Line:
    name, state, tool, call_id, body, code, message, writes, at, number = row
    said = opened(secrets, tenant, body) or {}
    return Line(
        name=name,
        state=StepState(state),
        tool=tool,
        call_id=call_id,
        arguments=said.get("arguments"),
        result=said.get("result"),
        code=code,
        message=message,
        writes=bool(writes),
        at=at,
        number=number,
    )
