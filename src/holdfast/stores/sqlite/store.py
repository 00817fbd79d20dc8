"""Everything durable, on one SQLite file: made without effects, then opened, then closed."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from holdfast.model import defaults
from holdfast.model.errors import StoreError
from holdfast.ports import Clock
from holdfast.stores.boot import Boot, SystemBoot
from holdfast.stores.keyring import Keyring, root_secret
from holdfast.stores.sql.store import SqlStore
from holdfast.stores.sql.tenant_keys import SqlTenantKeys
from holdfast.stores.sqlite.clock import agreed
from holdfast.stores.sqlite.connection import LOCK_S, READ_LOCK_S, Connect, connect
from holdfast.stores.sqlite.migrate import migrate
from holdfast.stores.sqlite.reader import SqliteReader
from holdfast.stores.sqlite.tenant_keys import SqliteTenantKeys
from holdfast.stores.sqlite.writer import SqliteWriter
from holdfast.stores.watch import Watch
from holdfast.stores.worker import LockedWorkers, Workers

log = logging.getLogger(__name__)

MEMBER = "json_extract(r.body, '$.{}')"


class SqliteStore(SqlStore):
    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        approval_s: float = defaults.APPROVAL_S,
        lock_s: float = LOCK_S,
        boot: Boot | None = None,
        workers: Workers | None = None,
        root: Callable[[], bytes] | None = None,
        connect: Connect = connect,
        one_clock: bool = False,
    ) -> None:
        """`one_clock`: the processes that have the store open agree on the time, whatever theirs say."""
        beside = partial(root_secret, path.with_name(f"{path.name}.keys"))
        super().__init__(root or beside, approval_s, boot, workers)
        self.path = path
        self.clock = clock
        self._one_clock = one_clock
        self._connect = connect
        self._lock_s = lock_s

    @property
    def idle(self) -> bool:
        """Nobody waits for the disk."""
        return self._writer.idle

    def listen(self, hear: Callable[[str], None]) -> None:
        """Files do not ring: other processes look again often enough."""

    async def _open(self, opening: AsyncExitStack) -> None:
        try:
            workers = self._workers or self._own_worker(opening)  # first: nobody puts a backup in our place
            root = await asyncio.to_thread(self._prepare)
            boot = self._boot or SystemBoot()
            if self._one_clock and isinstance(workers, LockedWorkers):
                said = workers.folder / "clock"
                self.clock = clock = await asyncio.to_thread(agreed, said, self.clock, boot)
                opening.callback(clock.close)
        except OSError as error:
            raise StoreError(f"the database '{self.path}' cannot be opened: {error}") from error
        tenant_keys = SqliteTenantKeys(self.path, self._connect)
        opening.callback(tenant_keys.close)
        reader = SqliteReader(self.path, self._connect)
        opening.callback(reader.close)
        spools = workers.folder if isinstance(workers, LockedWorkers) else None
        self._writer = writer = SqliteWriter(self.path, workers.id, self._lock_s, self._connect, spools)
        try:
            writer.open()
        except OSError as error:
            raise StoreError(f"the database '{self.path}' cannot be opened: {error}") from error
        opening.push_async_callback(writer.close)
        self.secrets = Keyring(root, tenant_keys, SqlTenantKeys(reader, writer).keep)
        await self.secrets.ready("*")  # a root that belongs to other keys opens nothing here
        watch = Watch(self.clock)
        self._serve(writer, reader, watch, boot, workers, member=MEMBER, tidied=self._fold_log)
        opening.push_async_callback(self.audit.fold)  # nothing waits beside it that could be in it

    def _prepare(self) -> bytes:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        root = self._root()
        migrate(self.path)
        return root

    async def _fold_log(self) -> None:
        """The log beside the database still has what was erased in it: fold it back and cut it off."""
        try:
            connection = connect(self.path, READ_LOCK_S)
            try:
                [(busy, _, _)] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise StoreError(f"the key is dropped, and its log could not be cut off: {error}") from error
        if busy:
            log.error("a tenant's key is dropped; a copy stays in the log until nobody reads it any more")

    def _own_worker(self, opening: AsyncExitStack) -> LockedWorkers:
        own = LockedWorkers(self.path.with_name(f"{self.path.name}-workers"))
        opening.callback(own.close)
        own.open()
        return own
