"""What was spent meanwhile? Never less is used here than there; reserved is what open operations hold."""

from collections.abc import Sequence

from holdfast.stores.backup.rows import Table
from holdfast.stores.backup.snapshot import Row
from holdfast.stores.sql.engine import Transaction

_PARTS = ("calls", "cost", "wall_ms", "retries")
_SAME_ATTEMPT = "SELECT 1 FROM operation WHERE tenant = ? AND call_id = ? AND epoch = ? AND nonce = ?"
_DROP = "DELETE FROM reservation WHERE tenant = ? AND call_id = ?"
_NONE_RESERVED = (
    "UPDATE budget SET calls_reserved = 0, cost_reserved = 0, wall_ms_reserved = 0, retries_reserved = 0"
)
_OPEN = (
    "SELECT sum(calls), sum(cost), sum(wall_ms), sum(retries), tenant, bucket FROM reservation WHERE open = 1"
    " GROUP BY tenant, bucket"
)
_RESERVED = (
    "UPDATE budget SET calls_reserved = ?, cost_reserved = ?, wall_ms_reserved = ?, retries_reserved = ?"
    " WHERE tenant = ? AND bucket = ?"
)

Attempt = tuple[str, str, int | None, str | None]
"""Tenant, call, epoch and nonce of an operation; of a read the last two are None."""


async def drop_reservations(transaction: Transaction, attempts: Sequence[Attempt]) -> None:
    """Forget what these hold here, where the operation is the one that was taken over."""
    for tenant, call_id, epoch, nonce in attempts:
        if epoch is None or await transaction.one(_SAME_ATTEMPT, (tenant, call_id, epoch, nonce)):
            await transaction.run(_DROP, (tenant, call_id))


async def take_reservations(
    transaction: Transaction, table: Table, rows: Sequence[tuple[Row, Attempt]]
) -> None:
    for row, (tenant, call_id, epoch, nonce) in rows:
        if epoch is None or await transaction.one(_SAME_ATTEMPT, (tenant, call_id, epoch, nonce)):
            await table.put(transaction, row)


async def take_budgets(transaction: Transaction, table: Table, rows: Sequence[Row]) -> None:
    for row in rows:
        there, found = table.dict(row), await table.find(transaction, row)
        here = there if found is None else table.dict(found)
        for part in _PARTS:
            name = f"{part}_used"
            there[name] = max(int(str(there[name])), int(str(here[name])))
        await table.put(transaction, tuple(there.values()))


async def sum_reserved(transaction: Transaction) -> None:
    await transaction.run(_NONE_RESERVED)
    for *amounts, tenant, bucket in await transaction.all(_OPEN):
        await transaction.run(_RESERVED, (*map(int, amounts), tenant, bucket))


async def take_rates(transaction: Transaction, table: Table, rows: Sequence[Row]) -> None:
    for row in rows:
        found = await table.find(transaction, row)
        if found is None or found[-1] < row[-1]:
            await table.put(transaction, row)
