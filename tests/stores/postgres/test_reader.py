"""Do readers see what they may see, and only that, also when the server was away?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast.model.errors import StoreError
from holdfast.stores.postgres.reader import PostgresReader
from tests.polling import until
from tests.postgres import server
from tests.requirements import requirement
from tests.stored import asked
from tests.stores.postgres.wire import Wire

CALLS = "SELECT tenant, call_id FROM cancel ORDER BY call_id"
MINE = "SELECT call_id FROM cancel WHERE tenant = ? AND call_id <> ?"
SLEEPING = "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(5)%' AND wait_event = 'PgSleep'"
WHO_ANSWERS = "SELECT pg_backend_pid()"
_CUT_OFF = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND state = 'idle'"


@asynccontextmanager
async def reading(url: str, **options: Any) -> AsyncIterator[PostgresReader]:
    reader = PostgresReader(url, **options)
    try:
        yield reader
    finally:
        await reader.close()


@pytest.fixture
def filled(url: str) -> str:
    for tenant in ("acme", "zeta"):
        asked(url, "INSERT INTO holdfast.cancel VALUES ($1, $2, 'olga', 0)", tenant, f"call of {tenant}")
    return url


def cut_off(url: str) -> None:
    """As an administrator would; whoever used the database finds its connection gone."""
    name = url.rpartition("?")[0].rpartition("/")[2]
    asked(server().admin_url(), _CUT_OFF, name)


@requirement("AUT-6")
@pytest.mark.parametrize("readers", [1, 4])
async def test_a_statement_that_forgets_the_tenant_still_shows_nobody_elses_rows(
    filled: str, readers: int
) -> None:
    async with reading(filled, readers=readers) as reader:
        tenants = ("acme", "zeta", "nobody", "", "acme") * 4
        seen = await asyncio.gather(*(reader.all(tenant, CALLS) for tenant in tenants))
        slow = [await reader.slow(tenant, CALLS) for tenant in tenants]
        everywhere = await reader.all("*", CALLS)
    mine = {"acme": [("acme", "call of acme")], "zeta": [("zeta", "call of zeta")]}
    assert seen == [mine.get(tenant, []) for tenant in tenants]
    assert slow == seen
    assert everywhere == mine["acme"] + mine["zeta"]


@requirement("AUT-6")
async def test_a_tenant_cannot_name_another_by_value(filled: str) -> None:
    async with reading(filled) as reader:
        assert await reader.all("acme", MINE, ("acme", "x")) == [("call of acme",)]
        assert await reader.all("acme", MINE, ("zeta", "x")) == []


@requirement("DEC-1")
async def test_a_reader_that_was_cut_off_connects_again(filled: str) -> None:
    async with reading(filled, readers=1) as reader:
        assert len(await reader.all("acme", CALLS)) == 1
        cut_off(filled)
        assert len(await reader.all("acme", CALLS)) == 1
        cut_off(filled)
        assert await reader.all("zeta", CALLS) == [("zeta", "call of zeta")]


@requirement("DEC-1")
async def test_slow_questions_share_a_connection_and_find_another_when_it_was_cut_off(filled: str) -> None:
    async with reading(filled) as reader:
        [first] = await reader.slow("acme", WHO_ANSWERS)
        [second] = await reader.slow("zeta", WHO_ANSWERS)
        cut_off(filled)
        [third] = await reader.slow("acme", WHO_ANSWERS)
        together = await asyncio.gather(*(reader.slow("acme", WHO_ANSWERS) for _ in range(4)))
    assert first == second != third
    assert len({one for [one] in together}) == 4


@requirement("DEC-1")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_read_whose_answer_got_lost_is_asked_again(wire: Wire, after: bool) -> None:
    async with reading(wire.url) as reader:
        await reader.all("acme", CALLS)
        wire.break_at(b"lost-on-the-way", after=after)
        assert await reader.all("acme", MINE, ("acme", "lost-on-the-way")) == []
        assert wire.broke


@requirement("DEC-1")
async def test_a_server_that_stays_away_is_told_of_within_the_patience(wire: Wire) -> None:
    async with reading(wire.url, patience_s=0.5) as reader:
        wire.proxy.refusing = True
        with pytest.raises(StoreError, match=r"the database was not to be had for 0\.5 s"):
            await reader.all("acme", CALLS)
        wire.mend()
    async with reading(wire.url) as reader:
        assert await reader.all("acme", CALLS) == []


async def test_more_wait_for_rows_than_there_are_connections(filled: str) -> None:
    async with reading(filled, readers=2) as reader:
        asking = [asyncio.ensure_future(reader.all("acme", CALLS)) for _ in range(50)]
        await asyncio.sleep(0)
        busy = not reader.idle
        assert {len(rows) for rows in await asyncio.gather(*asking)} == {1}
        assert (busy, reader.idle) == (True, True)


async def test_one_who_stops_waiting_spoils_nothing_for_the_next(filled: str) -> None:
    async with reading(filled, readers=1) as reader:
        await reader.all("acme", CALLS)
        impatient = asyncio.ensure_future(reader.all("acme", "SELECT pg_sleep(5)"))
        await until(lambda: bool(asked(server().admin_url(), SLEEPING)))
        impatient.cancel()
        await asyncio.wait((impatient,))
        assert await reader.all("zeta", CALLS) == [("zeta", "call of zeta")]


async def test_a_statement_the_server_refuses_is_an_error_and_not_a_loss(filled: str) -> None:
    async with reading(filled, readers=1) as reader:
        with pytest.raises(StoreError, match="cannot be read: relation"):
            await reader.all("acme", "SELECT * FROM nothing")
        assert len(await reader.all("acme", CALLS)) == 1


async def test_a_reader_that_is_closed_says_so(filled: str) -> None:
    async with reading(filled) as reader:
        pass
    with pytest.raises(StoreError, match="closed"):
        await reader.all("acme", CALLS)
