"""Where do records wait that belong to no transaction?

A read claims nothing and a refused call changes nothing: all there is to keep of either is its records. They
are appended to a file beside the database, one write each, before anything is sent or answered: as safe from
a killed process as a commit that does not wait for the disk, and a fraction of its work. From there they are
folded into the database many at a time, into the table of records and the tree in one step. The head of the
chain says how far that went, so whatever dies in between, each record arrives once.

A process folds its own file out of its memory. Those of the dead, and of the living when somebody wants to
see everything, are read and judged like any other writer's records.
"""

import asyncio
import logging
import os
import sqlite3
from binascii import unhexlify
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from holdfast.model.errors import StoreError
from holdfast.model.record import Record
from holdfast.records.chain import Chain, Mark
from holdfast.stores.recent import Recent
from holdfast.stores.sql.engine import Row
from holdfast.stores.sqlite.standing import Halts, Standing

log = logging.getLogger(__name__)

CHAIN = ".spool"
"""What follows a worker's name in that of its spool's chain."""
SPOOLED_TO = "SELECT seq, fault FROM chain_head WHERE tenant = '*' AND writer = ?"
"""The last record of a spool that is in the database: it comes into the tree in the same step."""
_ENDING = ".records"
FOLD_AT = 4096
"""Records that wait before somebody is told to fold them."""


class Spool:
    """One process's own file; what was recorded is kept when `keep` returns."""

    segment = 4 << 20
    """Bytes of one file: what is folded goes away file by file."""
    most = 256 << 20
    """Bytes that may wait; where nothing can be folded for so long, records go the ordinary way."""

    def __init__(self, folder: Path, worker: str, connection: sqlite3.Connection) -> None:
        """`connection` is only for looking at what claims obey, so that it never waits for a commit."""
        self._folder, self._connection = folder, connection
        self._chain, self._standing = Chain(f"{worker}{CHAIN}"), Standing()
        self.recent = Recent(self._chain.writer, FOLD_AT)
        self._records: list[Record] = []
        self._mark: Mark = self._chain.mark()
        self._checked = False
        self._file: int | None = None
        self._closed = False
        self._path = folder
        self._size = self._waiting = 0
        self._ended: list[tuple[Path, int, int]] = []
        """Files that are written, each with its last record and its size."""

    def begin(self) -> bool:
        """What is recorded from here on is kept together with `keep`, or not at all; False for no room."""
        self._mark, self._checked = self._chain.mark(), False
        return self._waiting < self.most and not self._closed

    def standing(self) -> tuple[str | None, Halts]:
        """The version of the policies, and what is halted, as committed since `begin`."""
        standing, connection = self._standing, self._connection
        try:
            if not self._checked:
                standing.check(connection)
                self._checked = True
            return standing.promoted(connection), standing.halts(connection)
        except sqlite3.Error as error:
            raise StoreError(f"the store cannot be read: {error}") from error

    def record(self, tenant: str, call_id: str, kind: str, at: float, body: str) -> None:
        self._records.append(self._chain.append(tenant, call_id, kind, at, body))

    def keep(self) -> None:
        """Raises StoreError; then nothing of it is acknowledged."""
        records, self._records = self._records, []
        if not records:
            return
        lines, written = b"".join([_line(record) for record in records]), 0
        try:
            file = self._file
            if file is None or self._size > self.segment:
                file = self._next_file(records[0].seq)
            written = os.write(file, lines)
            if written != len(lines):
                raise OSError("there is no room left on the disk")
        except OSError as error:
            self._cut_off(records, lines[:written])
            raise StoreError(f"the store did not take the write: {error}") from error
        self._kept(records, written)

    def _kept(self, records: list[Record], size: int) -> None:
        self._size += size
        self._waiting += size
        self.recent.add(records)

    def _cut_off(self, records: list[Record], written: bytes) -> None:
        """Whole lines stay, for somebody may have read them; what is half there is nowhere."""
        whole = written.count(b"\n")
        if whole:
            self._kept(records[:whole], written.rindex(b"\n") + 1)
            self._mark = records[whole - 1].seq, records[whole - 1].hash
        if self._file is not None:
            try:
                os.ftruncate(self._file, self._size)
            except OSError as error:
                self.most = 0  # whatever comes from now on goes the ordinary way
                log.error("'%s' cannot be cut back to what was acknowledged: %s", self._path, error)

    def sync(self) -> None:
        """What was kept survives a power cut; raises StoreError."""
        if self._file is not None:
            try:
                os.fdatasync(self._file)
            except OSError as error:
                raise StoreError(f"the store did not take the write: {error}") from error

    def drop(self) -> None:
        """Nothing was recorded after all."""
        self._records.clear()
        self._chain.reset(self._mark)

    def folded(self, seq: int) -> None:
        """Everything up to this record is in the database for good."""
        if seq == self._chain.mark()[0]:
            self._end_file(seq)
        while self._ended and self._ended[0][1] <= seq:
            path, _, size = self._ended.pop(0)
            self._waiting -= size
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """What was not folded stays for others."""
        self._closed = True
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._connection.close()

    def _next_file(self, first: int) -> int:
        self._end_file(first - 1)
        self._path = self._folder / f"{self._chain.writer}.{first:012d}{_ENDING}"
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self._path, flags, 0o600)
        self._size = 0
        return self._file

    def _end_file(self, last: int) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self._ended.append((self._path, last, self._size))


