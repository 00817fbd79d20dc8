"""Sessions that upstreams keep open, in memory."""

from collections.abc import Sequence
from dataclasses import replace

import orjson

from holdfast.model.operation import OperationRef
from holdfast.model.sequel import SessionBegun, SessionMoved, SessionWorked
from holdfast.model.stage import WorkIn
from holdfast.model.upstream_session import (
    COMES_FROM,
    Home,
    SessionLine,
    SessionState,
    UpstreamSession,
    refused,
)
from holdfast.model.vocabulary import State
from holdfast.ports import Clock, Denied
from holdfast.records.body import act_body
from holdfast.stores.denial import session_denied
from holdfast.stores.memory.shelf import Entry, Kept, Shelf
from holdfast.stores.worker import Workers

_TO = {"commit": SessionState.COMMITTING, "rollback": SessionState.ROLLING_BACK}


class MemoryUpstreamSessions:
    def __init__(self, shelf: Shelf, clock: Clock, workers: Workers) -> None:
        self._shelf = shelf
        self._clock = clock
        self._workers = workers

    async def get(self, tenant: str, session_id: str) -> UpstreamSession | None:
        kept = self._shelf.upstream_sessions.get((tenant, session_id))
        return None if kept is None else self._seen(kept)

    async def list(
        self, tenant: str, *, principal: str | None = None, limit: int = 50
    ) -> Sequence[UpstreamSession]:
        found = [self._seen(kept) for kept in self._of(tenant)]
        theirs = [one for one in found if principal in (None, one.principal)]
        return sorted(theirs, key=lambda one: (one.created_at, one.id), reverse=True)[:limit]

    async def going_on(self, limit: int) -> Sequence[UpstreamSession]:
        found, now = [self._seen(kept) for kept in self._shelf.upstream_sessions.values()], self._clock.now()
        going = [one for one in found if not one.state.over and not _is_left_alone(one, now)]
        unknown = SessionState.UNKNOWN
        return sorted(going, key=lambda one: (one.state is unknown, one.touched_at))[:limit]

    async def lines(self, tenant: str, session_id: str) -> Sequence[SessionLine]:
        kept = self._shelf.upstream_sessions.get((tenant, session_id))
        return () if kept is None else tuple(kept.lines)

    async def move(self, session: UpstreamSession, state: SessionState, why: str, by: str) -> bool:
        if not self._is_as_seen(session):
            return False
        said = SessionMoved(id=session.id, state=state.value, why=why)
        return moved(self._shelf, said, session.tenant, self._clock.now(), by)

    async def trying(self, session: UpstreamSession, why: str) -> bool:
        if not self._is_as_seen(session):
            return False
        kept = self._shelf.upstream_sessions[session.tenant, session.id]
        kept.session = replace(kept.session, touched_at=self._clock.now(), why=why)
        return True

    async def forget(self, before: float) -> int:
        every = self._shelf.upstream_sessions
        over = [
            name for name, one in every.items() if one.session.state.over and one.session.touched_at < before
        ]
        for name in over:
            del every[name]
        return len(over)

    def _of(self, tenant: str) -> Sequence[Kept]:
        return [kept for (owner, _), kept in self._shelf.upstream_sessions.items() if owner == tenant]

    def _is_as_seen(self, seen: UpstreamSession) -> bool:
        now = self._shelf.upstream_sessions[seen.tenant, seen.id].session
        return (now.state, now.at_work, now.touched_at) == (seen.state, seen.at_work, seen.touched_at)

    def _seen(self, kept: Kept) -> UpstreamSession:
        entry = operation_of(self._shelf, kept.session.tenant, kept.session.at_work)
        state = None if entry is None else entry.operation.state
        return replace(kept.session, home=self._home(kept.worker), at_work_state=state)

    def _home(self, worker: str) -> Home:
        if not worker:
            return "anywhere"
        if worker == self._workers.id:
            return "here"
        return "elsewhere" if self._workers.alive(worker) else "gone"


def operation_of(shelf: Shelf, tenant: str, call_id: str) -> Entry | None:
    for ref, entry in shelf.operations.items() if call_id else ():
        if ref.tenant == tenant and entry.operation.call_id == call_id:
            return entry
    return None


