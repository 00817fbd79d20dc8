"""Which sessions did upstreams keep open for the lost store, and how did they end? The later word counts."""

from collections.abc import Sequence

from holdfast.stores.backup.rows import Table
from holdfast.stores.backup.snapshot import Row
from holdfast.stores.sql.engine import Transaction


async def take_sessions(transaction: Transaction, table: Table, rows: Sequence[Row]) -> int:
    """Nobody moves one in a restored store before it knows, so that whatever was touched later is news."""
    taken, touched = 0, table.columns.index("touched_at")
    for row in rows:
        found = await table.find(transaction, row)
        if found is None or row[touched] > found[touched]:
            await table.put(transaction, row)
            taken += 1
    return taken


async def take_lines(transaction: Transaction, table: Table, rows: Sequence[Row]) -> int:
    """What was rolled back there is no longer told in full here either."""
    taken, body = 0, table.columns.index("body")
    for row in rows:
        found = await table.find(transaction, row)
        if found is None or (row[body] is None and found[body] is not None):
            await table.put(transaction, row)
            taken += 1
    return taken
