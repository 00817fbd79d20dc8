"""Where are the tenants' wrapped data keys? In the database, so that deleting a row erases a tenant."""

import sqlite3
from pathlib import Path

from holdfast.model.errors import StoreError
from holdfast.stores.sql.tenant_keys import FIND, KEEP
from holdfast.stores.sqlite.connection import READ_LOCK_S, Connect, connect


class SqliteTenantKeys:
    """For what seals or reads before `Keyring.ready` was asked: on the event loop, so it waits as little as a
    reader does.
    """

    def __init__(self, path: Path, connect: Connect = connect) -> None:
        self._connection = connect(path, READ_LOCK_S, any_thread=True)

    def find(self, tenant: str) -> bytes | None:
        try:
            rows = self._connection.execute(FIND, (tenant,)).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"the key of tenant '{tenant}' cannot be read: {error}") from error
        return rows[0][0] if rows else None

    def keep(self, tenant: str, wrapped: bytes) -> bytes:
        try:
            self._connection.execute(KEEP, (tenant, wrapped))
        except sqlite3.Error as error:
            raise StoreError(f"the key of tenant '{tenant}' cannot be kept: {error}") from error
        return self.find(tenant) or wrapped

    def close(self) -> None:
        self._connection.close()
