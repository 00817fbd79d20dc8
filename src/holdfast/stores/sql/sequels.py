"""What is written with an outcome, beside it?"""

from holdfast.model.operation import OperationRef
from holdfast.model.sequel import NewJob, Sequel, SessionBegun, SessionMoved, SessionWorked
from holdfast.stores.sql.engine import Transaction

NEW_JOB = """
INSERT INTO job (tenant, call_id, state, body, token, progress, ends_at, next_at, give_up_at, created_at,
  updated_at)
VALUES (?1, ?2, 'RUNNING', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)
ON CONFLICT (tenant, call_id) DO UPDATE SET state = 'RUNNING', body = ?3, token = ?4, progress = ?5,
  ends_at = ?6, polls = 0, next_at = ?7, give_up_at = ?8, why = '', updated_at = ?9
"""
BEGUN = """
INSERT INTO upstream_session (tenant, id, principal, namespace, name, state, call_id, worker, body, idle_s,
  created_at, touched_at)
VALUES (?1, ?2, ?3, ?4, ?5, 'OPEN', ?6, ?7, ?8, ?9, ?10, ?10)
ON CONFLICT (tenant, id) DO NOTHING
"""
WORKED = """
INSERT INTO upstream_session_line (tenant, session, number, call_id, tool, body, at)
SELECT ?1, ?2, (SELECT count(*) FROM upstream_session_line WHERE tenant = ?1 AND session = ?2), ?3, ?4, ?5, ?6
ON CONFLICT (tenant, session, call_id) DO NOTHING
"""
TOUCHED = """
UPDATE upstream_session SET touched_at = ?3 WHERE tenant = ?1 AND id = ?2 AND state = 'OPEN'
"""
MOVED = """
UPDATE upstream_session SET state = ?3, why = ?4, touched_at = ?5 WHERE tenant = ?1 AND id = ?2
"""


async def write(
    transaction: Transaction, sequel: Sequel, ref: OperationRef, call_id: str, worker: str, at: float
) -> None:
    """`body` is sealed by now."""
    tenant = ref.tenant
    match sequel:
        case NewJob():
            said = (sequel.body, sequel.token, sequel.progress, sequel.ends_at)
            await transaction.run(NEW_JOB, (tenant, call_id, *said, sequel.next_at, sequel.give_up_at, at))
        case SessionBegun():
            named = (sequel.id, ref.principal, sequel.namespace, sequel.name, call_id, worker)
            await transaction.run(BEGUN, (tenant, *named, sequel.body, sequel.idle_s, at))
        case SessionWorked():
            await transaction.run(WORKED, (tenant, sequel.id, call_id, sequel.tool, sequel.body, at))
            await transaction.run(TOUCHED, (tenant, sequel.id, at))
        case SessionMoved():
            await transaction.run(MOVED, (tenant, sequel.id, sequel.state, sequel.why, at))
