"""Everything durable, on one SQLite file: made without effects, then opened, then closed."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from holdfast.model import defaults
from holdfast.model.errors import StoreError
from holdfast.ports import Clock
from holdfast.stores.boot import Boot, SystemBoot
from holdfast.stores.keyring import Keyring, root_secret
from holdfast.stores.sqlite.approvals import SqliteApprovals
from holdfast.stores.sqlite.audit import SqliteAudit
from holdfast.stores.sqlite.bundles import SqliteBundles
from holdfast.stores.sqlite.connection import LOCK_S, READ_LOCK_S, connect
from holdfast.stores.sqlite.controls import SqliteControls
from holdfast.stores.sqlite.ledger import SqliteLedger
from holdfast.stores.sqlite.migrate import migrate
from holdfast.stores.sqlite.tenant_keys import SqliteTenantKeys
from holdfast.stores.sqlite.tokens import SqliteTokens
from holdfast.stores.sqlite.writer import Writer
from holdfast.stores.worker import LockedWorkers, Workers


class SqliteStore:
    """Its ports are there once it is open."""

    ledger: SqliteLedger
    approvals: SqliteApprovals
    controls: SqliteControls
    audit: SqliteAudit
    bundles: SqliteBundles
    tokens: SqliteTokens
    secrets: Keyring

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        approval_s: float = defaults.APPROVAL_S,
        lock_s: float = LOCK_S,
        boot: Boot | None = None,
        workers: Workers | None = None,
    ) -> None:
        self.path = path
        self._clock = clock
        self._approval_s = approval_s
        self._lock_s = lock_s
        self._boot = boot
        self._workers = workers
        self._opened = AsyncExitStack()

    async def open(self) -> None:
        async with AsyncExitStack() as opening:  # what was opened is closed again if the rest fails
            await self._open(opening)
            self._opened = opening.pop_all()

    async def close(self) -> None:
        """The writer first, so that everything submitted is still written."""
        await self._opened.aclose()

    async def _open(self, opening: AsyncExitStack) -> None:
        try:
            root = await asyncio.to_thread(self._prepare)
            boot, workers = self._boot or SystemBoot(), self._workers or self._own_worker(opening)
        except OSError as error:
            raise StoreError(f"the database '{self.path}' cannot be opened: {error}") from error
        tenant_keys = SqliteTenantKeys(self.path)
        opening.callback(tenant_keys.close)
        self.secrets = Keyring(root, tenant_keys)
        self.secrets.check()
        reader = connect(self.path, READ_LOCK_S)
        opening.callback(reader.close)
        reader.execute("PRAGMA query_only = 1")
        self._writer = writer = Writer(self.path, workers.id, self._lock_s)
        writer.open()
        opening.push_async_callback(writer.close)
        self.ledger = SqliteLedger(writer, reader, self.secrets, self._clock, boot, workers)
        self.approvals = SqliteApprovals(writer, reader, self.secrets, self._clock, self._approval_s, workers)
        self.controls = SqliteControls(writer, reader, self._clock)
        self.audit = SqliteAudit(self.path, writer, reader, self.secrets, self._clock, workers)
        self.bundles = SqliteBundles(writer, reader, self._clock)
        self.tokens = SqliteTokens(writer, reader, self.secrets)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _prepare(self) -> bytes:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        root = root_secret(self.path.with_name(f"{self.path.name}.keys"))
        migrate(self.path)
        return root

    def _own_worker(self, opening: AsyncExitStack) -> LockedWorkers:
        own = LockedWorkers(self.path.with_name(f"{self.path.name}-workers"))
        own.open()
        opening.callback(own.close)
        return own
