"""Which records come next in the tree? The jobs behind `audit.sequence`, `prune` and `erase`.

One process at a time has the office of the sequencer; whoever it is appends what is committed and not in the
tree yet, each writer's records in their order. They are read and judged before anybody has to wait for it:
what is found holds as long as the head of their chain has not moved and the last of them is still there. A
server that crashed takes back what was not durable, and something else may have its place now.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple, TypeVar

from holdfast.model.restored import RESTORED
from holdfast.records.body import act_body
from holdfast.records.chain import GENESIS, Record, record_hash
from holdfast.records.merkle import EMPTY, Frontier, Nodes, leaf_hash, leaf_hashes
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.sql.engine import Fetch, Row, Spools, Transaction

log = logging.getLogger(__name__)

T = TypeVar("T")

BATCH = 512
"""Records sequenced in one transaction, about 5 ms: calls want the writer too."""
_HASH = Record._fields.index("hash")
PAGE = 128
"""Records read and judged at a time, under 1 ms: calls want the event loop too."""

OPEN_CHAINS = "SELECT writer, seq, hash FROM chain_head WHERE open = 1 AND fault = '' ORDER BY writer"
SIZE = "SELECT coalesce(max(leaf) + 1, 0) FROM tree_leaf"
LEAF = "SELECT hash FROM tree_leaf WHERE leaf = ?"
NODE = "SELECT hash FROM tree_node WHERE tenant = '*' AND level = ? AND place = ?"

_NEXT = (
    "SELECT tenant, writer, seq, call_id, kind, at, body, prev, hash FROM record"
    " WHERE writer = ? AND seq > ? ORDER BY seq LIMIT ?"
)
_ANY_HEAD = "SELECT seq, hash, fault FROM chain_head WHERE tenant = '*' AND writer = ?"
OPEN_AGAIN = """
INSERT INTO chain_head VALUES ('*', ?, 0, ?, 1, '')
ON CONFLICT (tenant, writer) DO UPDATE SET open = 1 WHERE chain_head.fault = ''
"""
ADD_RECORD = "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
ADD_SPOOLED = ADD_RECORD.replace("INSERT", "INSERT OR IGNORE")  # a restore that was cut short may have them
_ADD_LEAF = "INSERT INTO tree_leaf VALUES (?, ?, ?, ?, ?, ?, ?)"
_ADD_NODE = "INSERT INTO tree_node VALUES ('*', ?, ?, ?)"
_STORED = "SELECT 1 FROM record WHERE writer = ? AND seq = ? AND hash = ?"
MOVE_HEAD = """
UPDATE chain_head SET seq = ?, hash = ?, open = ?, fault = ?
WHERE tenant = '*' AND writer = ? AND seq = ? AND open = 1 AND fault = ''
"""

_SHUT_HEAD = """
UPDATE chain_head SET open = ?, fault = ?
WHERE tenant = '*' AND writer = ? AND seq = ? AND open = 1 AND fault = ''
"""

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


class Piece(NamedTuple):
    """What comes next in one writer's chain."""

    writer: str
    head: int  # the last of its records that was in the tree
    records: list[Row]  # each as `Record` has it, and not made into one: there are many
    over: bool  # it will write no more, and this is all of it
    fault: str | None  # what is wrong with the record after these
    spooled: bool = False  # the records are not in the database yet

    @property
    def said(self) -> bool:
        """Whether there is anything to write about it."""
        return bool(self.records) or self.over or self.fault is not None


async def look(
    fetch: Fetch, alive: Callable[[str], bool], but: Collection[str] = (), spools: Spools | None = None
) -> list[Piece]:
    """At most one batch of what waits, each record judged; of every writer `but` these."""
    found, left = [], BATCH
    for source in await _sources(fetch, but, spools):
        piece = await _piece(source, left, gone=not alive(source.writer))
        left -= len(piece.records)
        if piece.said:
            found.append(piece)
        if left == 0:
            break
    return found


class _Source(NamedTuple):
    writer: str
    head: tuple[int, bytes]
    spooled: bool
    after: Callable[[str, int, int], Awaitable[list[Row]]]
    """So many of a writer's records that follow one of them."""


async def _sources(fetch: Fetch, but: Collection[str], spools: Spools | None) -> list[_Source]:
    async def stored(*which: object) -> list[Row]:
        return await fetch(_NEXT, which)

    spooled = {} if spools is None else dict.fromkeys(spools.writers(), spools.after)
    found = {writer: (seq, bytes(head)) for writer, seq, head in await fetch(OPEN_CHAINS, ())}
    for writer in spooled.keys() - found.keys():  # new, or thought to be over
        for seq, head, fault in [*await fetch(_ANY_HEAD, (writer,)), (0, GENESIS, "")][:1]:
            if not fault:
                found[writer] = seq, bytes(head)
    return [
        _Source(writer, head, writer in spooled, spooled.get(writer, stored))
        for writer, head in sorted(found.items())
        if writer not in but
    ]


