"""Do several gateways on one database stay signed in together?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.model.errors import Code, NoEffect
from holdfast.stores.sql.tokens import SqlTokens
from holdfast.testing import ManualClock
from holdfast.upstreams.mcp.oauth_kept import LEASE_S
from tests.requirements import requirement
from tests.stored import DURABLE, durable, place, rows
from tests.upstreams.oauth.world import ALICE, decoded, until, world

OWNER = ("acme", "alice")


class Watched:
    """A process's tokens, counting how often it found another one at work."""

    def __init__(self, tokens: SqlTokens) -> None:
        self.load, self.save, self.drop = tokens.load, tokens.save, tokens.drop
        self._tokens = tokens
        self.waits = 0

    async def lease(self, owner: tuple[str, str], upstream: str, at: float, now: float, until: float) -> bool:
        leased = await self._tokens.lease(owner, upstream, at, now, until)
        self.waits += not leased
        return leased


@pytest.fixture(params=DURABLE)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    async with place(request.param, tmp_path) as kind:
        yield kind


@asynccontextmanager
async def two_stores(store: str, folder: Path) -> AsyncIterator[tuple[SqlTokens, Watched]]:
    clock = ManualClock()
    async with durable(store, folder, clock) as one, durable(store, folder, clock) as other:
        yield one.tokens, Watched(other.tokens)


@requirement("PPL-6")
async def test_of_two_processes_one_renews_and_both_have_the_new_token(store: str, tmp_path: Path) -> None:
    async with world() as w, two_stores(store, tmp_path) as (first, second):
        await w.sign_in(store=first)
        await w.clock.advance(3600)
        w.office.hold = asyncio.Event()
        one = asyncio.create_task(w.call(w.authorizer(first)))
        await until(lambda: w.office.count("refresh_token") == 1)
        other = asyncio.create_task(w.call(w.authorizer(second)))
        await until(lambda: second.waits > 1)
        w.office.hold.set()
        assert (await one, await other) == ((200, "alice"), (200, "alice"))
        assert w.office.count("refresh_token") == 1, "used twice, it would have ended the sign-in"


@requirement("PPL-6")
async def test_a_process_that_died_while_renewing_is_not_waited_for_for_ever(
    store: str, tmp_path: Path
) -> None:
    async with world() as w, two_stores(store, tmp_path) as (first, second):
        await w.sign_in(store=first)
        at = decoded(await first.load(OWNER, "crm"))["at"]
        await w.clock.advance(3600)
        assert await first.lease(OWNER, "crm", at, w.clock.now(), w.clock.now() + LEASE_S)
        waiting = asyncio.create_task(w.call(w.authorizer(second)))
        await until(lambda: second.waits > 1)
        assert not waiting.done()
        await w.clock.advance(LEASE_S)
        assert await waiting == (200, "alice")


@requirement("AUT-8", "PPL-6")
async def test_signing_in_and_out_is_felt_at_once_in_the_other_process(store: str, tmp_path: Path) -> None:
    async with world() as w, two_stores(store, tmp_path) as (first, second):
        gateway = w.authorizer(second)
        with pytest.raises(NoEffect):
            await w.call(gateway)
        await w.sign_in(store=first)
        assert await w.call(gateway) == (200, "alice")
        assert await w.authorizer(first).sign_out(ALICE)
        with pytest.raises(NoEffect, match="holdfast login crm"):
            await w.call(gateway)
        assert not await w.authorizer(first).sign_out(ALICE)


@requirement("AUT-6")
async def test_a_token_that_was_moved_to_somebody_elses_row_is_not_used(store: str, tmp_path: Path) -> None:
    async with world() as w, two_stores(store, tmp_path) as (first, second):
        await w.sign_in(store=first)
        rows(store, tmp_path, "UPDATE {}token SET principal = 'eve'")
        with pytest.raises(NoEffect, match="cannot be read") as refused:
            await w.call(w.authorizer(second), "acme/eve/agent")
        assert (refused.value.code, w.seen) == (Code.DEPENDENCY_UNAVAILABLE, [])
