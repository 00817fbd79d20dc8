"""The records on SQLite as one tree that proves them, read by tenant."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from holdfast.model.errors import StoreError
from holdfast.model.record import Entry, Record, Use
from holdfast.ports import Clock
from holdfast.records.body import act_body
from holdfast.records.merkle import consistency_proof, inclusion_proof, root_of
from holdfast.stores.keyring import Keyring
from holdfast.stores.sqlite import sequencer
from holdfast.stores.sqlite.connection import READ_LOCK_S, connect
from holdfast.stores.sqlite.sequencer import Tree
from holdfast.stores.sqlite.writer import Writer
from holdfast.stores.worker import Workers

_COLUMNS = "l.leaf, r.tenant, r.writer, r.seq, r.call_id, r.kind, r.at, r.body, r.prev, r.hash"
_ENTRIES = f"SELECT {_COLUMNS} FROM tree_leaf l JOIN record r USING (tenant, writer, seq)"  # noqa: S608
BY_CALL = f"{_ENTRIES} WHERE l.tenant = ? AND l.call_id = ? AND l.leaf > ? ORDER BY l.leaf LIMIT ?"
BY_TIME = f"{_ENTRIES} WHERE l.tenant = ? AND (l.at, l.leaf) > (?, ?) ORDER BY l.at, l.leaf LIMIT ?"
BY_RECORD = f"{_ENTRIES} WHERE l.tenant = ? AND l.writer = ? AND l.seq = ?"
TENANTS = "SELECT DISTINCT tenant FROM tree_leaf"
USAGE = """
SELECT json_extract(r.body, '$.tool'), r.tenant, json_extract(r.body, '$.caller'),
       json_extract(r.body, '$.agent'), count(*), max(r.at)
FROM tree_leaf l JOIN record r USING (tenant, writer, seq)
WHERE l.tenant = ? AND l.at >= ? AND r.kind = 'intent' GROUP BY 1, 3, 4 ORDER BY 1, 3, 4
"""
CHECKPOINT = "SELECT note FROM tree_checkpoint WHERE tenant = '*' AND size > ? ORDER BY size DESC LIMIT 1"
log = logging.getLogger(__name__)

T = TypeVar("T")

ROUNDS = 40
"""Batches one look takes at most; what is left waits for the next look."""


class SqliteAudit:
    def __init__(
        self,
        path: Path,
        writer: Writer,
        reader: sqlite3.Connection,
        secrets: Keyring,
        clock: Clock,
        workers: Workers,
    ) -> None:
        self._path = path
        self._writer = writer
        self._reader = reader
        self._secrets = secrets
        self._clock = clock
        self._workers = workers
        self._tree = Tree(self._read)

    async def sequence(self) -> int:
        total = 0
        for _ in range(ROUNDS):
            if not self._read(sequencer.WAITING).fetchone()[0]:
                break
            # Durable: a checkpoint is signed over this, and a power cut must not take it back.
            taken = await self._writer.submit_long(sequencer.sequence, self._dead(), self._clock.now())
            total += taken
            if taken == 0:
                break  # a broken chain is waiting, and waits for a person
        return total

    async def head(self) -> tuple[int, bytes]:
        return self._in_snapshot(lambda: (size := self._tree.size(), root_of(self._tree.node, size)))

    async def inclusion(self, leaf: int, size: int) -> Sequence[bytes]:
        return self._in_snapshot(lambda: inclusion_proof(self._tree.node, leaf, size))

    async def consistency(self, first: int, second: int) -> Sequence[bytes]:
        return self._in_snapshot(lambda: consistency_proof(self._tree.node, first, second))

    async def of_call(self, tenant: str, call_id: str, after: int, limit: int) -> Sequence[Entry]:
        return _entries(self._read(BY_CALL, (tenant, call_id, after, limit)))

    async def since(self, tenant: str, at: float, after: int, limit: int) -> Sequence[Entry]:
        return _entries(self._read(BY_TIME, (tenant, at, after, limit)))

    async def find(self, tenant: str, writer: str, seq: int) -> Entry | None:
        found = _entries(self._read(BY_RECORD, (tenant, writer, seq)))
        return found[0] if found else None

    async def checkpoint(self, leaf: int) -> str | None:
        found = self._read(CHECKPOINT, (leaf,)).fetchone()
        return None if found is None else str(found[0])

    async def keep_checkpoint(self, size: int, note: str) -> None:
        await self._writer.submit(False, sequencer.keep_checkpoint, size, note)

    async def note(self, tenant: str, act: str, by: str, **members: Any) -> None:
        now = self._clock.now()
        body = act_body(now, act, by, **members)
        await self._writer.submit(True, sequencer.note, tenant, "", "control", now, body)

    async def usage(self, since: float) -> Sequence[Use]:
        return await asyncio.to_thread(self._usage, since)

    def _usage(self, since: float) -> list[Use]:
        """In a thread and on a connection of its own: this may look at many records."""
        try:
            connection = connect(self._path, READ_LOCK_S)
            try:
                tenants = [tenant for (tenant,) in connection.execute(TENANTS)]
                return [Use(*row) for tenant in tenants for row in connection.execute(USAGE, (tenant, since))]
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise StoreError(f"the records cannot be counted: {error}") from error

    async def prune(self, tenant: str, before: float, anchored: int) -> int:
        total = 0
        now = self._clock.now()
        while gone := await self._writer.submit_long(sequencer.prune, tenant, before, anchored, now):
            total += gone
        return total

    async def erase(self, tenant: str, by: str) -> bool:
        gone = await self._writer.submit(True, sequencer.erase, tenant, by, self._clock.now())
        self._fold_log()
        await self.notice_erasures()
        return gone

    async def notice_erasures(self) -> None:
        self._secrets.notice_erasures()

    def _dead(self) -> frozenset[str]:
        chains = self._read(sequencer.OPEN_CHAINS).fetchall()
        return frozenset(writer for writer, _, _ in chains if not self._workers.alive(writer))

    def _fold_log(self) -> None:
        """The log beside the database still has the page with the key in it: fold it back and cut it off."""
        try:
            connection = connect(self._path, READ_LOCK_S)
            try:
                [(busy, _, _)] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise StoreError(f"the key is dropped, and its log could not be cut off: {error}") from error
        if busy:
            log.error("a tenant's key is dropped; a copy stays in the log until nobody reads it any more")

    def _in_snapshot(self, read: Callable[[], T]) -> T:
        """Several reads of one moment: somebody may append meanwhile."""
        self._read("BEGIN")
        try:
            return read()
        finally:
            self._read("COMMIT")

    def _read(self, statement: str, parameters: tuple[object, ...] = ()) -> sqlite3.Cursor:
        try:
            return self._reader.execute(statement, parameters)
        except sqlite3.Error as error:
            raise StoreError(f"the store cannot be read: {error}") from error


def _entries(rows: sqlite3.Cursor) -> list[Entry]:
    return [Entry(leaf, Record(*record)) for leaf, *record in rows.fetchall()]
