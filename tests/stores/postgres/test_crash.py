"""What is left of a lane's chain after the server crashed?"""

import asyncio

import asyncpg

from holdfast.records.chain import Record, first_fault
from holdfast.stores.postgres.migrate import migrate
from holdfast.stores.postgres.writer import PostgresWriter
from holdfast.stores.sql.engine import Transaction
from tests.requirements import requirement
from tests.soak.ledger import own_server

SETTINGS = {"wal_writer_delay": "10s"}
"""Nothing that nobody waits for is flushed by itself meanwhile."""
RECORDS = "SELECT tenant, writer, seq, call_id, kind, at, body, prev, hash FROM record ORDER BY seq"


async def note(transaction: Transaction, name: str) -> None:
    transaction.record("t", name, "outcome", 1.0, "{}")


async def records(url: str) -> list[Record]:
    connection = await asyncpg.connect(
        url, server_settings={"search_path": "holdfast", "holdfast.tenant": "*"}
    )
    try:
        return [Record(*row) for row in await connection.fetch(RECORDS)]
    finally:
        await connection.close()


@requirement("AUD-1", "AUD-5")
async def test_a_chain_goes_on_where_it_ends_after_a_crash_took_back_what_was_not_durable() -> None:
    async with own_server(durable=False, settings=SETTINGS) as server:
        connection = await asyncpg.connect(server.url)
        await migrate(connection)
        await connection.close()
        writer = PostgresWriter(server.url, "w_test", lanes=1)
        await writer.submit("t", True, note, "durable")
        await writer.submit("t", False, note, "taken back")
        await asyncio.to_thread(server.stop_immediate)
        await asyncio.to_thread(server.start)
        await writer.submit("t", True, note, "next")
        await writer.close()
        found = await records(server.url)
    assert [record.call_id for record in found] == ["durable", "next"]
    assert first_fault(found) is None
