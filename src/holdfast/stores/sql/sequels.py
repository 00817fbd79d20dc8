"""What is written with an outcome, beside it?"""

from holdfast.model.operation import OperationRef
from holdfast.model.sequel import NewJob, Sequel, SessionBegun, SessionMoved, SessionWorked
from holdfast.stores.sql import session_moves
from holdfast.stores.sql.engine import Transaction

NEW_JOB = """
INSERT INTO job (tenant, call_id, state, body, token, progress, ends_at, next_at, give_up_at, created_at,
  updated_at)
VALUES (?1, ?2, 'RUNNING', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)
ON CONFLICT (tenant, call_id) DO UPDATE SET state = 'RUNNING', body = ?3, token = ?4, progress = ?5,
  ends_at = ?6, polls = 0, next_at = ?7, give_up_at = ?8, taken_by = '', taken_until = 0, why = '',
  updated_at = ?9
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
            await session_moves.begun(transaction, sequel, ref, call_id, worker, at)
        case SessionWorked():
            await session_moves.worked(transaction, sequel, tenant, call_id, at)
        case SessionMoved():
            await session_moves.moved(transaction, sequel, tenant, at)
