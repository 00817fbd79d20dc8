"""Is the PostgreSQL that tests run on a real one, each test's own, and gone afterwards?"""

import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from tests.postgres import Postgres, database, empty_database

OWNER = """
import sys
from tests.postgres_server import Postgres
server = Postgres(durable=False)
server.start()
print(server.folder, flush=True)
sys.stdin.read()
"""
LOST = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)
ROOT = Path(__file__).parent.parent.parent


async def said(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET holdfast.tenant = '*'")
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def test_tests_connect_as_a_plain_role() -> None:
    async with empty_database() as url:
        plain = "SELECT NOT (rolsuper OR rolbypassrls) FROM pg_roles WHERE rolname = current_user"
        assert await said(url, plain) is True


async def test_a_database_that_is_used_again_is_as_new_and_under_another_name() -> None:
    lives = "SELECT string_agg(number || why, ',') FROM holdfast.store_life"
    async with database() as first:
        left_behind = await asyncpg.connect(first)
        await left_behind.execute("SET holdfast.tenant = '*'")
        await left_behind.execute("INSERT INTO holdfast.halt VALUES ('*', 'all', 'olga', '', 0)")
        await left_behind.execute("UPDATE holdfast.store_life SET why = 'changed'")
    async with database() as second:
        assert await said(second, "SELECT count(*) FROM holdfast.halt") == 0
        assert await said(second, lives) == "1created"
        with pytest.raises(LOST):
            await left_behind.fetchval("SELECT 1")
        with pytest.raises(asyncpg.InvalidCatalogNameError):
            await asyncpg.connect(first)
    await left_behind.close()


async def test_databases_that_are_open_at_once_do_not_share_a_row() -> None:
    async with database() as one, database() as other:
        await said(one, "INSERT INTO holdfast.halt VALUES ('*', 'all', 'olga', '', 0)")
        assert await said(other, "SELECT count(*) FROM holdfast.halt") == 0
        assert await said(one, "SELECT count(*) FROM holdfast.halt") == 1


@pytest.mark.parametrize("tcp", [False, True], ids=["socket", "tcp"])
async def test_a_server_that_was_stopped_at_once_starts_again_with_what_was_committed(tcp: bool) -> None:
    with Postgres(tcp=tcp) as server:
        await said(server.url, "CREATE TABLE kept AS SELECT 7 AS figure")
        cut_off = await asyncpg.connect(server.url)
        server.stop_immediate()
        with pytest.raises(LOST):
            await cut_off.fetchval("SELECT 1")
        with pytest.raises(LOST):
            await asyncpg.connect(server.url)
        server.start()
        assert await said(server.url, "SELECT figure FROM kept") == 7
        assert await said(server.url, "SHOW fsync") == "on"
        await cut_off.close()
        folder = server.folder
    assert not folder.exists()


def test_a_server_is_gone_when_the_one_who_started_it_was_killed() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    folder = Path(owner.stdout.readline().strip())
    server = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    owner.kill()
    owner.communicate()  # until the watcher, who has the same output, is done as well
    assert not folder.exists()
    status = Path(f"/proc/{server}/stat")
    assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"
