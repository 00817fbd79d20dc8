"""Has the database the shape this code expects?

Steps go forward only, all of them in one transaction that holds a lock, so many processes on many machines
may start at once. A database that is newer than the code is refused.
"""

from collections.abc import Mapping
from importlib.resources import files

import asyncpg

from holdfast.model.errors import StoreError
from holdfast.stores.postgres.connection import Connection

_LOCK = int.from_bytes(b"holdfast", "big")
"""Advisory locks are numbers that all users of a database share: this one spells our name."""
_PREPARE = """
SET LOCAL statement_timeout = 0;
SET LOCAL holdfast.tenant = '*';
CREATE SCHEMA IF NOT EXISTS holdfast;
SET LOCAL search_path = holdfast;
CREATE TABLE IF NOT EXISTS schema_migration (
  version bigint PRIMARY KEY,
  applied_at double precision NOT NULL
);
"""
_APPLIED = "INSERT INTO schema_migration VALUES ($1, extract(epoch FROM now()))"


def shipped() -> dict[int, str]:
    """The steps this code comes with, by number."""
    folder = files("holdfast.stores.postgres.migrations")
    steps = {int(f.name[:4]): f.read_text() for f in folder.iterdir() if f.name.endswith(".sql")}
    return dict(sorted(steps.items()))


async def migrate(connection: Connection, steps: Mapping[int, str] | None = None) -> None:
    """Bring the database behind `connection` up to date."""
    wanted = shipped() if steps is None else steps
    try:
        if await _version(connection, wanted) < max(wanted):
            await _apply(connection, wanted)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        raise StoreError(f"the database cannot be brought up to date: {error}") from error


async def _version(connection: Connection, wanted: Mapping[int, str]) -> int:
    if await connection.fetchval("SELECT to_regclass('holdfast.schema_migration')") is None:
        return 0
    version, name = await connection.fetchrow(
        "SELECT coalesce(max(version), 0), current_database() FROM holdfast.schema_migration"
    ) or (0, "")
    if version > max(wanted):
        raise StoreError(
            f"the database '{name}' is at version {version}, newer than this holdfast knows ({max(wanted)});"
            " upgrade holdfast"
        )
    return int(version)


async def _apply(connection: Connection, wanted: Mapping[int, str]) -> None:
    async with connection.transaction(isolation="read_committed"):  # to see what was done while it waited
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        await connection.execute(_PREPARE)
        done = await _version(connection, wanted)
        for version, script in wanted.items():
            if version > done:
                await connection.execute(script)
                await connection.execute(_APPLIED, version)
