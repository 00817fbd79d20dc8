"""Is there budget left, and what became of what was set aside? The jobs behind reservations; POL-4.

What is reserved belongs to an operation and moves only with it: claimed and unknown keep it, an effect uses
it, no effect gives it back. Each step is in the transaction that changes the operation, so a crash leaves the
sum either as before or as after.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.model.limits import Account, Amount, Bucket, Kind, Per
from holdfast.model.stage import ReserveBudget
from holdfast.ports import Denied
from holdfast.records.body import act_body
from holdfast.stores.denial import budget_denied
from holdfast.stores.spending import Outcome, parts
from holdfast.stores.sql.engine import Transaction

Row = tuple[Any, ...]

RESERVE = """
INSERT INTO budget VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, 0, 0, ?8, ?9, ?10, ?11)
ON CONFLICT (tenant, bucket) DO UPDATE SET
  calls_reserved = budget.calls_reserved + ?8, cost_reserved = budget.cost_reserved + ?9,
  wall_ms_reserved = budget.wall_ms_reserved + ?10, retries_reserved = budget.retries_reserved + ?11
WHERE (CAST(?12 AS BIGINT) IS NULL OR budget.calls_used + budget.calls_reserved + ?8 <= ?12)
  AND (CAST(?13 AS BIGINT) IS NULL OR budget.cost_used + budget.cost_reserved + ?9 <= ?13)
  AND (CAST(?14 AS BIGINT) IS NULL OR budget.wall_ms_used + budget.wall_ms_reserved + ?10 <= ?14)
  AND (CAST(?15 AS BIGINT) IS NULL OR budget.retries_used + budget.retries_reserved + ?11 <= ?15)
RETURNING 1
"""
_TAKEN = (
    "SELECT calls_used + calls_reserved, cost_used + cost_reserved, wall_ms_used + wall_ms_reserved,"
    " retries_used + retries_reserved FROM budget WHERE tenant = ? AND bucket = ?"
)
ACCOUNT = (
    "SELECT per, kind, subject, window_s, starts_at, calls_used, cost_used, wall_ms_used, retries_used,"
    " calls_reserved, cost_reserved, wall_ms_reserved, retries_reserved FROM budget WHERE tenant = ?"
)
ACCOUNTS = ACCOUNT + " ORDER BY per, kind, subject, starts_at"
ONE_ACCOUNT = ACCOUNT + " AND bucket = ?"
_SET_ASIDE = "INSERT INTO reservation VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?)"
HELD = "SELECT bucket, calls, cost, wall_ms, retries, open FROM reservation WHERE tenant = ? AND call_id = ?"
_HELD = HELD + " ORDER BY bucket /* FOR UPDATE */"  # in one order, so that nobody waits for each other
_MOVE = """
UPDATE budget SET
  calls_used = calls_used + ?3, cost_used = cost_used + ?4, wall_ms_used = wall_ms_used + ?5,
  retries_used = retries_used + ?6, calls_reserved = calls_reserved - ?7, cost_reserved = cost_reserved - ?8,
  wall_ms_reserved = wall_ms_reserved - ?9, retries_reserved = retries_reserved - ?10
