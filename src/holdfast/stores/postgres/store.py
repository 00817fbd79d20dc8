"""Everything durable on one PostgreSQL database that many processes share; opened after it is made."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import AsyncExitStack

import asyncpg

from holdfast.model import defaults
from holdfast.model.errors import StoreError
from holdfast.ports import Clock
from holdfast.stores.boot import Boot, elapsed
from holdfast.stores.keyring import Keyring
from holdfast.stores.postgres.bell import Bell
from holdfast.stores.postgres.clock import DatabaseBoot, DatabaseClock
from holdfast.stores.postgres.connection import (
    LOST,
    Connection,
    Patience,
    connect,
    describe,
    hang_up,
)
from holdfast.stores.postgres.migrate import migrate
from holdfast.stores.postgres.reader import PostgresReader
from holdfast.stores.postgres.roll import HEARTBEAT_S, Roll
from holdfast.stores.postgres.tenant_keys import PostgresTenantKeys
from holdfast.stores.postgres.writer import LANES, PostgresWriter
from holdfast.stores.sql.store import SqlStore
from holdfast.stores.sql.tenant_keys import SqlTenantKeys
from holdfast.stores.watch import Watch
from holdfast.stores.worker import Workers

log = logging.getLogger(__name__)

MEMBER = "(r.body::json ->> '{}')"
OPEN_S = 15.0
"""How long a start waits for the server."""


class PostgresStore(SqlStore):
    bell: Bell

    def __init__(
        self,
        url: str,
        root: Callable[[], bytes],
        machine: Clock,
        *,
        approval_s: float = defaults.APPROVAL_S,
        lanes: int = LANES,
        boot: Boot | None = None,
        workers: Workers | None = None,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        """`machine` measures what passes here; the time of day is the database's unless a `boot` is given."""
        super().__init__(root, approval_s, boot, workers)
        self.url = url
        self._machine = machine
        self._lanes = lanes
        self._heartbeat_s = heartbeat_s
        self._parts: tuple[Bell, PostgresReader, PostgresWriter] | tuple[()] = ()

    @property
    def idle(self) -> bool:
        """Nobody waits for the server's answer."""
        return all(part.idle for part in self._parts)

    def listen(self, hear: Callable[[str], None]) -> None:
        self.bell.rung = hear

    async def _open(self, opening: AsyncExitStack) -> None:
        try:
            root = await asyncio.to_thread(self._root)
        except OSError as error:
            raise StoreError(f"the store's key cannot be read: {error}") from error
        await self._prepare()
        tenant_keys = await asyncio.to_thread(PostgresTenantKeys, self.url)
        opening.push_async_callback(asyncio.to_thread, tenant_keys.close)
        kept = None if self._boot is not None else DatabaseClock(self._machine)
        self.clock = clock = kept or self._machine
        roll = Roll(f"w_{secrets.token_hex(8)}", elapsed, self._heartbeat_s)
        self.bell = bell = Bell(self.url, roll, kept)
        await bell.open(Patience(OPEN_S))
        opening.push_async_callback(bell.close)
        workers: Workers = self._workers or roll
        boot = self._boot or DatabaseBoot(clock)
        reader = PostgresReader(self.url, away=lambda: bell.away)
        opening.push_async_callback(reader.close)
        writer = PostgresWriter(
            self.url, workers.id, self._lanes, refreshed=bell.refreshed, away=lambda: bell.away
        )
        opening.push_async_callback(writer.close)
        self._parts = (bell, reader, writer)
        self.secrets = Keyring(root, tenant_keys, SqlTenantKeys(reader, writer).keep)
        await self.secrets.ready("*")  # a root that belongs to other keys opens nothing here
        watch = Watch(clock, bell)
        bell.ended = watch.wake_named
        self._serve(writer, reader, watch, boot, workers, member=MEMBER, tidied=self._vacuum)

    async def _prepare(self) -> None:
        """The shape of the tables; a server that is still starting is waited for."""
        patience = Patience(OPEN_S)
        while True:
            try:
                connection = await connect(self.url)
                try:
                    await migrate(connection)
                    await _warn(connection)
                finally:
                    await hang_up(connection)
            except LOST as error:
                await patience.wait(error)
            else:
                return

    async def _vacuum(self) -> None:
        """What was deleted stays in its page until then, and in the server's log as long as that is kept."""
        try:
            connection = await connect(self.url)
            try:
                await connection.execute("VACUUM holdfast.tenant_key")
            finally:
                await hang_up(connection)
        except (asyncpg.PostgresError, *LOST) as error:
            raise StoreError(
                f"the key is dropped, and its table could not be vacuumed: {describe(error)}"
            ) from error


async def _warn(connection: Connection) -> None:
    exempt = await connection.fetchval(
        "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    )
    if exempt:
        log.warning(
            "the gateway's database role bypasses row-level security, the second lock between tenants;"
            " connect as a plain role that owns the schema 'holdfast'"
        )
    if await connection.fetchval("SELECT current_setting('fsync') = 'off'"):
        log.warning("the database runs with fsync off: a power cut takes back what was acknowledged")
