"""How does a session at an upstream move? Always in the transaction of what moves it: a claim, or an outcome.

Whatever was done in a session that is rolled back was not done: its operations say so from the same
transaction on.
"""

from typing import Any

from holdfast.model.operation import OperationRef
from holdfast.model.sequel import SessionBegun, SessionMoved, SessionWorked
from holdfast.model.stage import WorkIn
from holdfast.model.upstream_session import COMES_FROM, SessionState, UpstreamSession, refused
from holdfast.model.vocabulary import State
from holdfast.ports import Denied
from holdfast.records.body import act_body
from holdfast.stores.denial import session_denied
from holdfast.stores.sql.engine import Transaction

LOOK = """
SELECT principal, namespace, name, state, call_id, idle_s, created_at, touched_at, at_work, why
FROM upstream_session WHERE tenant = ? AND id = ? /* FOR UPDATE */
"""
AT_WORK = "SELECT state, nonce FROM operation WHERE tenant = ? AND call_id = ?"
TAKE = "UPDATE upstream_session SET state = ?, at_work = ?, touched_at = ? WHERE tenant = ? AND id = ?"
TOUCH = "UPDATE upstream_session SET touched_at = ? WHERE tenant = ? AND id = ? AND state = 'OPEN'"
BEGIN = """
INSERT INTO upstream_session (tenant, id, principal, namespace, name, state, call_id, worker, body, idle_s,
  created_at, touched_at)
VALUES (?1, ?2, ?3, ?4, ?5, 'OPEN', ?6, ?7, ?8, ?9, ?10, ?10)
ON CONFLICT (tenant, id) DO NOTHING
"""
WORK = """
INSERT INTO upstream_session_line (tenant, session, number, call_id, tool, body, at)
SELECT ?1, ?2, (SELECT count(*) FROM upstream_session_line WHERE tenant = ?1 AND session = ?2), ?3, ?4, ?5, ?6
ON CONFLICT (tenant, session, call_id) DO NOTHING
"""
NOW = "SELECT state, principal, call_id FROM upstream_session WHERE tenant = ? AND id = ?"
MOVE = "UPDATE upstream_session SET state = ?, why = ?, touched_at = ? WHERE tenant = ? AND id = ?"
DONE_IN = "SELECT call_id FROM upstream_session_line WHERE tenant = ? AND session = ? ORDER BY call_id"
TAKEN_BACK = """
UPDATE operation SET state = 'compensated', note = ?, updated_at = ?
WHERE tenant = ? AND call_id = ? AND state = 'committed' RETURNING nonce
"""
ERASE = "UPDATE upstream_session_line SET body = NULL WHERE tenant = ? AND session = ?"

_TO: dict[str, SessionState] = {"commit": SessionState.COMMITTING, "rollback": SessionState.ROLLING_BACK}


async def use(
    transaction: Transaction, gate: str, stage: WorkIn, tenant: str, call_id: str, now: float
) -> Denied | None:
    """Work in it, if that may be done now; nobody else does until the claim is over."""
    row = await transaction.one(LOOK, (tenant, stage.session))
    if row is None:
        return session_denied(gate, stage.session, None, "", "")
    principal, namespace, name, state, begun_by, idle_s, created_at, touched_at, at_work, why = row
    found = await transaction.one(AT_WORK, (tenant, at_work)) if at_work else None
    session = UpstreamSession(
        tenant=tenant,
        id=stage.session,
        principal=principal,
        namespace=namespace,
        name=name,
        state=SessionState(state),
        call_id=begun_by,
        home="anywhere",
        idle_s=idle_s,
        created_at=created_at,
        touched_at=touched_at,
        at_work=at_work,
        at_work_state=None if found is None else State(found[0]),
        why=why,
    )
    not_now = refused(session, stage.role, call_id, now)
    if not_now is not None:
        return session_denied(gate, stage.session, not_now, at_work, "" if found is None else found[1])
    if stage.writes:
        to = _TO.get(stage.role, session.state)
        await transaction.run(TAKE, (to.value, call_id, now, tenant, stage.session))
    else:
        await transaction.run(TOUCH, (now, tenant, stage.session))
    return None


async def begun(
    transaction: Transaction, said: SessionBegun, ref: OperationRef, call_id: str, worker: str, at: float
) -> None:
    home = worker if said.lives_here else ""
    named = (ref.tenant, said.id, ref.principal, said.namespace, said.name, call_id, home)
    if await transaction.run(BEGIN, (*named, said.body, said.idle_s, at)):
        told = {"namespace": said.namespace, "name": said.name, "call": call_id}
        transaction.record(
            ref.tenant, said.id, "control", at, act_body(at, "session_begin", ref.principal, **told)
        )


async def worked(transaction: Transaction, said: SessionWorked, tenant: str, call_id: str, at: float) -> None:
    await transaction.run(WORK, (tenant, said.id, call_id, said.tool, said.body, at))
    await transaction.run(TOUCH, (at, tenant, said.id))


async def moved(transaction: Transaction, said: SessionMoved, tenant: str, at: float, by: str = "") -> bool:
    """False where it is not where it could come from."""
    found = await transaction.one(f"{NOW} /* FOR UPDATE */", (tenant, said.id))
    to = SessionState(said.state)
    if found is None or SessionState(found[0]) not in COMES_FROM[to]:
        return False
    was, principal, begun_by = found
    if to is SessionState.ROLLED_BACK:
        await _taken_back(transaction, tenant, said.id, begun_by, at)
        await transaction.run(ERASE, (tenant, said.id))
    await transaction.run(MOVE, (to.value, said.why, at, tenant, said.id))
    told: dict[str, Any] = {"from": was, "to": to.value, "why": said.why}
    transaction.record(tenant, said.id, "control", at, act_body(at, "session_state", by or principal, **told))
    return True


async def _taken_back(transaction: Transaction, tenant: str, session: str, begun_by: str, at: float) -> None:
    done = [str(call_id) for [call_id] in await transaction.all(DONE_IN, (tenant, session))]
    note = f"rolled back with session '{session}'; nothing of it is left"
    for call_id in (*done, begun_by):
        if nonce := await transaction.one(TAKEN_BACK, (note, at, tenant, call_id)):
            said = {"from": State.COMMITTED, "to": State.COMPENSATED, "note": note, "nonce": nonce[0]}
            transaction.record(tenant, call_id, "settle", at, act_body(at, "settle", "session", **said))
