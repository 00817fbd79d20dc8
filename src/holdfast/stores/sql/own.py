"""Which of our own records come next in the tree?

They are known as they were written, so they need not be read and hashed again: each is taken into the tree
where it is stored to the letter. Where one of them is not, none is taken, and all are judged as anybody's.
"""

from collections.abc import Sequence
from functools import cache
from itertools import chain

from holdfast.model.restored import RESTORED
from holdfast.records.chain import GENESIS, Record
from holdfast.records.merkle import Frontier
from holdfast.stores.sql.engine import OPEN_CHAIN, Transaction, Withdrawn
from holdfast.stores.sql.sequencer import ADD_SPOOLED, MOVE_HEAD, Tree, append, edge_of, grow

BATCH = 1024
"""Records sequenced in one transaction, under 10 ms: calls want the writer too. But a job of a quarter of the
size takes more than half as long: between its statements it waits for the interpreter's lock."""
FOLDED = 512
"""Records that wait beside the database and come into it at once."""
HEAD = "SELECT seq, hash FROM chain_head WHERE tenant = '*' AND writer = ? AND open = 1 AND fault = ''"

_AT_ONCE = (512, 128, 16, 1)
"""Records in one statement: each gives up the interpreter's lock and must wait to get it back."""
_PLACES = f"({', '.join('?' * len(Record._fields))})"
_SAME = " AND ".join(f"r.{name} = w.column{place}" for place, name in enumerate(Record._fields, 1))


@cache
def _add(count: int) -> str:
    """Leaves for so many records, as far as they are stored as given. The first value is from seq to leaf."""
    return (
        "INSERT INTO tree_leaf SELECT r.tenant, r.seq + ?, r.writer, r.seq, r.call_id, r.at, r.hash"  # noqa: S608
        f" FROM (VALUES {', '.join([_PLACES] * count)}) w CROSS JOIN record r ON {_SAME}"
    )


async def sequence_own(
    transaction: Transaction, head: int, records: Sequence[Record], edge: Frontier | None
) -> Frontier | None:
    """Append what follows record `head` of our chain; the tree's new edge.

    None where nothing was: somebody else was faster, nothing may be appended now, or something is wrong.
    """
    await transaction.alone("sequencer")
    if RESTORED in await transaction.halts((RESTORED,)):
        return None
    last = records[-1]
    if await transaction.run(MOVE_HEAD, (last.seq, last.hash, 1, "", last.writer, head)) != 1:
        return None
    frontier = await edge_of(Tree(transaction.all), edge)
    if not await _added(transaction, records, frontier.size - records[0].seq):
        raise Withdrawn(None)
    await grow(transaction, frontier, [record.hash for record in records])
    return frontier


async def fold_own(
    transaction: Transaction, head: int, records: Sequence[Record], edge: Frontier | None
) -> Frontier | None:
    """The same of records that wait beside the database, and come into it with this."""
    await transaction.alone("sequencer")
    if RESTORED in await transaction.halts((RESTORED,)):
        return None
    last = records[-1]
    if head == 0:
        await transaction.run(OPEN_CHAIN, (last.writer, GENESIS))
    if await transaction.run(MOVE_HEAD, (last.seq, last.hash, 1, "", last.writer, head)) != 1:
        return None
    await transaction.many(ADD_SPOOLED, records)
    return await append(transaction, Tree(transaction.all), records, edge)


async def _added(transaction: Transaction, records: Sequence[Record], shift: int) -> bool:
    """Whether each was found as it should be; its leaf is then there."""
    done = 0
    for count in _AT_ONCE:
        while len(records) - done >= count:
            some = chain.from_iterable(records[done : done + count])
            if await transaction.run(_add(count), [shift, *some]) != count:
                return False
            done += count
    return True
