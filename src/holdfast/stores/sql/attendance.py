"""Who waits for an operation? The look behind `ledger.alike`, the jobs behind `attend` and `leave`."""

from holdfast.model.operation import OperationRef
from holdfast.stores.sql.engine import Transaction
from holdfast.stores.sql.rows import COLUMNS

# Newest first, each with the seconds since its end where that was in this boot. An operation whose window is
# over is not looked at: its answer may be gone, and a call that comes so late means something new.
ALIKE = f"""
SELECT {COLUMNS}, CASE WHEN finished_boot_id = ?5 THEN ?6 - (forget_boot - window_s) END FROM operation
WHERE tenant = ?1 AND principal = ?2 AND tool = ?3 AND fingerprint = ?4 AND attendant IS NOT NULL
  AND (finished_boot_id IS NULL OR CASE WHEN finished_boot_id = ?5 THEN forget_boot > ?6
    ELSE finished_at + window_s > ?7 END)
ORDER BY created_at DESC, call_id DESC
"""  # noqa: S608
ATTEND = """
UPDATE operation SET attendant = ?1
WHERE tenant = ?2 AND principal = ?3 AND tool = ?4 AND key = ?5
  AND (attendant = ?6 OR (attendant IS NULL AND ?6 IS NULL))
"""
# A client was told the last word unless what it was told is of an attempt (?3) without effect, or not of the
# last attempt: then the same operation may be tried again.
TELL = """
UPDATE operation SET attendant = CASE
  WHEN CAST(?3 AS BIGINT) IS NULL OR (epoch = ?3 AND state <> 'no_effect') THEN NULL ELSE '' END
WHERE tenant = ?1 AND call_id = ?2 AND attendant IS NOT NULL
"""
LEAVE = "UPDATE operation SET attendant = '' WHERE tenant = ? AND call_id = ? AND attendant = ?"


async def attend(transaction: Transaction, ref: OperationRef, seen: str | None, worker: str) -> bool:
    return await transaction.run(ATTEND, (worker, *ref, seen)) == 1


async def tell(transaction: Transaction, tenant: str, call_id: str, epoch: int | None) -> None:
    await transaction.run(TELL, (tenant, call_id, epoch))


async def leave(transaction: Transaction, tenant: str, call_id: str, worker: str) -> None:
    await transaction.run(LEAVE, (tenant, call_id, worker))
