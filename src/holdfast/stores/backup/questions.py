"""Which questions were asked and answered meanwhile? An approval that was used there is used here."""

from collections.abc import Sequence

from holdfast.stores.backup.rows import Table
from holdfast.stores.backup.snapshot import Row
from holdfast.stores.sql.engine import Transaction

_OTHERS = (
    "SELECT id FROM approval"
    " WHERE tenant = ? AND principal = ? AND tool = ? AND key = ? AND round = ? AND id <> ?"
)
_NO = ("DENIED", "AUTO_DENIED")


async def take_approvals(transaction: Transaction, table: Table, rows: Sequence[Row]) -> int:
    taken = 0
    for row in rows:
        there, found = table.dict(row), await table.find(transaction, row)
        here = None if found is None else table.dict(found)
        if found == row or (here is not None and _stays(there, here)):
            continue
        place = [there[name] for name in ("tenant", "principal", "tool", "key", "round", "id")]
        for (other,) in await transaction.all(_OTHERS, place):  # asked here again, for the same operation
            for name, column in (("vote", "approval_id"), ("approval", "id")):
                drop = f"DELETE FROM {name} WHERE tenant = ? AND {column} = ?"  # noqa: S608
                await transaction.run(drop, (there["tenant"], other))
        await table.put(transaction, row)
        taken += 1
    return taken


def _stays(there: dict[str, object], here: dict[str, object]) -> bool:
    """Answered here since the restore, and not used there: an answer stays, and a no beats a yes."""
    if there["used_nonce"] is not None or here["answer"] == "PENDING":
        return False
    return there["answer"] == "PENDING" or here["answer"] in _NO
