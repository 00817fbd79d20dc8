"""Which records come next in the tree? The jobs behind `audit.sequence`, `prune` and `erase`.

One process at a time has the office of the sequencer; whoever it is appends what is committed and not in the
tree yet, each writer's records in their order.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence, Set
from typing import TypeVar

from holdfast.model.restored import RESTORED
from holdfast.records.body import act_body
from holdfast.records.chain import Record, record_hash
from holdfast.records.merkle import EMPTY, Frontier, Nodes, leaf_hash
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.sql.engine import Row, Transaction, Values

log = logging.getLogger(__name__)

T = TypeVar("T")

BATCH = 500
"""Records sequenced in one transaction, about 10 ms: calls want the writer too."""

WAITING = """
SELECT EXISTS (SELECT 1 FROM chain_head h WHERE h.open = 1 AND h.fault = ''
  AND EXISTS (SELECT 1 FROM record r WHERE r.writer = h.writer AND r.seq > h.seq))
"""
OPEN_CHAINS = "SELECT writer, seq, hash FROM chain_head WHERE open = 1 AND fault = '' ORDER BY writer"
SIZE = "SELECT coalesce(max(leaf) + 1, 0) FROM tree_leaf"
LEAF = "SELECT hash FROM tree_leaf WHERE leaf = ?"
NODE = "SELECT hash FROM tree_node WHERE tenant = '*' AND level = ? AND place = ?"

_NEXT = (
    "SELECT tenant, writer, seq, call_id, kind, at, body, prev, hash FROM record"
    " WHERE writer = ? AND seq > ? ORDER BY seq LIMIT ?"
)
_ADD_LEAF = "INSERT INTO tree_leaf VALUES (?, ?, ?, ?, ?, ?, ?)"
_ADD_NODE = "INSERT INTO tree_node VALUES ('*', ?, ?, ?)"
_MOVE_HEAD = "UPDATE chain_head SET seq = ?, hash = ?, open = ? WHERE tenant = '*' AND writer = ?"
_STOP = "UPDATE chain_head SET fault = ? WHERE tenant = '*' AND writer = ?"

# A writer that was taken for dead may have written on, or something of it was committed late.
_REOPEN = """
UPDATE chain_head SET open = 1 WHERE open = 0 AND fault = '' AND EXISTS (
  SELECT 1 FROM record r WHERE r.writer = chain_head.writer AND r.seq > chain_head.seq)
"""

_PRUNED = "SELECT leaf FROM tree_pruned WHERE tenant = ?"
_OLDEST = (
    "SELECT leaf, seq, at, writer FROM tree_leaf WHERE tenant = ? AND leaf > ? AND leaf < ?"
    " ORDER BY leaf LIMIT ?"
)
_PRUNE = "DELETE FROM record WHERE tenant = ? AND writer = ? AND seq = ?"
_PRUNED_TO = "INSERT INTO tree_pruned VALUES (?, ?) ON CONFLICT (tenant) DO UPDATE SET leaf = excluded.leaf"


Fetch = Callable[[str, Values], Awaitable[list[Row]]]


class Tree:
    """The kept subtrees, as proofs and appends read them."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def size(self) -> int:
        [(size,)] = await self._fetch(SIZE, ())
        return int(size)

    async def of(self, compute: Callable[[Nodes], T]) -> T:
        """What `compute` makes of the nodes it asks for. Which those are depends on sizes, not on hashes: a
        first run with blank ones tells what to fetch. Complete subtrees never change, so no lock is needed.
        """
        wanted: dict[tuple[int, int], bytes] = {}

        def note(level: int, place: int) -> bytes:
            return wanted.setdefault((level, place), EMPTY)

        compute(note)
        for name in wanted:
            wanted[name] = await self._node(*name)
        return compute(lambda level, place: wanted[level, place])

    async def _node(self, level: int, place: int) -> bytes:
        [(hashed,)] = await (self._fetch(LEAF, (place,)) if level == 0 else self._fetch(NODE, (level, place)))
        return leaf_hash(hashed) if level == 0 else bytes(hashed)