class _Read:
    """One file as far as it was read."""

    def __init__(self, path: Path) -> None:
        self.path, self.first = path, _first(path)
        self.rows: list[Row] = []
        self._end = 0

    def read_on(self) -> None:
        with self.path.open("rb") as file:
            file.seek(self._end)
            *lines, torn = file.read().split(b"\n")
        if torn:  # by the end of its process or of the power; nobody was told of it
            log.warning("'%s' ends in the middle of a record, which is left out", self.path)
        writer = _writer(self.path)
        self.rows += [_row(line, writer, seq) for seq, line in enumerate(lines, self.first + len(self.rows))]
        self._end += sum(map(len, lines)) + len(lines)

    @property
    def is_all(self) -> bool:
        return self.path.stat().st_size == self._end


class Spools:
    """The files of all workers, as they are on the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: _Read | None = None

    def writers(self) -> list[str]:
        return sorted({_writer(path) for path in self._folder.glob(f"*{_ENDING}")})

    async def after(self, writer: str, seq: int, most: int) -> list[Row]:
        """What follows record `seq` of a chain, up to so many."""
        found: list[Row] = []
        while len(found) < most:
            files = self._of(writer)
            fitting = [path for path in files if _first(path) <= seq + 1]
            some = await self._rows_after(fitting[-1], seq, most - len(found)) if fitting else []
            if not some:
                if not found and any(_first(path) > seq + 1 for path in files):
                    return [_unbelievable(writer, seq + 1)]  # there was a file between these
                break
            found += some
            seq += len(some)
        return found

    async def _rows_after(self, path: Path, seq: int, most: int) -> list[Row]:
        """Files are read aside: calls want the event loop too."""
        last = self._last
        try:
            if last is None or last.path != path:
                last = self._last = _Read(path)
            if not last.is_all:
                await asyncio.to_thread(last.read_on)
        except FileNotFoundError:  # folded meanwhile
            return []
        start = seq + 1 - last.first
        return last.rows[start : start + most]

    def drop(self, writer: str) -> None:
        """All of it is in the database, and its worker is gone."""
        for path in self._of(writer):
            path.unlink(missing_ok=True)

    def put_aside(self, kept: Path) -> None:
        """What is still here belongs to a database that is no longer in its place, and cannot be read."""
        for writer in self.writers():
            for path in self._of(writer):
                path.rename(kept.with_name(f"{kept.name}-{path.name}"))

    def all(self, writer: str) -> Iterator[Row]:
        """Everything that is there of a chain, at once."""
        for path in self._of(writer):
            read = _Read(path)
            try:
                read.read_on()
            except FileNotFoundError:  # folded meanwhile
                continue
            yield from read.rows

    def _of(self, writer: str) -> Sequence[Path]:
        return sorted(self._folder.glob(f"{writer}.*{_ENDING}"))


def _writer(path: Path) -> str:
    return path.name.removesuffix(_ENDING).rpartition(".")[0]


def _first(path: Path) -> int:
    number = path.name.removesuffix(_ENDING).rpartition(".")[2]
    return int(number) if number.isdecimal() else 1


def _line(record: Record) -> bytes:
    """An array in JSON; the body, which is JSON itself, stands in it as it is."""
    tenant, writer, seq, call_id, kind, at, body, prev, hashed = record
    head = orjson.dumps((tenant, writer, seq, call_id, kind, at, prev.hex(), hashed.hex()))
    return b"%b,%b]\n" % (head[:-1], body.encode())


def _row(line: bytes, writer: str, seq: int) -> Row:
    try:
        *said, _ = orjson.loads(line)
        tenant, told, number, call_id, kind, at, prev, hashed = said
        body = line[len(orjson.dumps(said)) : -1].decode()
        row = (tenant, told, number, call_id, kind, at, body, unhexlify(prev), unhexlify(hashed))
    except (ValueError, TypeError):
        return _unbelievable(writer, seq)
    right = told == writer and number == seq and [type(one) for one in row] == _TYPES
    return row if right else _unbelievable(writer, seq)


def _unbelievable(writer: str, seq: int) -> Row:
    return ("", writer, seq, "", "", 0.0, "", b"", b"")


_TYPES = [str, str, int, str, str, float, str, bytes, bytes]
