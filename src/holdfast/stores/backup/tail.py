"""What was recorded meanwhile, and does it lead on from what the restored log ends with?

The lost end of the tree is appended leaf by leaf as it was, so that the log grows again out of every
checkpoint that was ever signed. Each record is hashed again and held against its chain. Where that breaks,
the tree ends: what follows is taken as records that wait for their turn, and the sequencer judges them as it
judges all.
"""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from holdfast.model.record import Record
from holdfast.records.chain import GENESIS, record_hash
from holdfast.records.log import Leaf
from holdfast.records.merkle import root_of
from holdfast.stores.backup.snapshot import Row, Snapshot
from holdfast.stores.sql.engine import Reader, Transaction, Writer
from holdfast.stores.sql.sequencer import Tree, append

Heads = dict[str, tuple[int, bytes]]
"""Each writer's last record in the tree."""

LEAVES = """
SELECT l.leaf, l.tenant, l.writer, l.seq, l.call_id, l.at, l.hash, r.kind, r.body, r.prev
FROM tree_leaf l LEFT JOIN record r ON r.tenant = l.tenant AND r.writer = l.writer AND r.seq = l.seq
WHERE l.leaf >= ? ORDER BY l.leaf
"""
_HEADS = "SELECT writer, seq, hash, open, fault FROM chain_head WHERE tenant = '*'"
_RECORDS = (
    "SELECT tenant, writer, seq, call_id, kind, at, body, prev, hash FROM record"
    " WHERE writer = ? AND seq > ? ORDER BY seq"
)
_NOTES = "SELECT size, note FROM tree_checkpoint WHERE tenant = '*' AND size <= ?"

_ADD_RECORD = "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_ADD_HEAD = "INSERT INTO chain_head VALUES ('*', ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_MOVE_HEAD = "UPDATE chain_head SET seq = ?, hash = ?, open = 1 WHERE tenant = '*' AND writer = ?"
_ADD_NOTE = "INSERT INTO tree_checkpoint VALUES ('*', ?, ?) ON CONFLICT DO NOTHING"


class Tail(NamedTuple):
    records: int
    """Taken over, in the tree or waiting for it."""
    fault: str | None
    """Why the tree could not be continued to its old end."""


async def take_tail(source: Snapshot, writer: Writer, reader: Reader) -> Tail:
    """Continue the log with what a lost store had."""
    size = await _tree(reader).size()
    fault, taken = await _parted(source, reader, size), 0
    if fault is None:
        taken, fault = await take_leaves(_leaves(source, size), writer, reader)
    waiting = await _take_waiting(source, writer, reader, whole=fault is None)
    size = await _tree(reader).size()
    notes = await source.all(_NOTES, (size if fault is None else 0,))
    await writer.submit("*", True, _many, _ADD_NOTE, notes)
    return Tail(taken + waiting, fault)


async def take_leaves(
    batches: AsyncIterator[list[Leaf]], writer: Writer, reader: Reader
) -> tuple[int, str | None]:
    """Append leaves that follow the last one here; how many, and what kept the others out."""
    heads = {name: (seq, hashed) for name, seq, hashed, *_ in await reader.all("*", _HEADS)}
    taken, fault, start = 0, None, await _tree(reader).size()
    async for leaves in batches:
        good: list[Leaf] = []
        for place, leaf in enumerate(leaves, start + taken):
            if fault := _fault(leaf, place, heads.get(leaf.writer, (0, GENESIS))):
                break
            heads[leaf.writer] = (leaf.seq, leaf.hash)
            good.append(leaf)
        moved = {leaf.writer: heads[leaf.writer] for leaf in good}
        await writer.submit_long("*", _append, good, moved)
        taken += len(good)
        if fault:
            break
    return taken, fault


async def _parted(source: Snapshot, reader: Reader, size: int) -> str | None:
    """Where the two logs differ in what both have, nothing of one can follow the other."""
    there = Tree(source.all)
    both = min(size, await there.size())
    here = _tree(reader)
    if await there.of(lambda nodes: root_of(nodes, both)) == await here.of(
        lambda nodes: root_of(nodes, both)
    ):
        return None
    return f"its log and the one here differ within the first {both} records"


async def _leaves(source: Snapshot, size: int) -> AsyncIterator[list[Leaf]]:
    async for batch in source.stream(LEAVES, (size,)):
        yield [_leaf(row) for row in batch]


def _leaf(row: Row) -> Leaf:
    place, tenant, writer, seq, call_id, at, hashed, kind, body, prev = row
    record = None if kind is None else Record(tenant, writer, seq, call_id, kind, at, body, prev, hashed)
    return Leaf(place, tenant, writer, seq, call_id, at, hashed, record)


def _fault(leaf: Leaf, place: int, head: tuple[int, bytes]) -> str | None:
    name, record = f"record {leaf.seq} of writer '{leaf.writer}'", leaf.record
    if leaf.place != place:
        return f"leaf {place} of the tree is missing before {name}"
    if leaf.seq != head[0] + 1:
        return f"{name} does not follow record {head[0]}"
    if record is None:
        return None  # pruned: its hash still stands for it
    if record.prev != head[1]:
        return f"{name} does not follow the one before it"
    return None if record_hash(*record[:-1]) == leaf.hash else f"{name} was changed"


async def _append(transaction: Transaction, leaves: Sequence[Leaf], moved: Heads) -> None:
    await transaction.alone("sequencer")
    await transaction.many(_ADD_RECORD, [leaf.record for leaf in leaves if leaf.record is not None])
    places = [
        Record(leaf.tenant, leaf.writer, leaf.seq, leaf.call_id, "", leaf.at, "", b"", leaf.hash)
        for leaf in leaves
    ]
    await append(transaction, Tree(transaction.all), places)
    for name, head in moved.items():
        await transaction.run(_ADD_HEAD, (name, *head, 1, ""))
        await transaction.run(_MOVE_HEAD, (*head, name))


async def _take_waiting(source: Snapshot, writer: Writer, reader: Reader, *, whole: bool) -> int:
    """Records that never were in the tree, or could not be brought into it: each chain from its end here."""
    here = {name: (seq, hashed) for name, seq, hashed, *_ in await reader.all("*", _HEADS)}
    taken = 0
    for name, _, _, is_open, fault in await source.all(_HEADS):
        if whole and not is_open and not fault:
            continue  # all of it is in the tree
        seq, hashed = here.get(name, (0, GENESIS))
        await writer.submit("*", True, _many, _ADD_HEAD, [(name, seq, hashed, 1, fault if whole else "")])
        async for batch in source.stream(_RECORDS, (name, seq)):
            await writer.submit_long("*", _many, _ADD_RECORD, batch)
            taken += len(batch)
    return taken


async def _many(transaction: Transaction, statement: str, rows: Sequence[Row]) -> None:
    await transaction.many(statement, rows)


async def head(reader: Reader) -> tuple[int, bytes]:
    """The size and the root of the tree here."""
    tree = _tree(reader)
    size = await tree.size()
    return size, await tree.of(lambda nodes: root_of(nodes, size))


def _tree(reader: Reader) -> Tree:
    return Tree(lambda statement, values: reader.all("*", statement, values))