WHERE tenant = ?1 AND bucket = ?2
"""
_DROP = "DELETE FROM reservation WHERE tenant = ? AND call_id = ?"
_DROP_ONE = _DROP + " AND bucket = ?"
_SHUT = (
    "UPDATE reservation SET open = 0, calls = ?, cost = ?, wall_ms = 0, retries = 0, owner = '', at = ?"
    " WHERE tenant = ? AND call_id = ? AND bucket = ?"
)
OF_READS = "SELECT tenant, call_id, owner, boot_id, lease_boot FROM reservation WHERE owner <> ''"
_STILL_A_READ = (
    "SELECT 1 FROM reservation WHERE tenant = ? AND call_id = ? AND owner = ? LIMIT 1 /* FOR UPDATE */"
)
_FORGET_OVER = (
    "DELETE FROM budget WHERE window_s IS NOT NULL AND starts_at + 2 * window_s <= ?"
    " AND calls_reserved = 0 AND cost_reserved = 0 AND wall_ms_reserved = 0 AND retries_reserved = 0"
)


class Holder(NamedTuple):
    """Who holds a reservation, and until when it is believed to."""

    tenant: str
    call_id: str
    owner: str  # '' where an operation is the holder
    boot_id: str
    lease_boot: float
    at: float


async def reserve(transaction: Transaction, gate: str, stage: ReserveBudget, holder: Holder) -> Denied | None:
    bucket, ask, limit = stage.bucket, stage.ask, stage.limit
    name = (holder.tenant, bucket.name)
    described = (bucket.per.value, bucket.kind.value, bucket.subject, bucket.window_s, bucket.starts_at)
    fits = limit.holds(ask)  # the first to come meets no row whose sum could be compared
    if not fits or not await transaction.one(RESERVE, (*name, *described, *ask, *limit)):
        taken = await transaction.one(_TAKEN, name)
        return budget_denied(gate, stage, Amount(*taken) if taken else Amount())
    kept = (holder.owner, holder.boot_id, holder.lease_boot, holder.at)
    await transaction.run(_SET_ASIDE, (holder.tenant, holder.call_id, bucket.name, *ask, *kept))
    return None


async def start_over(transaction: Transaction, tenant: str, call_id: str) -> None:
    """An operation that is claimed again reserves anew: what an earlier attempt still holds goes back."""
    for bucket, *amount, is_open in await transaction.all(_HELD, (tenant, call_id)):
        if is_open:
            await transaction.run(_MOVE, (tenant, bucket, 0, 0, 0, 0, *amount))
    await transaction.run(_DROP, (tenant, call_id))


async def settle(transaction: Transaction, tenant: str, call_id: str, outcome: Outcome, at: float) -> None:
    """Move what was set aside to where it belongs now; a second time finds nothing to move."""
    for bucket, *amount, is_open in await transaction.all(_HELD, (tenant, call_id)):
        held = Amount(*amount)
        used, back = parts(held, outcome)
        released = held if is_open else Amount()
        if is_open or outcome.happened:
            await transaction.run(_MOVE, (tenant, bucket, *used, *released))
        if outcome.happened:
            await transaction.run(_DROP_ONE, (tenant, call_id, bucket))
        elif is_open:
            await transaction.run(_SHUT, (back.calls, back.cost, at, tenant, call_id, bucket))


async def drop(transaction: Transaction, tenant: str, call_id: str, outcome: Outcome, at: float) -> None:
    """A read is over: nothing can show up later."""
    await settle(transaction, tenant, call_id, outcome, at)
    await transaction.run(_DROP, (tenant, call_id))


async def count_lost(transaction: Transaction, lost: Sequence[tuple[str, str, str]], at: float) -> int:
    """Reads whose worker died or went silent may have happened: they count as used."""
    counted = 0
    for tenant, call_id, owner in lost:
        if await transaction.one(_STILL_A_READ, (tenant, call_id, owner)):
            await drop(transaction, tenant, call_id, Outcome(happened=True), at)
            body = act_body(at, "count_lost_read", "sweep", status="unknown")
            transaction.record(tenant, call_id, "settle", at, body)
            counted += 1
    return counted


async def forget(transaction: Transaction, at: float) -> None:
    """Accounts of windows that are over. What was given back is kept as long as its operation is."""
    await transaction.run(_FORGET_OVER, (at,))


def account(row: Row) -> Account:
    per, kind, subject, window_s, starts_at, *amounts = row
    bucket = Bucket(per=Per(per), kind=Kind(kind), subject=subject, window_s=window_s, starts_at=starts_at)
    return Account(bucket=bucket, used=Amount(*amounts[:4]), reserved=Amount(*amounts[4:]))
