"""Where are the tenants' wrapped data keys? In the database, so that deleting a row erases a tenant.

This is for what seals or reads before `Keyring.ready` was asked. It cannot wait for an event loop: a thread
of its own asks the server, with a deadline.
"""

from collections.abc import Coroutine
from typing import Any, TypeVar

import asyncpg

from holdfast.model.errors import StoreError
from holdfast.model.timeout import timeout
from holdfast.stores.boot import elapsed
from holdfast.stores.postgres.aside import Loop
from holdfast.stores.postgres.connection import LOST, Connection, connect, describe, hang_up

ANSWER_S = 3.0
SILENT_S = 1.0
"""After a question without an answer nobody else is kept waiting for one."""

T = TypeVar("T")

_FIND = "SELECT wrapped FROM tenant_key WHERE tenant = $1"
_KEEP = "INSERT INTO tenant_key VALUES ($1, $2) ON CONFLICT DO NOTHING"


class PostgresTenantKeys:
    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None
        self._silent_until = 0.0
        self._loop = Loop("holdfast-keys")

    def find(self, tenant: str) -> bytes | None:
        return self._wait(self._find(tenant), f"the key of tenant '{tenant}' cannot be read")

    def keep(self, tenant: str, wrapped: bytes) -> bytes:
        return self._wait(self._keep(tenant, wrapped), f"the key of tenant '{tenant}' cannot be kept")

    def close(self) -> None:
        self._silent_until = 0.0
        self._wait(self._hang_up(), "the connection for keys cannot be closed")
        self._loop.close()

    async def _find(self, tenant: str) -> bytes | None:
        connection = await self._for(tenant)
        found: bytes | None = await connection.fetchval(_FIND, tenant)
        return found

    async def _keep(self, tenant: str, wrapped: bytes) -> bytes:
        connection = await self._for(tenant)
        await connection.execute(_KEEP, tenant, wrapped)
        return await self._find(tenant) or wrapped

    async def _for(self, tenant: str) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._url, ANSWER_S)
        await self._connection.execute("SELECT set_config('holdfast.tenant', $1, false)", tenant)
        return self._connection

    async def _hang_up(self) -> None:
        if self._connection is not None:
            await hang_up(self._connection)

    def _wait(self, work: Coroutine[Any, Any, T], failed: str) -> T:
        if elapsed() < self._silent_until:
            work.close()
            raise StoreError(f"{failed}: the database has just not answered")
        asked = self._loop.start(self._guarded(work))
        try:
            return asked.result(ANSWER_S + 1)
        except (asyncpg.PostgresError, *LOST) as error:
            asked.cancel()
            if isinstance(error, TimeoutError):
                self._silent_until = elapsed() + SILENT_S
            raise StoreError(f"{failed}: {describe(error)}") from error

    async def _guarded(self, work: Coroutine[Any, Any, T]) -> T:
        """After a loss the next question starts with a new connection."""
        try:
            async with timeout(ANSWER_S):
                return await work
        except LOST:
            if self._connection is not None:
                self._connection.terminate()
                self._connection = None
            raise
