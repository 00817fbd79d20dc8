"""Do processes that share a database write in turn, and does nobody wait for one that is gone or stopped?"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from holdfast.model.errors import StoreError
from holdfast.ports import Begun
from holdfast.stores.sqlite import turnstile
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.stores.sqlite.turnstile import Turnstile
from holdfast.stores.worker import LockedWorkers, alone
from holdfast.system import SystemClock
from holdfast.testing import settle_loop
from tests.requirements import requirement
from tests.stores.calls import make_call, observed

CLOCK = SystemClock()
HOLDER = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
print("mine", flush=True)
sys.stdin.read()
"""


@pytest_asyncio.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[Turnstile, Turnstile]]:
    loop = asyncio.get_running_loop()
    both = Turnstile(tmp_path / "turn", loop), Turnstile(tmp_path / "turn", loop)
    yield both
    for one in both:
        one.leave()
        one.close()


def held(path: Path) -> "subprocess.Popen[str]":
    """Another process that has the turn."""
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "mine\n"
    return other


async def told(one: Turnstile) -> "asyncio.Future[None]":
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    one.wait(lambda: done.set_result(None))
    return done


async def test_one_has_the_turn_and_the_next_is_woken_when_it_leaves(
    two: tuple[Turnstile, Turnstile],
) -> None:
    first, second = two
    assert first.take()
    assert not second.take()
    woken = await told(second)
    assert not woken.done()
    first.leave()
    async with asyncio.timeout(30):
        await woken
    assert not first.take()
    second.leave()
    assert first.take()


@requirement("IDM-4")
async def test_the_turn_of_a_killed_process_is_free(tmp_path: Path, two: tuple[Turnstile, Turnstile]) -> None:
    other = held(tmp_path / "turn")
    assert not two[0].take()
    woken = await told(two[0])
    other.kill()
    async with asyncio.timeout(30):
        await woken
    assert not two[1].take()
    other.communicate()


@requirement("IDM-4")
async def test_nobody_waits_long_for_a_stopped_process_and_not_twice(
    tmp_path: Path, two: tuple[Turnstile, Turnstile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE_S", 0.01)
    other = held(tmp_path / "turn")
    os.kill(other.pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(30):
            await (await told(two[0]))
            monkeypatch.setattr(turnstile, "PATIENCE_S", 3600.0)
            await (await told(two[0]))
        assert not two[0].take()
    finally:
        other.kill()
        other.communicate()
    async with asyncio.timeout(30):
        await _free(two[1])


async def _free(one: Turnstile) -> None:
    """What came too late for the first was given back by it."""
    if not one.take():
        await (await told(one))


@requirement("IDM-4")
async def test_a_turn_that_comes_when_it_is_closed_takes_nothing_from_whoever_has_its_number_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE_S", 0.01)
    one = Turnstile(tmp_path / "turn", asyncio.get_running_loop())
    other = held(tmp_path / "turn")
    await (await told(one))  # without a turn: it goes on waiting in the kernel
    one.close()
    other.kill()
    other.communicate()
    assert one._thread is not None
    one._thread.join(30)  # it had the turn, and let it go; what it has to say of that comes now
    worker = LockedWorkers(tmp_path / "workers")
    worker.open()
    assert one._file in (worker._lock, worker._gate)
    await settle_loop()
    assert LockedWorkers(tmp_path / "workers").alive(worker.id)
    with pytest.raises(StoreError, match="has this store open"), alone(tmp_path / "workers"):
        pass
    worker.close()


@requirement("PPL-6")
async def test_writes_go_on_while_somebody_who_is_stopped_has_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE_S", 0.01)
    async with SqliteStore(tmp_path / "holdfast.db", CLOCK) as store:
        other = held(tmp_path / "holdfast.db-workers" / "turn")
        try:
            async with asyncio.timeout(30):
                for number in range(3):
                    call = make_call(CLOCK, f"k-{number}")
                    assert isinstance(await store.ledger.begin(call), Begun)
                    assert await store.ledger.finish(call, observed(call), None)
        finally:
            other.kill()
            other.communicate()


@requirement("PPL-6", "IDM-1")
async def test_stores_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(SqliteStore(tmp_path / "holdfast.db", CLOCK)) for _ in range(3)
        ]

        async def write(store: SqliteStore, key: str) -> bool:
            call = make_call(CLOCK, key)
            if not isinstance(await store.ledger.begin(call), Begun):
                return False
            return await store.ledger.finish(call, observed(call), None)

        won = await asyncio.gather(*(write(store, f"k-{n}") for n in range(60) for store in stores))
        assert sum(won) == 60
        assert await stores[0].audit.sequence() == 120
