"""Whose is a session where several processes serve? On every store that they can share."""

import asyncio
from pathlib import Path

import pytest

from holdfast import Code
from holdfast.model.upstream_session import SessionState
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.stored import DURABLE, place
from tests.stores.world import ManualWorkers
from tests.upstream_sessions.till import Till
from tests.upstream_sessions.world import World, another, opened

SHARED = pytest.mark.parametrize("kind", DURABLE)


@requirement("EXE-8")
@SHARED
async def test_a_session_at_a_server_elsewhere_is_shared_by_all_workers(kind: str, tmp_path: Path) -> None:
    till, clock = Till(), ManualClock()
    async with (
        opened(kind, tmp_path, till, clock, shared=True) as one,
        another(kind, tmp_path, till, clock, shared=True) as two,
    ):
        tx = await one.begun()
        await two.done("add", "one", tx=tx, name="tea", amount=3)
        await one.done("add", "two", tx=tx, name="milk", amount=5)
        await two.done("commit", "commit", tx=tx)
        assert till.entries == {"tea": 3, "milk": 5}
        assert await one.state(tx) is SessionState.COMMITTED


@requirement("EXE-8")
@SHARED
async def test_a_session_in_a_process_is_worked_in_there_alone(kind: str, tmp_path: Path) -> None:
    till, clock = Till(), ManualClock()
    async with (
        opened(kind, tmp_path, till, clock, workers=ManualWorkers("w_one")) as one,
        another(kind, tmp_path, till, clock, workers=ManualWorkers("w_two"), idle_s=60.0) as two,
    ):
        tx = await one.begun()
        seen = await two.call("add", "one", tx=tx, name="tea", amount=3)
        assert seen.code is Code.CONFLICT
        assert "lives in another process" in (seen.message or "")
        assert "serve with one worker" in (seen.message or "")
        await clock.advance(301.0)
        await two.gateway.tidy()  # it is not two's to roll back
        assert await two.state(tx) is SessionState.OPEN
        await one.gateway.tidy()
        assert await two.state(tx) is SessionState.ROLLED_BACK


@requirement("EXE-8")
@SHARED
async def test_a_session_ends_with_the_process_it_lived_in(kind: str, tmp_path: Path) -> None:
    clock, neighbours = ManualClock(), ManualWorkers("w_two")
    async with place(kind, tmp_path):
        async with another(kind, tmp_path, Till(), clock, workers=ManualWorkers("w_one")) as one:
            tx = await one.begun()
            added = await one.done("add", "one", tx=tx, name="tea", amount=3)
            one.gateway.upstream_sessions.close = _killed  # type: ignore[method-assign]
        neighbours.dead.add("w_one")
        async with another(kind, tmp_path, Till(), clock, workers=neighbours) as two:
            seen = await two.call("commit", "commit", tx=tx)
            assert seen.code is Code.STALE_STATE
            assert "ended with the process" in (seen.message or "")
            await two.gateway.tidy()
            assert await two.state(tx) is SessionState.ROLLED_BACK
            assert two.till.heard == []  # there is nobody to tell
            replayed = await two.call("add", "one", tx=tx, name="tea", amount=3)
            assert (replayed.call_id, replayed.code) == (added.call_id, Code.CANCELLED)


async def _killed(patience_s: float) -> None:
    """It has no time to say anything."""


@requirement("EXE-8")
async def test_a_process_that_ends_rolls_back_what_lives_in_it(kind: str, tmp_path: Path) -> None:
    till = Till()
    async with opened(kind, tmp_path, till) as world:
        await world.begun()
        assert till.open
    assert till.open == {}
    assert till.heard == [("rollback", "transaction-1")]


@requirement("EXE-8")
async def test_doctor_tells_that_sessions_live_in_the_process(tmp_path: Path) -> None:
    async with opened("memory", tmp_path) as world:
        assert [one for one in world.gateway.findings() if "lives in the gateway's process" in one]
    async with opened("memory", tmp_path, shared=True) as world:
        assert not [one for one in world.gateway.findings() if "lives in the gateway's process" in one]


@requirement("EXE-8")
@SHARED
async def test_two_processes_that_tidy_at_once_roll_back_once(kind: str, tmp_path: Path) -> None:
    till, clock = Till(), ManualClock()
    async with (
        opened(kind, tmp_path, till, clock, shared=True) as one,
        another(kind, tmp_path, till, clock, shared=True) as two,
    ):
        tx = await one.begun()
        await clock.advance(301.0)
        await _tidied(one, two)
        assert await one.state(tx) is SessionState.ROLLED_BACK
        assert till.heard == [("rollback", "transaction-1")]


async def _tidied(*worlds: World) -> None:
    await asyncio.gather(*(world.gateway.tidy() for world in worlds))