def refusal(shelf: Shelf, gate: str, stage: WorkIn, tenant: str, call_id: str, now: float) -> Denied | None:
    kept = shelf.upstream_sessions.get((tenant, stage.session))
    if kept is None:
        return session_denied(gate, stage.session, None, "", "")
    busy = operation_of(shelf, tenant, kept.session.at_work)
    session = replace(kept.session, at_work_state=None if busy is None else busy.operation.state)
    not_now = refused(session, stage.role, call_id, now)
    if not_now is None:
        return None
    nonce = "" if busy is None else busy.operation.nonce
    return session_denied(gate, stage.session, not_now, session.at_work, nonce)


def use(shelf: Shelf, stage: WorkIn, tenant: str, call_id: str, now: float) -> None:
    kept = shelf.upstream_sessions[tenant, stage.session]
    session = replace(kept.session, touched_at=now)
    if stage.writes:
        session = replace(session, at_work=call_id, state=_TO.get(stage.role, session.state))
    kept.session = session


def begun(shelf: Shelf, said: SessionBegun, ref: OperationRef, call_id: str, worker: str, at: float) -> None:
    name = (ref.tenant, said.id)
    if name in shelf.upstream_sessions:
        return
    session = UpstreamSession(
        tenant=ref.tenant,
        id=said.id,
        principal=ref.principal,
        namespace=said.namespace,
        name=said.name,
        state=SessionState.OPEN,
        call_id=call_id,
        home="anywhere",
        idle_s=said.idle_s,
        created_at=at,
        touched_at=at,
        **orjson.loads(said.body),
    )
    shelf.upstream_sessions[name] = Kept(session, worker if said.lives_here else "")
    told = {"namespace": said.namespace, "name": said.name, "call": call_id}
    shelf.record(ref.tenant, said.id, "control", at, act_body(at, "session_begin", ref.principal, **told))


def worked(shelf: Shelf, said: SessionWorked, tenant: str, call_id: str, at: float) -> None:
    kept = shelf.upstream_sessions[tenant, said.id]
    if call_id not in [line.call_id for line in kept.lines]:
        body = orjson.loads(said.body)
        kept.lines.append(SessionLine(number=len(kept.lines), call_id=call_id, tool=said.tool, at=at, **body))
    if kept.session.state is SessionState.OPEN:
        kept.session = replace(kept.session, touched_at=at)


def moved(shelf: Shelf, said: SessionMoved, tenant: str, at: float, by: str = "") -> bool:
    """False where it is not where it could come from."""
    kept, to = shelf.upstream_sessions.get((tenant, said.id)), SessionState(said.state)
    if kept is None or kept.session.state not in COMES_FROM[to]:
        return False
    was = kept.session
    if to is SessionState.ROLLED_BACK:
        _take_back(shelf, kept, at)
    kept.session = replace(was, state=to, why=said.why, touched_at=at)
    told = {"from": was.state.value, "to": to.value, "why": said.why}
    shelf.record(tenant, said.id, "control", at, act_body(at, "session_state", by or was.principal, **told))
    return True


def _take_back(shelf: Shelf, kept: Kept, at: float) -> None:
    tenant, session = kept.session.tenant, kept.session.id
    note = f"rolled back with session '{session}'; nothing of it is left"
    for call_id in (*sorted(line.call_id for line in kept.lines), kept.session.call_id):
        entry = operation_of(shelf, tenant, call_id)
        if entry is None or entry.operation.state is not State.COMMITTED:
            continue
        entry.operation = entry.operation._replace(state=State.COMPENSATED, note=note, updated_at=at)
        said = {"from": State.COMMITTED, "to": State.COMPENSATED, "note": note}
        body = act_body(at, "settle", "session", **said, nonce=entry.operation.nonce)
        shelf.record(tenant, call_id, "settle", at, body)
    kept.lines = [replace(line, arguments=None, result=None, compensation=None) for line in kept.lines]


def _is_left_alone(session: UpstreamSession, now: float) -> bool:
    """Open, and neither idle nor bound to a process nor in doubt."""
    open_here = session.state is SessionState.OPEN and session.home == "anywhere"
    return open_here and session.idle_at > now and session.at_work_state is not State.UNKNOWN
