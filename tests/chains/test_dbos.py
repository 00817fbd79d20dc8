"""Do runs outlive the process that drives them, and the database that keeps them?"""

import asyncio
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.chains.crashed import UNDONE
from tests.chains.drivers import Driver, driver
from tests.chains.orders import BAD, FIVE, acted
from tests.polling import until
from tests.postgres_server import Postgres
from tests.requirements import requirement
from tests.soak.ledger import own_server
from tests.stored import place, url_of

PATIENCE_S = 60.0
"""Only something stuck needs it."""
KEYS = [f"k-{number}" for number in range(8)]
DONE = [("COMPLETED", list(FIVE))] * len(KEYS)


def outcomes(told: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    return [(one["state"], one["did"]) for one in told]


def waits(held: dict[str, Any]) -> str:
    return f"run {held['of']} waits for the store"


def more_than(times: int, it: Driver, text: str) -> bool:
    return it.log.count(text) > times


@pytest.mark.soak
@requirement("CHN-7", "SAG-1")
async def test_a_run_whose_driving_broke_is_driven_again_and_one_that_was_left_is_not_undone(
    tmp_path: Path,
) -> None:
    url = url_of("sqlite", tmp_path)
    async with asyncio.timeout(PATIENCE_S):
        async with driver("leaving", url, tmp_path, keys=["k-1"], breaks=True, leaves=True) as leaving:
            assert await leaving.ended() == 0, leaving.log
        assert "broke; it goes on when it is taken up again" in leaving.log
        async with driver("next", url, tmp_path, runs=1) as following:
            told = await following.runs()
    assert outcomes(told) == DONE[:1], following.log


@requirement("CHN-7", "SAG-1")
async def test_a_run_of_a_killed_process_is_taken_over_by_a_newer_one_and_goes_on_as_it_was_declared(
    tmp_path: Path,
) -> None:
    url = url_of("sqlite", tmp_path)
    check = {"id": "check", "tool": "shop.check", "with": {"item": "=input.item"}}
    newer = {"version": "2.0.0", "steps": [check], "saga": False}
    async with asyncio.timeout(PATIENCE_S):
        async with driver("old", url, tmp_path, keys=["k-1"], point="after pack~undo", item=BAD) as old:
            assert await old.ended() == -signal.SIGKILL
        async with driver("new", url, tmp_path, keys=["k-2"], runs=2, chain=newer) as new:
            told = await new.runs()
    assert [(one["version"], one["state"], one["did"]) for one in told] == [
        ("1.0.0", "COMPENSATED", [*FIVE, *UNDONE]),
        ("2.0.0", "COMPLETED", []),
    ]
    assert "its runs are taken over" in new.log


@pytest.mark.soak
@requirement("CHN-7", "SAG-1")
async def test_a_process_that_slept_through_its_lease_and_the_one_that_took_over_act_once(
    tmp_path: Path,
) -> None:
    async with asyncio.timeout(PATIENCE_S), place("postgres", tmp_path):
        url = url_of("postgres", tmp_path)
        async with (
            driver("other", url, tmp_path, runs=len(KEYS)) as other,
            driver("sleeper", url, tmp_path, keys=KEYS) as sleeper,
        ):
            for _ in KEYS:
                await sleeper.said("begun")
            sleeper.signal(signal.SIGSTOP)
            await until(lambda: "its runs are taken over" in other.log)
            sleeper.signal(signal.SIGCONT)
            told, again = await asyncio.gather(other.runs(), sleeper.runs())
    assert outcomes(told) == DONE, other.log
    assert outcomes(again) == DONE, sleeper.log


@pytest.mark.soak
@requirement("CHN-7", "SAG-1")
async def test_runs_of_a_killed_process_are_taken_over_on_postgresql(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), place("postgres", tmp_path):
        url = url_of("postgres", tmp_path)
        async with driver("second", url, tmp_path, runs=len(KEYS)) as second:
            await second.said("ready")
            second.signal(signal.SIGSTOP)  # or it would be there first
            async with driver("first", url, tmp_path, keys=KEYS, point="after ship") as first:
                assert await first.ended() == -signal.SIGKILL
            second.signal(signal.SIGCONT)
            async with driver("third", url, tmp_path, keys=KEYS) as third:
                told = await third.runs()
            assert await second.runs() == told
    assert outcomes(told) == DONE, second.log + third.log
    assert "its runs are taken over" in second.log + third.log


@pytest.mark.soak
@requirement("CHN-7", "SAG-1")
async def test_a_database_that_stops_inside_a_step_of_recovery_leaves_no_run_stuck_and_no_step_done_twice(
    tmp_path: Path,
) -> None:
    holds = ["before bill", "after bill"]
    async with asyncio.timeout(2 * PATIENCE_S), own_server(durable=False) as server:
        url = server.url
        async with driver("third", url, tmp_path, keys=KEYS, after="both restarts") as third:
            await third.said("ready")
            third.signal(signal.SIGSTOP)  # or it would take all of them
            async with driver("first", url, tmp_path, keys=KEYS, point="after ship") as first:
                assert await first.ended() == -signal.SIGKILL
            async with driver("second", url, tmp_path, runs=len(KEYS), holds=holds) as second:
                await restarted_inside(server, second, third, tmp_path, holds)
                (tmp_path / "both restarts").touch()  # what the first had no time to begin
                told, again = await asyncio.gather(second.runs(), third.runs())
    assert outcomes(told) == DONE, second.log
    assert again == told
    assert "its runs are taken over" in second.log


async def restarted_inside(
    server: Postgres, second: Driver, third: Driver, folder: Path, holds: list[str]
) -> None:
    """The database stops while a step of a run that was taken over is held there, and starts once that step
    has met with it.
    """
    for hold, did in zip(holds, (FIVE[:-1], FIVE), strict=True):
        held = await second.said("held")
        if hold == holds[-1]:  # before that it would take over what the second one is to be held in
            third.signal(signal.SIGCONT)
        await asyncio.to_thread(server.stop_immediate)
        assert (held["held"], acted(folder, held["of"])) == (hold, list(did))
        met = partial(more_than, second.log.count(waits(held)), second, waits(held))
        (folder / hold).touch()
        await until(met)
        await asyncio.to_thread(server.start)


@pytest.mark.soak
@requirement("CHN-7", "SAG-1", "IDM-4")
async def test_a_process_that_slept_inside_a_step_of_recovery_while_another_finished_it_does_nothing_again(
    tmp_path: Path,
) -> None:
    async with asyncio.timeout(2 * PATIENCE_S), own_server(durable=False) as server:
        url, hold = server.url, "before ship"
        async with driver("first", url, tmp_path, keys=KEYS, point="after charge") as first:
            assert await first.ended() == -signal.SIGKILL
        async with driver("second", url, tmp_path, runs=len(KEYS), holds=[hold]) as second:
            held = await second.said("held")
            second.signal(signal.SIGSTOP)
            async with driver("third", url, tmp_path, keys=KEYS) as third:
                for _ in KEYS:
                    await third.said("begun")
                await asyncio.to_thread(server.restart_immediate)
                told = await third.runs()
            assert outcomes(told) == DONE, third.log
            assert "its runs are taken over" in third.log
            (tmp_path / hold).touch()
            second.signal(signal.SIGCONT)  # it is about to claim a step that is long done
            again = await second.runs()
    assert outcomes(again) == DONE, second.log
    assert held["of"] in {one["run"] for one in told}
