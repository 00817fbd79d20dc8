"""Is a PostgreSQL database brought up to date once, whoever starts first, and are its tenants kept apart?"""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from holdfast.model.errors import StoreError
from holdfast.stores.postgres.connection import Connection
from holdfast.stores.postgres.migrate import migrate, shipped
from tests.postgres import database, empty_database, server
from tests.requirements import requirement

SHARED = {
    "alert",
    "bundle",
    "chain_head",
    "halt",
    "promotion",
    "rate",
    "revocation",
    "store_life",
    "token",
    "tree_checkpoint",
    "tree_node",
    "worker",
}
"""Tables whose '*' rows are everybody's."""
ONE_PLACE = {"record", "tree_leaf"}
"""Tables where a place in a chain or in the tree is taken, whoever's it is."""
VALUES = {"text": "''", "bigint": "1", "double precision": "1.0", "bytea": "''"}


@pytest.fixture
async def empty() -> AsyncIterator[str]:
    async with empty_database() as url:
        yield url


@pytest.fixture
async def connection() -> AsyncIterator[Connection]:
    async with database() as url:
        opened = await asyncpg.connect(url)
        await opened.execute("SET search_path = holdfast")
        yield opened
        await opened.close()


async def migrated(url: str, steps: dict[int, str] | None = None) -> list[int]:
    """Migrate; which steps were taken by then."""
    connection = await asyncpg.connect(url)
    try:
        await migrate(connection, steps)
        return await versions(connection)
    finally:
        await connection.close()


async def versions(connection: Connection) -> list[int]:
    rows = await connection.fetch("SELECT version FROM holdfast.schema_migration ORDER BY version")
    return [version for (version,) in rows]


@requirement("DEC-4", "PPL-6")
async def test_processes_that_start_at_once_migrate_once(empty: str) -> None:
    taken = await asyncio.gather(*(migrated(empty) for _ in range(6)))
    assert taken == [list(shipped())] * 6


@requirement("DEC-4")
async def test_a_database_newer_than_the_code_is_refused_and_left_alone(empty: str) -> None:
    newest = max(shipped())
    later = {**shipped(), newest + 1: "CREATE TABLE novelty (a text)"}
    await migrated(empty, later)
    with pytest.raises(StoreError, match=rf"at version {newest + 1}, newer .* upgrade holdfast"):
        await migrated(empty)
    assert await migrated(empty, later) == list(later)


@requirement("DEC-4")
async def test_a_step_that_fails_leaves_nothing_behind(empty: str) -> None:
    await migrated(empty)
    broken = {**shipped(), 999: "CREATE TABLE half (a text); CREATE TABLE half (a text);"}
    with pytest.raises(StoreError, match="cannot be brought up to date"):
        await migrated(empty, broken)
    assert await migrated(empty) == list(shipped())
    mended = {**shipped(), 999: "CREATE TABLE half (a text);"}
    assert await migrated(empty, mended) == list(mended)


@requirement("DEC-4")
async def test_steps_are_taken_as_who_may_see_all_and_that_ends_with_them(empty: str) -> None:
    connection = await asyncpg.connect(empty)
    await migrate(connection)
    assert await connection.fetchval("SELECT count(*) FROM holdfast.store_life") == 0
    await connection.execute("SET holdfast.tenant = '*'")
    assert await connection.fetchval("SELECT number FROM holdfast.store_life") == 1
    await connection.close()


@requirement("DEC-4")
async def test_the_tenant_leads_every_primary_key(connection: Connection) -> None:
    leading = await connection.fetch(
        "SELECT c.relname, a.attname FROM pg_class c"
        " LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary"
        " LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]"
        " WHERE c.relkind = 'r' AND c.relnamespace = 'holdfast'::regnamespace"
    )
    assert len(leading) >= 20
    assert {name for name, column in leading if column != "tenant"} == {"schema_migration"}


# --- the second lock between tenants ----------------------------------------------------------


