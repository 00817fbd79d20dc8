"""Which rules and plans stood meanwhile, and what of them was used? Used or ended in either life is so."""

from collections.abc import Sequence

from holdfast.stores.backup.rows import Table
from holdfast.stores.backup.snapshot import Row
from holdfast.stores.sql.engine import Transaction

ENDS_ALL = tuple(
    f"UPDATE {name} SET ended_at = ?, ended_by = ? WHERE ended_at IS NULL"  # noqa: S608
    for name in ("standing_rule", "plan")
)


async def take_standing(transaction: Transaction, table: Table, rows: Sequence[Row]) -> int:
    taken = 0
    for row in rows:
        found = await table.find(transaction, row)
        merged = row if found is None else _merged(table, row, found)
        if merged != found:
            await table.put(transaction, merged)
            taken += 1
    return taken


async def end_all(transaction: Transaction, now: float, by: str) -> None:
    """Nobody knows how often they were used: people are asked again."""
    for statement in ENDS_ALL:
        await transaction.run(statement, (now, by))


def _merged(table: Table, there: Row, here: Row) -> Row:
    lost, kept = table.dict(there), table.dict(here)
    for end in (("ended_at", "ended_by"), ("used_nonce", "call_id")):
        if kept.get(end[0]) is None and lost.get(end[0]) is not None:
            kept.update({name: lost[name] for name in end})
    if isinstance(lost.get("used"), int):
        kept["used"] = max(int(str(kept["used"])), int(str(lost["used"])))
    return tuple(kept.values())
