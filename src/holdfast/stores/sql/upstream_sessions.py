"""Sessions that upstreams keep open: who began them, what was done in them, and how they ended."""

from collections.abc import Sequence

from holdfast.model.sequel import SessionMoved
from holdfast.model.upstream_session import Home, SessionLine, SessionState, UpstreamSession
from holdfast.model.vocabulary import State
from holdfast.ports import Clock, Secrets
from holdfast.stores.sql import session_moves
from holdfast.stores.sql.engine import Reader, Row, Transaction, Withdrawn, Writer
from holdfast.stores.sql.run_journal import opened
from holdfast.stores.worker import Workers

_SESSION = """
SELECT s.tenant, s.id, s.principal, s.namespace, s.name, s.state, s.call_id, s.worker, s.idle_s,
  s.created_at, s.touched_at, s.at_work, s.why, o.state, s.body
FROM upstream_session s
LEFT JOIN operation o ON o.tenant = s.tenant AND o.call_id = s.at_work AND s.at_work <> ''
"""
ONE = f"{_SESSION} WHERE s.tenant = ? AND s.id = ?"
NEWEST = f"""
{_SESSION} WHERE s.tenant = ? AND (? = '' OR s.principal = ?) ORDER BY s.created_at DESC, s.id DESC LIMIT ?
"""
# Those that nothing but a person may move come last, so that they keep nobody out.
GOING_ON = f"""
{_SESSION} WHERE s.state IN ('OPEN', 'COMMITTING', 'ROLLING_BACK', 'UNKNOWN')
  AND (s.state <> 'OPEN' OR s.worker <> '' OR s.touched_at + s.idle_s <= ? OR o.state = 'unknown')
ORDER BY CASE s.state WHEN 'UNKNOWN' THEN 1 ELSE 0 END, s.touched_at LIMIT ?
"""
LINES = """
SELECT number, call_id, tool, at, body FROM upstream_session_line
WHERE tenant = ? AND session = ? ORDER BY number
"""
AS_SEEN = """
SELECT 1 FROM upstream_session WHERE tenant = ? AND id = ? AND state = ? AND at_work = ? AND touched_at = ?
/* FOR UPDATE */
"""
TRY = "UPDATE upstream_session SET touched_at = ?, why = ? WHERE tenant = ? AND id = ?"
FORGET_LINES = """
DELETE FROM upstream_session_line WHERE (tenant, session) IN (
  SELECT tenant, id FROM upstream_session
  WHERE state IN ('COMMITTED', 'ROLLED_BACK', 'UNDONE') AND touched_at < ?)
"""
FORGET = """
DELETE FROM upstream_session WHERE state IN ('COMMITTED', 'ROLLED_BACK', 'UNDONE') AND touched_at < ?
"""


class SqlUpstreamSessions:
    def __init__(
        self, writer: Writer, reader: Reader, secrets: Secrets, clock: Clock, workers: Workers
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._secrets = secrets
        self._clock = clock
        self._workers = workers

    async def get(self, tenant: str, session_id: str) -> UpstreamSession | None:
        found = await self._reader.all(tenant, ONE, (tenant, session_id))
        return self._session(found[0]) if found else None

    async def list(
        self, tenant: str, *, principal: str | None = None, limit: int = 50
    ) -> Sequence[UpstreamSession]:
        who = principal or ""
        found = await self._reader.slow(tenant, NEWEST, (tenant, who, who, limit))
        return [self._session(row) for row in found]

    async def going_on(self, limit: int) -> Sequence[UpstreamSession]:
        found = await self._reader.all("*", GOING_ON, (self._clock.now(), limit))
        return [self._session(row) for row in found]

    async def lines(self, tenant: str, session_id: str) -> Sequence[SessionLine]:
        rows = await self._reader.all(tenant, LINES, (tenant, session_id))
        return [self._line(tenant, row) for row in rows]

    async def move(self, session: UpstreamSession, state: SessionState, why: str, by: str) -> bool:
        said, now = SessionMoved(id=session.id, state=state.value, why=why), self._clock.now()
        return await self._writer.submit(session.tenant, True, _move, session, said, by, now)

    async def trying(self, session: UpstreamSession, why: str) -> bool:
        return await self._writer.submit(session.tenant, True, _try, session, why, self._clock.now())

    async def forget(self, before: float) -> int:
        return await self._writer.submit_long("*", _forget, before)

    def _session(self, row: Row) -> UpstreamSession:
        tenant, id, principal, namespace, name, state, call_id, worker, *times, at_work, why, busy, body = row
        idle_s, created_at, touched_at = times
        said = opened(self._secrets, tenant, body) or {}
        return UpstreamSession(
            tenant=tenant,
            id=id,
            principal=principal,
            namespace=namespace,
            name=name,
            state=SessionState(state),
            call_id=call_id,
            home=self._home(worker),
            idle_s=idle_s,
            created_at=created_at,
            touched_at=touched_at,
            at_work=at_work,
            at_work_state=None if busy is None else State(busy),
            why=why,
            handle=said.get("handle"),
            wanted_by=said.get("wanted_by", {}),
        )

    def _home(self, worker: str) -> Home:
        if not worker:
            return "anywhere"
        if worker == self._workers.id:
            return "here"
        return "elsewhere" if self._workers.alive(worker) else "gone"

    def _line(self, tenant: str, row: Row) -> SessionLine:
        number, call_id, tool, at, body = row
        said = opened(self._secrets, tenant, body) or {}
        return SessionLine(
            number=number,
            call_id=call_id,
            tool=tool,
            at=at,
            arguments=said.get("arguments"),
            result=said.get("result"),
            compensation=said.get("compensation"),
        )


async def _is_as_seen(transaction: Transaction, seen: UpstreamSession) -> bool:
    name = (seen.tenant, seen.id, seen.state.value, seen.at_work, seen.touched_at)
    return await transaction.one(AS_SEEN, name) is not None


async def _move(
    transaction: Transaction, seen: UpstreamSession, said: SessionMoved, by: str, now: float
) -> bool:
    if not await _is_as_seen(transaction, seen):
        return False
    if not await session_moves.moved(transaction, said, seen.tenant, now, by):
        raise Withdrawn(False)
    return True


async def _try(transaction: Transaction, seen: UpstreamSession, why: str, now: float) -> bool:
    if not await _is_as_seen(transaction, seen):
        return False
    await transaction.run(TRY, (now, why, seen.tenant, seen.id))
    return True


async def _forget(transaction: Transaction, before: float) -> int:
    await transaction.run(FORGET_LINES, (before,))
    return await transaction.run(FORGET, (before,))
