"""A database built beside the one in use, and put in its place in one step.

Nobody may have the store open meanwhile: every gateway holds the folder of its workers, and this one holds it
alone. What was there stays, under another name.
"""

import os
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from holdfast.model.errors import StoreError
from holdfast.records.chain import GENESIS
from holdfast.stores.backup.snapshot import Row, Values
from holdfast.stores.backup.tables import TABLES
from holdfast.stores.files import sync
from holdfast.stores.sql.sequencer import ADD_SPOOLED, OPEN_AGAIN
from holdfast.stores.sqlite.connection import connect
from holdfast.stores.sqlite.migrate import migrate, shipped
from holdfast.stores.sqlite.spool import SPOOLED_TO, Spools
from holdfast.stores.worker import alone


class SqliteVessel:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._draft = path.with_name(f"{path.name}.restoring-{secrets.token_hex(4)}")
        self._held = ExitStack()
        self._connection: sqlite3.Connection | None = None

    async def build(self, shape: int) -> None:
        steps = {number: step for number, step in shipped().items() if number <= shape}
        if shape not in steps:
            raise StoreError(
                f"the backup has version {shape}, newer than this holdfast knows ({max(shipped())});"
                " upgrade holdfast"
            )
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._held.enter_context(alone(workers_folder(self._path)))
        migrate(self._draft, steps)
        self._connection = connect(self._draft)
        self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.execute("BEGIN IMMEDIATE")
        for table in TABLES:
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - what a migration put there

    async def run(self, statement: str, values: Values = ()) -> int:
        return self._open.execute(statement, values).rowcount

    async def all(self, statement: str, values: Values = ()) -> list[Row]:
        return self._open.execute(statement, values).fetchall()

    async def many(self, statement: str, rows: Sequence[Values]) -> None:
        try:
            self._open.executemany(statement, rows)
        except sqlite3.Error as error:
            raise StoreError(f"the backup cannot be loaded: {error}; nothing was touched") from error

    async def upgrade(self) -> None:
        self._shut()
        migrate(self._draft)
        self._connection = connect(self._draft)
        self._connection.execute("BEGIN IMMEDIATE")

    async def kept(self) -> int:
        numbers = (
            path.name.rpartition("-")[2] for path in self._path.parent.glob(f"{self._path.name}.before-*")
        )
        return max((int(number) for number in numbers if number.isdecimal()), default=0)

    async def launch(self, number: int) -> str | None:
        self._shut()
        sync(self._draft)
        try:
            kept = _put_aside(self._path, before(self._path, number)) if self._path.exists() else None
            Spools(workers_folder(self._path)).put_aside(before(self._path, number))
            self._draft.replace(self._path)
            sync(self._path.parent)
        except OSError as error:
            raise StoreError(f"the database '{self._path}' cannot be put in place: {error}") from error
        return None if kept is None else str(kept)

    async def abandon(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for ending in ("", "-journal", "-wal", "-shm"):
            self._draft.with_name(self._draft.name + ending).unlink(missing_ok=True)
        self._held.close()

    def _shut(self) -> None:
        self._open.execute("COMMIT")
        self._open.close()
        self._connection = None

    @property
    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError("nothing is being restored")
        return self._connection


def workers_folder(path: Path) -> Path:
    return path.with_name(f"{path.name}-workers")


def before(path: Path, number: int) -> Path:
    """Where what was there before the life `number` is kept."""
    return path.with_name(f"{path.name}.before-{number}")


def _put_aside(path: Path, kept: Path) -> Path:
    """Give the file a second name; the first is taken over in one step, so that it never names nothing.

    What waits beside it goes into it first: it belongs to no other.
    """
    if _folded(path):
        _take_in(path)
    else:
        for ending in (
            "-wal",
            "-shm",
        ):  # a file that is no database any more goes with all that belongs to it
            beside = path.with_name(path.name + ending)
            if beside.exists():
                beside.rename(kept.with_name(kept.name + ending))
    os.link(path, kept)
    return kept


def _take_in(path: Path) -> None:
    """Records that workers left beside the database; whoever reads them judges them."""
    spools, taken = Spools(workers_folder(path)), []
    if not spools.writers():
        return
    try:
        with closing(connect(path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for writer in spools.writers():
                connection.execute(OPEN_AGAIN, (writer, GENESIS))
                [(seq, fault)] = connection.execute(SPOOLED_TO, (writer,)).fetchall()
                if not fault:  # else it is evidence, and put aside as it is
                    left = (row for row in spools.all(writer) if row[2] > seq)
                    connection.executemany(ADD_SPOOLED, left)
                    taken.append(writer)
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreError(f"what waits beside '{path}' cannot be taken into it: {error}") from error
    for writer in taken:
        spools.drop(writer)


def _folded(path: Path) -> bool:
    """Fold the log back and do without one, which nobody can while somebody else has the file open.

    False for a file that is no database any more.
    """
    try:
        with closing(connect(path, 0.0)) as connection:
            [(mode,)] = connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    except sqlite3.OperationalError as error:
        raise StoreError(f"somebody has '{path}' open ({error}); stop every process that uses it") from error
    except sqlite3.DatabaseError:
        return False
    if mode != "delete":
        raise StoreError(f"somebody has '{path}' open; stop every process that uses it")
    return True