async def sequence(transaction: Transaction, dead: Set[str], now: float) -> int:
    """Append at most one batch; how many records that were. Writers in `dead` will write no more."""
    await transaction.alone("sequencer")
    if RESTORED in await transaction.halts():
        return 0  # the lost end of the tree may still come back, and goes in first
    tree, left = Tree(transaction.all), BATCH
    batch: list[Record] = []
    for writer, seq, head in await transaction.all(OPEN_CHAINS):
        rows = await transaction.all(_NEXT, (writer, seq, left))
        taken = 0
        for row in rows:
            record = Record(*row)
            if fault := _fault(record, seq, head):
                await _stop(transaction, writer, fault, now)
                break
            batch.append(record)
            seq, head = record.seq, record.hash
            taken += 1
        over = writer in dead and len(rows) < left and taken == len(rows)
        if taken or over:
            await transaction.run(_MOVE_HEAD, (seq, head, int(not over), writer))
        left -= taken
        if left == 0:
            break
    if batch:
        await append(transaction, tree, batch)
    return len(batch)


async def append(transaction: Transaction, tree: Tree, batch: Sequence[Record]) -> None:
    """These are the next leaves of the tree."""
    size = await tree.size()
    frontier = await tree.of(lambda nodes: Frontier(size, nodes))
    places = [(r.tenant, size + i, r.writer, r.seq, r.call_id, r.at, r.hash) for i, r in enumerate(batch)]
    made = [node for record in batch for node in frontier.append(leaf_hash(record.hash))[1:]]
    await transaction.many(_ADD_LEAF, places)
    await transaction.many(_ADD_NODE, made)


async def reopen(transaction: Transaction) -> int:
    """Take up the chains again that have more than was thought."""
    await transaction.alone("sequencer")
    return await transaction.run(_REOPEN)


def _fault(record: Record, seq: int, head: bytes) -> str | None:
    if record.seq != seq + 1:
        return f"record {seq + 1} of writer '{record.writer}' is missing"
    if record.prev != head:
        return f"record {record.seq} of writer '{record.writer}' does not follow the one before it"
    if record_hash(*record[:-1]) != record.hash:
        return f"record {record.seq} of writer '{record.writer}' was changed"
    return None


async def _stop(transaction: Transaction, writer: str, fault: str, now: float) -> None:
    """Nothing that cannot be trusted goes into the tree; everybody is told."""
    log.error(
        "audit: %s; nothing more of this writer is taken into the tree: run 'holdfast audit verify'", fault
    )
    await transaction.run(_STOP, (fault, writer))
    transaction.record(EVERYWHERE, "", "alarm", now, act_body(now, "chain broken", "holdfast", fault=fault))


async def keep_checkpoint(transaction: Transaction, size: int, note: str) -> None:
    await transaction.run(
        "INSERT INTO tree_checkpoint VALUES ('*', ?, ?) ON CONFLICT DO NOTHING", (size, note)
    )


async def prune(transaction: Transaction, tenant: str, before: float, anchored: int, now: float) -> int:
    """Drop at most one batch of a tenant's records, the oldest first, up to the first that is not old yet.

    Only behind a checkpoint. Always a beginning of the tenant's log, so that one figure says what is gone.
    """
    await transaction.alone("pruner")
    start = await transaction.one(_PRUNED, (tenant,))
    gone, through = 0, -1 if start is None else start[0]
    await transaction.shred()
    for leaf, seq, at, writer in await transaction.all(_OLDEST, (tenant, through, anchored, BATCH)):
        if at >= before:
            break
        await transaction.run(_PRUNE, (tenant, writer, seq))
        gone, through = gone + 1, leaf
    if gone:
        await transaction.run(_PRUNED_TO, (tenant, through))
        members = {"through": through, "count": gone, "before": before, "checkpoint": anchored}
        transaction.record(tenant, "", "control", now, act_body(now, "prune", "holdfast", **members))
    return gone


async def erase(transaction: Transaction, tenant: str, by: str, now: float) -> bool:
    """Drop a tenant's data key: with the root key a copy of it in free space could still be opened."""
    await transaction.shred()
    gone = await transaction.run("DELETE FROM tenant_key WHERE tenant = ?", (tenant,))
    if gone:
        transaction.record(tenant, "", "control", now, act_body(now, "erase", by))
    return bool(gone)


async def note(transaction: Transaction, tenant: str, call_id: str, kind: str, at: float, body: str) -> None:
    transaction.record(tenant, call_id, kind, at, body)
