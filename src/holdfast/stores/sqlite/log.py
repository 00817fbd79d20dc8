"""The whole log in a database file, as it is on disk: read only, in one moment, past every gateway."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from holdfast.model.errors import StoreError
from holdfast.model.record import Record
from holdfast.records.coverage import Attempt
from holdfast.records.log import Leaf, Row, leaf_from
from holdfast.records.merkle import leaf_hash
from holdfast.stores.sql.sequencer import LEAF, NODE, SIZE
from holdfast.stores.sqlite.spool import SPOOLED_TO, Spools

_LEAVES = """
SELECT l.leaf, l.tenant, l.writer, l.seq, l.call_id, l.at, l.hash,
  r.call_id, r.kind, r.at, r.body, r.prev, r.hash
FROM tree_leaf l LEFT JOIN record r ON r.tenant = l.tenant AND r.writer = l.writer AND r.seq = l.seq
WHERE l.leaf > ? {}ORDER BY l.leaf
"""
_WAITING = """
SELECT tenant, writer, seq, call_id, kind, at, body, prev, hash FROM record r
WHERE NOT EXISTS (
  SELECT 1 FROM tree_leaf l WHERE l.writer = r.writer AND l.seq = r.seq AND l.tenant = r.tenant)
ORDER BY writer, seq
"""
_NODES = "SELECT place, hash FROM tree_node WHERE tenant = '*' AND level = ? ORDER BY place"
_CHECKPOINTS = "SELECT note FROM tree_checkpoint WHERE tenant = '*' ORDER BY size"
_LEDGER = "SELECT tenant, call_id, state, epoch, nonce FROM operation"
_CALL = "SELECT tenant, leaf FROM tree_leaf WHERE call_id = ? ORDER BY leaf LIMIT 1000"

EMPTY: Mapping[str, Sequence[Row]] = MappingProxyType({})
_PAGE = 1_000
"""Leaves read at once: about a megabyte."""


class SqliteLog:
    def __init__(self, connection: sqlite3.Connection, spooled: Mapping[str, Sequence[Row]] = EMPTY) -> None:
        """`spooled` was found beside the database, before that was read."""
        self._connection = connection
        self._spooled = spooled

    def size(self) -> int:
        [(size,)] = self._connection.execute(SIZE).fetchall()
        return int(size)

    def node(self, level: int, place: int) -> bytes:
        """A complete subtree, for proofs."""
        if level == 0:
            [(hashed,)] = self._connection.execute(LEAF, (place,)).fetchall()
            return leaf_hash(hashed)
        [(hashed,)] = self._connection.execute(NODE, (level, place)).fetchall()
        return bytes(hashed)

    def pages(self) -> Iterator[Sequence[Row]]:
        return self._pages("", ())

    def leaves(self) -> Iterator[Leaf]:
        return self._leaves("", ())

    def leaves_of(self, tenant: str | None, since: float) -> Iterator[Leaf]:
        """A part of the log: one tenant's, or what was written from `since` on."""
        if tenant is None:
            return self._leaves("AND l.at >= ? ", (since,))
        return self._leaves("AND l.tenant = ? AND l.at >= ? ", (tenant, since))

    def waiting(self) -> Iterator[Record]:
        for row in self._connection.execute(_WAITING):
            yield Record(*row)
        for writer, rows in self._spooled.items():
            found = self._connection.execute(SPOOLED_TO, (writer,)).fetchone()
            for row in rows:
                if found is None or row[2] > found[0]:
                    yield Record(*row)

    def nodes(self, level: int) -> Iterator[tuple[int, bytes]]:
        return iter(self._connection.execute(_NODES, (level,)))

    def kept_checkpoints(self) -> Iterable[str]:
        return [str(note) for (note,) in self._connection.execute(_CHECKPOINTS)]

    def ledger(self) -> Iterable[Attempt]:
        return (Attempt(*row) for row in self._connection.execute(_LEDGER))

    def _leaves(self, where: str, parameters: tuple[object, ...]) -> Iterator[Leaf]:
        for page in self._pages(where, parameters):
            yield from map(leaf_from, page)

    def _pages(self, where: str, parameters: tuple[object, ...]) -> Iterator[Sequence[Row]]:
        last = -1
        self._connection.text_factory = str
        try:
            for page in self._read_pages(where, (last, *parameters)):
                last = page[-1][0]
                yield page
        except sqlite3.OperationalError:  # text that is none: from here on read as what it looks like
            self._connection.text_factory = _lenient
            yield from self._read_pages(where, (last, *parameters))
        finally:
            self._connection.text_factory = _lenient

    def _read_pages(self, where: str, parameters: tuple[object, ...]) -> Iterator[list[Row]]:
        rows = self._connection.execute(_LEAVES.format(where), parameters)
        while page := rows.fetchmany(_PAGE):
            yield page


def _spooled(path: Path) -> Mapping[str, Sequence[Row]]:
    spools = Spools(path.with_name(f"{path.name}-workers"))
    return {writer: list(spools.all(writer)) for writer in spools.writers()}


def _lenient(raw: bytes) -> str:
    """A flipped bit may make text of what is none: it is read as something else, and its hash tells of it."""
    return raw.decode(errors="replace")


@contextmanager
def opened(path: Path) -> Iterator[SqliteLog]:
    """The log in the database at `path`; raises StoreError, also where it cannot be read to its end."""
    if not path.exists():
        raise StoreError(f"there is no database '{path}'; nothing was recorded here yet")
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise StoreError(f"the database '{path}' cannot be opened: {error}") from error
    connection.text_factory = _lenient
    try:
        spooled = _spooled(path)  # first: what is folded while we look is then in both, and not in neither
        connection.execute("PRAGMA mmap_size = 1073741824")  # all of it is read, once: spare the copies
        connection.execute("BEGIN")
        yield SqliteLog(connection, spooled)
    except sqlite3.Error as error:
        raise StoreError(f"the database '{path}' cannot be read: {error}") from error
    finally:
        connection.close()