async def tables(connection: Connection) -> list[str]:
    rows = await connection.fetch(
        "SELECT table_name FROM information_schema.columns"
        " WHERE table_schema = 'holdfast' AND column_name = 'tenant' ORDER BY 1"
    )
    return [name for (name,) in rows]


async def serve(connection: Connection, tenant: str) -> None:
    await connection.fetchval("SELECT set_config('holdfast.tenant', $1, false)", tenant)


async def put(connection: Connection, table: str, tenant: str) -> None:
    """A row of this tenant's, with something in every column that needs it."""
    columns = await connection.fetch(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'holdfast'"
        " AND table_name = $1 AND is_nullable = 'NO' AND column_name <> 'tenant'",
        table,
    )
    names = ", ".join(name for name, _ in columns)
    values = ", ".join(VALUES[kind] for _, kind in columns)
    await connection.execute(f"INSERT INTO {table} (tenant, {names}) VALUES ($1, {values})", tenant)


async def seen(connection: Connection, table: str) -> set[str]:
    return {tenant for (tenant,) in await connection.fetch(f"SELECT tenant FROM {table}")}


@requirement("AUT-6")
async def test_every_table_is_locked_even_against_its_owner(connection: Connection) -> None:
    locked = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'holdfast'::regnamespace"
        " AND relrowsecurity AND relforcerowsecurity ORDER BY 1"
    )
    assert [name for (name,) in locked] == await tables(connection)


@requirement("AUT-6")
async def test_a_tenant_neither_sees_nor_changes_nor_forges_anothers_rows(connection: Connection) -> None:
    for table in await tables(connection):
        await serve(connection, "*")
        await connection.execute(f"DELETE FROM {table}")
        for tenant in ("b",) if table in ONE_PLACE else ("a", "b"):
            await put(connection, table, tenant)
        await serve(connection, "a")
        assert "b" not in await seen(connection, table), table
        assert await connection.execute(f"UPDATE {table} SET tenant = 'a' WHERE tenant = 'b'") == "UPDATE 0"
        assert await connection.execute(f"DELETE FROM {table} WHERE tenant = 'b'") == "DELETE 0"
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
            await put(connection, table, "c")
        await serve(connection, "*")
        assert "b" in await seen(connection, table), table


@requirement("AUT-6")
async def test_only_what_is_meant_for_all_is_shared_with_all(connection: Connection) -> None:
    shared = set()
    for table in await tables(connection):
        await serve(connection, "*")
        await connection.execute(f"DELETE FROM {table}")
        await put(connection, table, "*")
        await serve(connection, "a")
        if await seen(connection, table) == {"*"}:
            shared.add(table)
    assert shared == SHARED


@requirement("AUT-6")
@pytest.mark.parametrize("said", ["nothing", "an empty name"])
async def test_who_does_not_say_whom_they_serve_sees_nothing(connection: Connection, said: str) -> None:
    every = await tables(connection)
    async with connection.transaction():
        await connection.execute("SET LOCAL holdfast.tenant = '*'")
        for table in every:
            await connection.execute(f"DELETE FROM {table}")
            for tenant in ("",) if table in ONE_PLACE else ("", "*"):
                await put(connection, table, tenant)
    if said == "an empty name":
        await serve(connection, "")
    for table in every:
        assert await seen(connection, table) == set(), table
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await put(connection, table, "")


@requirement("AUT-6")
async def test_a_tenant_of_one_transaction_is_forgotten_after_it(connection: Connection) -> None:
    async with connection.transaction():
        await connection.execute("SELECT set_config('holdfast.tenant', 'a', true)")
        await put(connection, "budget", "a")
        assert await seen(connection, "budget") == {"a"}
    assert await seen(connection, "budget") == set()


@requirement("AUT-6")
async def test_a_superuser_is_exempt_so_gateways_must_not_be_one(connection: Connection) -> None:
    await serve(connection, "a")
    await put(connection, "budget", "a")
    name = await connection.fetchval("SELECT current_database()")
    superuser = await asyncpg.connect(server().admin_url(name))
    assert await superuser.fetchval("SELECT count(*) FROM holdfast.budget") == 1
    await superuser.close()
