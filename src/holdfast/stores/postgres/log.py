"""The whole log in a PostgreSQL database, as it is there: read only, in one moment, past every gateway."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from urllib.parse import urlsplit

import asyncpg

from holdfast.model.errors import StoreError
from holdfast.model.record import Record
from holdfast.records.coverage import Attempt
from holdfast.records.log import Leaf, Row, leaf_from
from holdfast.records.merkle import leaf_hash
from holdfast.stores.postgres.aside import Loop, Rows, aside
from holdfast.stores.postgres.connection import Connection

_CONNECT_S = 10.0
_BLOCK, _BLOCKS = 1024, 128
"""Nodes that are read at once, and how many such blocks are kept: some 10 MB."""

_BEGIN = """
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
{}
SET LOCAL search_path = holdfast;
SET LOCAL holdfast.tenant = '*';
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL enable_bitmapscan = off;
"""
_IN_ORDER = "SET LOCAL enable_sort = off;"
"""Leaves come in the order of their index, the first of them at once, instead of when all are sorted."""
_BESIDE = """
SET TRANSACTION SNAPSHOT '{}';
SET LOCAL enable_nestloop = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL work_mem = '64MB';
"""
"""What waits is found by hashing the whole tree: nearly every record is looked for in it, and found."""

_LEAVES = """
SELECT l.leaf, l.tenant, l.writer, l.seq, l.call_id, l.at, l.hash,
  r.call_id, r.kind, r.at, r.body, r.prev, r.hash
FROM tree_leaf l LEFT JOIN record r ON r.tenant = l.tenant AND r.writer = l.writer AND r.seq = l.seq
WHERE l.leaf >= 0 {}ORDER BY l.leaf
"""
_WAITING = """
SELECT tenant, writer, seq, call_id, kind, at, body, prev, hash FROM record r
WHERE NOT EXISTS (
  SELECT 1 FROM tree_leaf l WHERE l.writer = r.writer AND l.seq = r.seq AND l.tenant = r.tenant)
ORDER BY writer, seq
"""
_SIZE = "SELECT coalesce(max(leaf) + 1, 0) FROM tree_leaf"
_LEAF_BLOCK = "SELECT leaf, hash FROM tree_leaf WHERE leaf >= $1 AND leaf < $2"
_NODE_BLOCK = (
    "SELECT place, hash FROM tree_node WHERE tenant = '*' AND place >= $1 AND place < $2 AND level = $3"
)
_NODES = "SELECT place, hash FROM tree_node WHERE tenant = '*' AND level = $1 ORDER BY place"
_CHECKPOINTS = "SELECT note FROM tree_checkpoint WHERE tenant = '*' ORDER BY size"
_LEDGER = "SELECT tenant, call_id, state, epoch, nonce FROM operation"


class PostgresLog:
    def __init__(self, leaves: Rows, beside: Rows) -> None:
        """Leaves and all that is read beside them come over two connections, of the same moment."""
        self._read_leaves = leaves.pages
        self._beside = beside
        self._block = lru_cache(_BLOCKS)(self._read_block)

    def size(self) -> int:
        return int(self._beside.one(_SIZE))

    def node(self, level: int, place: int) -> bytes:
        """A complete subtree, for proofs."""
        try:
            return self._block(level, place // _BLOCK)[place]
        except KeyError:
            raise StoreError(
                f"node {level}/{place} of the tree is missing; run 'holdfast audit verify'"
            ) from None

    def pages(self) -> Iterator[Sequence[Row]]:
        return self._read_leaves(_LEAVES.format(""))

    def leaves(self) -> Iterator[Leaf]:
        return self._leaves("")

    def leaves_of(self, tenant: str | None, since: float) -> Iterator[Leaf]:
        """A part of the log: one tenant's, or what was written from `since` on."""
        if tenant is None:
            return self._leaves("AND l.at >= $1 ", since)
        return self._leaves("AND l.tenant = $1 AND l.at >= $2 ", tenant, since)

    def waiting(self) -> Iterator[Record]:
        return (Record(*row) for row in self._beside.all(_WAITING))

    def nodes(self, level: int) -> Iterator[tuple[int, bytes]]:
        return map(tuple, self._beside.all(_NODES, level))

    def kept_checkpoints(self) -> Iterable[str]:
        return [str(note) for (note,) in self._beside.all(_CHECKPOINTS)]

    def ledger(self) -> Iterable[Attempt]:
        return (Attempt(*row) for row in self._beside.all(_LEDGER))

    def _read_block(self, level: int, number: int) -> dict[int, bytes]:
        """Proofs of neighbours need neighbouring nodes: one question for many of them."""
        start, end = number * _BLOCK, (number + 1) * _BLOCK
        if level == 0:
            return {row[0]: leaf_hash(row[1]) for row in self._beside.all(_LEAF_BLOCK, start, end)}
        return {row[0]: row[1] for row in self._beside.all(_NODE_BLOCK, start, end, level)}

    def _leaves(self, where: str, *values: object) -> Iterator[Leaf]:
        for page in self._read_leaves(_LEAVES.format(where), *values):
            yield from map(leaf_from, page)


@contextmanager
def opened(url: str) -> Iterator[PostgresLog]:
    """The log in the database at `url`; raises StoreError, also where it cannot be read to its end."""
    with aside() as loop:
        try:
            with _rows(loop, url, _IN_ORDER) as leaves:
                moment = leaves.one("SELECT pg_export_snapshot()")
                with _rows(loop, url, _BESIDE.format(moment)) as beside:
                    yield PostgresLog(leaves, beside)
        except asyncpg.UndefinedTableError as error:
            raise StoreError(
                f"there is no log in the database '{_told(url)}'; nothing was recorded here yet"
            ) from error
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, UnicodeDecodeError) as error:
            raise StoreError(f"the database '{_told(url)}' cannot be read: {error}") from error


@contextmanager
def _rows(loop: Loop, url: str, start: str) -> Iterator[Rows]:
    rows = Rows(loop, loop.run(_connect(url, start)))
    try:
        yield rows
    finally:
        rows.close()


async def _connect(url: str, start: str) -> Connection:
    connection = await asyncpg.connect(url, timeout=_CONNECT_S)
    await connection.execute(_BEGIN.format(start))
    return connection


def _told(url: str) -> str:
    """The URL without who connects and their password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
