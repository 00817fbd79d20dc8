"""A database of its own for every test that asks, in some 15 ms.

The first test of a process starts a server for all tests of that process: when several processes test at once
small servers of their own are simpler than a shared one with its locks and counts, and cost a second each. A
database is copied from a migrated template (50 to 200 ms) the first time only: a later test uses it again,
emptied and under another name, so that nobody whom an earlier test left behind finds it.
"""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from itertools import count

import asyncpg

from holdfast.stores.postgres.migrate import migrate
from tests.postgres_server import ROLE, Postgres

__all__ = ["ROLE", "Postgres", "database", "empty_database", "server"]

_TEMPLATE = "holdfast_template"
_lock = threading.Lock()
_numbers = count(1)
_idle: list[str] = []

_TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = '{}'::regnamespace"
_FILLED = _TABLES.format("holdfast") + " AND pg_relation_size(oid) > 0"
_KEEP = "CREATE TABLE seed.{0} AS TABLE holdfast.{0}"
_EMPTY = f"""
DO $$
DECLARE name text;
BEGIN
  FOR name IN {_FILLED} LOOP
    IF pg_relation_size('holdfast.' || name) > 65536 THEN
      EXECUTE format('TRUNCATE holdfast.%I', name);
    ELSE
      EXECUTE format('DELETE FROM holdfast.%I', name);
    END IF;
  END LOOP;
  FOR name IN {_TABLES.format("seed")} LOOP
    EXECUTE format('INSERT INTO holdfast.%I SELECT * FROM seed.%1$I', name);
  END LOOP;
END $$
"""
_CUT_OFF = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1"


@asynccontextmanager
async def database() -> AsyncIterator[str]:
    """The URL of a migrated database that nobody else uses, for the plain role."""
    here = await asyncio.to_thread(server)
    name = f"test_{next(_numbers)}"
    if _idle:
        await _again(here, _idle.pop(), name)
    else:
        await _create(here, name, _TEMPLATE)
    yield here.url_of(name)
    _idle.append(name)


@asynccontextmanager
async def empty_database() -> AsyncIterator[str]:
    """The URL of a database without any schema; it is dropped in the end."""
    here = await asyncio.to_thread(server)
    name = f"empty_{next(_numbers)}"
    await _create(here, name, "template1")
    try:
        yield here.url_of(name)
    finally:
        await _execute(here.admin_url(), f"DROP DATABASE {name} WITH (FORCE)")


def server() -> Postgres:
    """The one of this process, started by the first who asks. A test that stops servers makes its own."""
    with _lock:
        return _server()


@cache
def _server() -> Postgres:
    started = Postgres(durable=False)
    try:
        started.start()
        asyncio.run(_make_template(started))
    except BaseException:
        started.remove()
        raise
    return started


async def _make_template(here: Postgres) -> None:
    await _create(here, _TEMPLATE, "template1")
    connection = await asyncpg.connect(here.url_of(_TEMPLATE))
    await migrate(connection)
    await connection.close()
    admin = await asyncpg.connect(here.admin_url(_TEMPLATE))
    await admin.execute("CREATE SCHEMA seed")
    for (name,) in await admin.fetch(_FILLED):
        await admin.execute(_KEEP.format(name))
    await admin.close()


async def _create(here: Postgres, name: str, template: str) -> None:
    await _execute(
        here.admin_url(), f"CREATE DATABASE {name} OWNER {ROLE} TEMPLATE {template} STRATEGY FILE_COPY"
    )


async def _again(here: Postgres, old: str, name: str) -> None:
    admin = await asyncpg.connect(here.admin_url())
    await admin.fetch(_CUT_OFF, old)
    await admin.execute(f"ALTER DATABASE {old} RENAME TO {name}")
    await admin.close()
    await _execute(here.admin_url(name), _EMPTY)


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
