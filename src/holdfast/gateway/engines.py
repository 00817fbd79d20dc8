"""Which database does a configuration name, when the store itself is copied or replaced?

PostgreSQL's driver is an extra, so what needs it is imported where it is used.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from holdfast.config import Config
from holdfast.stores.backup.snapshot import Snapshot, Vessel
from holdfast.stores.sqlite.snapshot import snapshot
from holdfast.stores.sqlite.vessel import SqliteVessel, before

Open = Callable[[], Awaitable[Snapshot]]
"""Looks at a store as it is now."""


async def store(config: Config) -> Snapshot:
    """The configured store."""
    return await (postgres(config.store) if config.on_postgres else sqlite(config.store_path))


async def kept(config: Config, number: int) -> Open | None:
    """What a restore put aside when the life `number` began; None when there is nothing."""
    if config.on_postgres:
        from holdfast.stores.postgres.vessel import before as before_

        schema = await before_(config.store, number)
        return None if schema is None else partial(postgres, config.store, schema)
    path = before(config.store_path, number)
    return partial(sqlite, path) if path.exists() else None


def vessel(config: Config) -> Vessel:
    """What takes the store's place."""
    if not config.on_postgres:
        return SqliteVessel(config.store_path)
    from holdfast.stores.postgres.vessel import PostgresVessel

    return PostgresVessel(config.store, config.store_shown)


async def sqlite(path: Path) -> Snapshot:
    return snapshot(path)


async def postgres(url: str, schema: str | None = None) -> Snapshot:
    from holdfast.stores.postgres import snapshot as there

    return await there.snapshot(url, schema or there.SCHEMA)
