"""What is left of a lane's chain after the server crashed?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from holdfast.records.chain import Record, first_fault
from holdfast.stores.postgres.connection import Connection
from holdfast.stores.postgres.dialect import said
from holdfast.stores.postgres.migrate import migrate
from holdfast.stores.postgres.writer import PostgresWriter
from holdfast.stores.sql import sequencer
from holdfast.stores.sql.engine import Row, Transaction, Values
from holdfast.stores.sql.sequencer import Piece
from tests.postgres_server import Postgres
from tests.requirements import requirement
from tests.soak.ledger import own_server

SETTINGS = {"wal_writer_delay": "10s"}
"""Nothing that nobody waits for is flushed by itself meanwhile."""
LEAVES = "SELECT l.hash = r.hash FROM tree_leaf l JOIN record r USING (tenant, writer, seq) ORDER BY l.leaf"
RECORDS = "SELECT tenant, writer, seq, call_id, kind, at, body, prev, hash FROM record ORDER BY seq"


async def note(transaction: Transaction, name: str) -> None:
    transaction.record("t", name, "outcome", 1.0, "{}")


@asynccontextmanager
async def looking(server: Postgres) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(
        server.url, server_settings={"search_path": "holdfast", "holdfast.tenant": "*"}
    )
    try:
        yield connection
    finally:
        await connection.close()


async def records(server: Postgres) -> list[Record]:
    async with looking(server) as connection:
        return [Record(*row) for row in await connection.fetch(RECORDS)]


@asynccontextmanager
async def written() -> AsyncIterator[tuple[Postgres, PostgresWriter]]:
    """One durable record, and one that a crash takes back."""
    async with own_server(durable=False, settings=SETTINGS) as server:
        async with looking(server) as connection:
            await migrate(connection)
        writer = PostgresWriter(server.url, "w_test", lanes=1)
        try:
            await writer.submit("t", True, note, "durable")
            await writer.submit("t", False, note, "taken back")
            yield server, writer
        finally:
            await writer.close()


@requirement("AUD-1", "AUD-5")
async def test_a_chain_goes_on_where_it_ends_after_a_crash_took_back_what_was_not_durable() -> None:
    async with written() as (server, writer):
        await asyncio.to_thread(server.restart_immediate)
        await writer.submit("t", True, note, "next")
        found = await records(server)
    assert [record.call_id for record in found] == ["durable", "next"]
    assert first_fault(found) is None


async def found_by_sequencer(server: Postgres) -> list[Piece]:
    async with looking(server) as connection:

        async def fetch(statement: str, values: Values) -> list[Row]:
            text, used = said(statement, values)
            return [tuple(row) for row in await connection.fetch(text, *used)]

        return await sequencer.look(fetch, lambda writer: True)


@requirement("AUD-1", "AUD-5")
async def test_what_a_crash_took_back_comes_into_the_tree_no_more() -> None:
    async with written() as (server, writer):
        [piece] = await found_by_sequencer(server)
        assert len(piece.records) == 2
        await asyncio.to_thread(server.restart_immediate)
        await writer.submit("t", True, note, "next")  # has the place of what was found
        for found in ([piece], await found_by_sequencer(server)):
            await writer.submit_long("*", sequencer.sequence, found, None, 1.0)
        async with looking(server) as connection:
            leaves = [same for (same,) in await connection.fetch(LEAVES)]
    assert leaves == [True, True]