async def _piece(source: _Source, most: int, *, gone: bool) -> Piece:
    """`gone` was found out before this reads: what a dead writer wrote is all there."""
    (seq, hashed), spooled = source.head, source.spooled
    piece = Piece(source.writer, seq, [], over=False, fault=None, spooled=spooled)
    while True:
        wanted = min(PAGE, most - len(piece.records))
        rows = await source.after(source.writer, seq, wanted)
        for row in rows:
            if fault := _fault(row, seq, hashed):
                return piece._replace(fault=fault)
            piece.records.append(row)
            seq, hashed = seq + 1, row[_HASH]
        if len(rows) < wanted:
            return piece._replace(over=gone)
        if len(piece.records) == most:
            return piece
        await asyncio.sleep(0)


async def sequence(
    transaction: Transaction, pieces: Sequence[Piece], edge: Frontier | None, now: float
) -> tuple[int, Frontier | None] | None:
    """Append what was found; how many records that were, and the tree's new edge where it is known.

    A piece whose head has moved is somebody else's; `edge` is the tree's as it was after the last time. None
    where nothing may be appended: the lost end of the tree may still come back, and goes in first.
    """
    await transaction.alone("sequencer")
    if RESTORED in await transaction.halts((RESTORED,)):
        return None
    batch: list[Row] = []
    for piece in pieces:
        if piece.spooled:
            await transaction.run(OPEN_AGAIN, (piece.writer, GENESIS))
        if await _moved(transaction, piece):
            if piece.spooled:
                await transaction.many(ADD_SPOOLED, piece.records)
            batch += piece.records
            if piece.fault is not None:
                _alarm(transaction, piece.fault, now)
    if batch:
        edge = await append(transaction, Tree(transaction.all), batch, edge)
    return len(batch), edge


async def _moved(transaction: Transaction, piece: Piece) -> bool:
    """Whether what was found is still so; then the chain's head is now behind the piece."""
    how = (int(not piece.over), piece.fault or "", piece.writer, piece.head)
    if not piece.records:
        return await transaction.run(_SHUT_HEAD, how) == 1
    last = Record(*piece.records[-1])
    if not piece.spooled and await transaction.one(_STORED, (last.writer, last.seq, last.hash)) is None:
        return False
    return await transaction.run(MOVE_HEAD, (last.seq, last.hash, *how)) == 1


async def append(
    transaction: Transaction, tree: Tree, batch: Sequence[Row], edge: Frontier | None = None
) -> Frontier:
    """These records are the next leaves; the tree's edge then. `edge` is one that may still be the tree's."""
    frontier = await edge_of(tree, edge)
    places = [
        (tenant, place, writer, seq, call_id, at, hashed)
        for place, (tenant, writer, seq, call_id, _, at, _, _, hashed) in enumerate(batch, frontier.size)
    ]
    await transaction.many(_ADD_LEAF, places)
    await grow(transaction, frontier, [record[_HASH] for record in batch])
    return frontier


async def edge_of(tree: Tree, known: Frontier | None) -> Frontier:
    """Where the tree ends, to go on from; `known` is where it ended once."""
    size = await tree.size()
    if known is None or known.size != size:
        return await tree.of(lambda nodes: Frontier(size, nodes))
    return known.copy()


async def grow(transaction: Transaction, frontier: Frontier, hashes: Sequence[bytes]) -> None:
    """Write the subtrees that the next leaves, of records with these hashes, make complete."""
    await transaction.many(_ADD_NODE, frontier.extend(leaf_hashes(hashes)))


async def reopen(transaction: Transaction) -> int:
    """Take up the chains again that have more than was thought."""
    await transaction.alone("sequencer")
    return await transaction.run(_REOPEN)


def _fault(row: Row, before: int, head: bytes) -> str | None:
    _, writer, seq, _, _, _, _, prev, hashed = row
    if seq != before + 1:
        return f"record {before + 1} of writer '{writer}' is missing"
    if prev != head:
        return f"record {seq} of writer '{writer}' does not follow the one before it"
    return None if record_hash(*row[:_HASH]) == hashed else f"record {seq} of writer '{writer}' was changed"


def _alarm(transaction: Transaction, fault: str, now: float) -> None:
    """Nothing that cannot be trusted goes into the tree; everybody is told."""
    log.error(
        "audit: %s; nothing more of this writer is taken into the tree: run 'holdfast audit verify'", fault
    )
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
