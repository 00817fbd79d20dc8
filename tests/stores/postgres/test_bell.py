"""Is what happens in one process felt in the others at once?

Time stands still in most of these tests: nobody who looks now and then ever looks again, so whoever is woken
was woken by a bell.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from holdfast.model.call import Principal
from holdfast.model.operation import Operation
from holdfast.model.vocabulary import State
from holdfast.ports import Begun
from holdfast.stores.keyring import root_secret
from holdfast.stores.postgres.bell import Bell
from holdfast.stores.postgres.connection import Patience
from holdfast.stores.postgres.roll import Roll
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.sql.engine import APPROVALS, CANCELLED, HALTED, POLICIES
from holdfast.system import SystemClock
from holdfast.testing import ManualClock
from tests.polling import FELT_S, until
from tests.postgres import Postgres
from tests.requirements import requirement
from tests.stored import durable, place
from tests.stores.calls import make_call, observed
from tests.stores.world import ManualWorkers


class Two:
    """Two processes on one database, and what the second one hears."""

    def __init__(self, one: PostgresStore, two: PostgresStore, clock: ManualClock) -> None:
        self.one, self.two, self.clock = one, two, clock
        self.heard: asyncio.Queue[str] = asyncio.Queue()
        two.listen(self.heard.put_nowait)

    async def next_heard(self) -> str:
        async with asyncio.timeout(FELT_S):
            return await self.heard.get()


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Two]:
    clock = ManualClock()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(place("postgres", tmp_path))
        stores = []
        for name in ("w_one", "w_two"):
            workers = ManualWorkers(name)
            opened = durable("postgres", tmp_path, clock, workers=workers)
            store = await stack.enter_async_context(opened)
            assert isinstance(store, PostgresStore)
            stores.append(store)
        yield Two(stores[0], stores[1], clock)


async def halted(store: PostgresStore, clock: ManualClock) -> None:
    await store.controls.halt("all", "olga", "")


async def resumed(store: PostgresStore, clock: ManualClock) -> None:
    assert await store.controls.resume("all", "olga")


async def cancelled(store: PostgresStore, clock: ManualClock) -> None:
    await store.controls.request_cancel("acme", "call_1", "olga")


async def promoted(store: PostgresStore, clock: ManualClock) -> None:
    await store.bundles.promote("v1", "{}", "olga", "")


async def approved(store: PostgresStore, clock: ManualClock) -> None:
    question = await store.approvals.ask(make_call(clock), {"operator": 1}, {"action": "pay"})
    await store.approvals.decide(question, Principal(user="olga"), "operator", True, "fine")


@requirement("PPL-4", "APR-4")
@pytest.mark.parametrize(
    ("act", "what"),
    [(halted, HALTED), (cancelled, CANCELLED), (promoted, POLICIES), (approved, APPROVALS)],
)
async def test_what_people_do_in_one_process_is_heard_in_the_other(
    both: Two, act: Callable[[PostgresStore, ManualClock], Awaitable[None]], what: str
) -> None:
    await act(both.one, both.clock)
    assert await both.next_heard() == what


@requirement("PPL-4")
async def test_what_was_taken_back_is_heard_too_and_is_there_when_it_is_heard(both: Two) -> None:
    await halted(both.one, both.clock)
    assert await both.next_heard() == HALTED
    assert "all" in await both.two.controls.halts()
    await resumed(both.one, both.clock)
    assert await both.next_heard() == HALTED
    assert "all" not in await both.two.controls.halts()


# -- being there --------------------------------------------------------------------------


@requirement("IDM-8")
async def test_one_whose_old_connection_the_server_has_not_missed_yet_is_there_again_at_once(
    url: str,
) -> None:
    old, new = (Bell(url, Roll("w_same", time.monotonic), None) for _ in range(2))
    await old.open(Patience(FELT_S))
    await new.open(Patience(0.0))
    await old.close()
    await new.close()


# -- waiting duplicates ------------------------------------------------------------------


async def waiting(both: Two, running: Operation) -> "asyncio.Task[Operation]":
    """A duplicate in the second process that waits, and whose owner knows that it does."""
    task = asyncio.create_task(both.two.ledger.wait(running, 60.0))
    await until(lambda: bool(both.one.bell._wanted))
    await both.clock.quiet()
    assert not task.done()
    assert both.clock.sleepers == 1
    return task


@requirement("IDM-4")
@pytest.mark.parametrize("waited_s", [0.0, 0.5], ids=["at once", "after it has looked a few times"])
async def test_a_duplicate_is_woken_by_the_end_of_its_operation_in_another_process(
    tmp_path: Path, waited_s: float
) -> None:
    clock = ManualClock()
    async with (
        place("postgres", tmp_path),
        durable("postgres", tmp_path, clock) as one,
        durable("postgres", tmp_path, clock) as two,
    ):
        assert isinstance(one, PostgresStore)
        assert isinstance(two, PostgresStore)
        both, call = Two(one, two, clock), make_call(clock)
        begun = await one.ledger.begin(call)
        assert isinstance(begun, Begun)
        assert begun.operation is not None
        call.operation = begun.operation
        duplicate = await waiting(both, begun.operation)
        await clock.advance(waited_s)
        assert not duplicate.done()
        await one.ledger.finish(call, observed(call, data={"ok": True}), State.COMMITTED)
        async with asyncio.timeout(FELT_S):
            assert (await duplicate).state is State.COMMITTED
        assert clock.monotonic() == waited_s, "no time passed in which it could have looked again"
        assert not one.bell._wanted
        assert both.heard.empty(), "ends are told to who waits, and to nobody else"


# -- a server that goes and comes --------------------------------------------------------


@requirement("PPL-4", "DEC-1")
async def test_after_the_server_was_restarted_it_listens_again_and_calls_nobody_dead(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = Postgres(durable=False)
    keys = partial(root_secret, tmp_path / "keys")
    try:
        await asyncio.to_thread(server.start)
        open_ = partial(PostgresStore, server.url, keys, SystemClock(), heartbeat_s=0.05)
        async with open_() as one, open_() as two:
            await asyncio.to_thread(server.stop_immediate)
            await until(lambda: "the database is away" in caplog.text)
            await asyncio.to_thread(server.start)
            await until(lambda: caplog.text.count("the database is back") == 2)
            assert two.ledger._workers.alive(one.ledger._workers.id)
            heard: asyncio.Queue[str] = asyncio.Queue()
            two.listen(heard.put_nowait)
            await one.controls.halt("all", "olga", "")
            async with asyncio.timeout(FELT_S):
                assert await heard.get() == HALTED
    finally:
        await asyncio.to_thread(server.remove)
