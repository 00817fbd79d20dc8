"""Which records come next in the tree? The jobs behind `audit.sequence`, `prune` and `erase`.

A job runs inside a write transaction, and SQLite has one at a time over all processes: that is the election.
Whoever holds it appends what is committed and not in the tree yet, each writer's records in their order.
"""

import logging
from collections.abc import Set
from typing import Any

from holdfast.records.body import act_body
from holdfast.records.chain import Record, record_hash
from holdfast.records.merkle import Frontier, leaf_hash
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.sqlite.writer import Transaction

log = logging.getLogger(__name__)

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

_PRUNED = "SELECT leaf FROM tree_pruned WHERE tenant = ?"
_OLDEST = (
    "SELECT leaf, seq, at, writer FROM tree_leaf WHERE tenant = ? AND leaf > ? AND leaf < ?"
    " ORDER BY leaf LIMIT ?"
)
_PRUNE = "DELETE FROM record WHERE tenant = ? AND writer = ? AND seq = ?"
_PRUNED_TO = "INSERT INTO tree_pruned VALUES (?, ?) ON CONFLICT (tenant) DO UPDATE SET leaf = excluded.leaf"
# Overwritten, not only unlinked: what is gone must not be found in the file's free space.
_OVERWRITE = "PRAGMA secure_delete = ON"


class Tree:
    """The kept subtrees, as proofs and appends read them."""

    def __init__(self, execute: Any) -> None:
        self._execute = execute

    def node(self, level: int, place: int) -> bytes:
        found = self._execute(LEAF, (place,)) if level == 0 else self._execute(NODE, (level, place))
        [(hashed,)] = found.fetchall()
        return leaf_hash(hashed) if level == 0 else bytes(hashed)

    def size(self) -> int:
        [(size,)] = self._execute(SIZE).fetchall()
        return int(size)


def sequence(transaction: Transaction, dead: Set[str], now: float) -> int:
    """Append at most one batch; how many records that were. Writers in `dead` will write no more."""
    tree, left = Tree(transaction.execute), BATCH
    frontier: Frontier | None = None
    for writer, seq, head in transaction.execute(OPEN_CHAINS).fetchall():
        rows = transaction.execute(_NEXT, (writer, seq, left)).fetchall()
        if rows and frontier is None:
            frontier = Frontier(tree.size(), tree.node)
        taken = 0
        for row in rows:
            record = Record(*row)
            if fault := _fault(record, seq, head):
                _stop(transaction, writer, fault, now)
                break
            assert frontier is not None  # noqa: S101
            _append(transaction, frontier, record)
            seq, head = record.seq, record.hash
            taken += 1
        over = writer in dead and len(rows) < left and taken == len(rows)
        if taken or over:
            transaction.execute(_MOVE_HEAD, (seq, head, int(not over), writer))
        left -= taken
        if left == 0:
            break
    return BATCH - left


def _append(transaction: Transaction, frontier: Frontier, record: Record) -> None:
    place = (record.tenant, frontier.size, record.writer, record.seq, record.call_id, record.at, record.hash)
    transaction.execute(_ADD_LEAF, place)
    for made in frontier.append(leaf_hash(record.hash))[1:]:
        transaction.execute(_ADD_NODE, made)


def _fault(record: Record, seq: int, head: bytes) -> str | None:
    if record.seq != seq + 1:
        return f"record {seq + 1} of writer '{record.writer}' is missing"
    if record.prev != head:
        return f"record {record.seq} of writer '{record.writer}' does not follow the one before it"
    if record_hash(*record[:-1]) != record.hash:
        return f"record {record.seq} of writer '{record.writer}' was changed"
    return None


def _stop(transaction: Transaction, writer: str, fault: str, now: float) -> None:
    """Nothing that cannot be trusted goes into the tree; everybody is told."""
    log.error(
        "audit: %s; nothing more of this writer is taken into the tree: run 'holdfast audit verify'", fault
    )
    transaction.execute(_STOP, (fault, writer))
    transaction.record(EVERYWHERE, "", "alarm", now, act_body(now, "chain broken", "holdfast", fault=fault))


def keep_checkpoint(transaction: Transaction, size: int, note: str) -> None:
    transaction.execute("INSERT INTO tree_checkpoint VALUES ('*', ?, ?) ON CONFLICT DO NOTHING", (size, note))


def prune(transaction: Transaction, tenant: str, before: float, anchored: int, now: float) -> int:
    """Drop at most one batch of a tenant's records, the oldest first, up to the first that is not old yet.

    Only behind a checkpoint. Always a beginning of the tenant's log, so that one figure says what is gone.
    """
    start = transaction.execute(_PRUNED, (tenant,)).fetchone()
    gone, through = 0, -1 if start is None else start[0]
    transaction.execute(_OVERWRITE)
    for leaf, seq, at, writer in transaction.execute(_OLDEST, (tenant, through, anchored, BATCH)).fetchall():
        if at >= before:
            break
        transaction.execute(_PRUNE, (tenant, writer, seq))
        gone, through = gone + 1, leaf
    if gone:
        transaction.execute(_PRUNED_TO, (tenant, through))
        members = {"through": through, "count": gone, "before": before, "checkpoint": anchored}
        transaction.record(tenant, "", "control", now, act_body(now, "prune", "holdfast", **members))
    return gone


def erase(transaction: Transaction, tenant: str, by: str, now: float) -> bool:
    """Drop a tenant's data key: with the root key a copy of it in free space could still be opened."""
    transaction.execute(_OVERWRITE)
    gone = transaction.execute("DELETE FROM tenant_key WHERE tenant = ?", (tenant,)).rowcount
    if gone:
        transaction.record(tenant, "", "control", now, act_body(now, "erase", by))
    return bool(gone)


def note(transaction: Transaction, tenant: str, call_id: str, kind: str, at: float, body: str) -> None:
    transaction.record(tenant, call_id, kind, at, body)
