"""Does the engine know of its own workflows whether they are at work?"""

import asyncio
from functools import partial
from pathlib import Path

from holdfast.chains.engine import Interrupted
from holdfast.chains.engines import dbos
from holdfast.chains.engines.dbos import MOST_BREAKS, DbosEngine, Pace
from holdfast.testing import ManualClock
from tests.polling import until
from tests.requirements import requirement
from tests.stored import durable

PATIENCE_S = 60.0


@requirement("CHN-7")
async def test_a_workflow_that_was_begun_and_is_not_at_work_does_not_keep_its_run_from_being_driven(
    tmp_path: Path,
) -> None:
    driven: list[str] = []
    at_work, may_end = asyncio.Event(), asyncio.Event()

    async def drive(tenant: str, run_id: str) -> None:
        driven.append(run_id)
        if len(driven) == 1:  # to DBOS it stays begun, as one that a lost database cut short does
            raise Interrupted
        at_work.set()
        await may_end.wait()

    async with asyncio.timeout(PATIENCE_S), durable("sqlite", tmp_path, ManualClock()) as store:
        engine = DbosEngine(f"sqlite:///{tmp_path / 'chains.db'}", store.slots)
        await engine.start(drive)
        try:
            await engine.enqueue("acme", "run-1", 0)
            await until(lambda: driven == ["run-1"])
            assert not await engine.drives("acme", "run-1")
            await engine.enqueue("acme", "run-1", 0)
            await at_work.wait()
            assert await engine.drives("acme", "run-1")
            await engine.enqueue("acme", "run-1", 0)
            may_end.set()
            assert driven == ["run-1", "run-1"]
        finally:
            await engine.close()


@requirement("CHN-7")
async def test_a_newer_round_is_driven_though_the_one_before_has_not_let_go_yet(tmp_path: Path) -> None:
    driven: list[str] = []
    let_go = asyncio.Event()

    async def drive(tenant: str, run_id: str) -> None:
        driven.append(run_id)
        if len(driven) == 1:
            await let_go.wait()

    async with asyncio.timeout(PATIENCE_S), durable("sqlite", tmp_path, ManualClock()) as store:
        engine = DbosEngine(f"sqlite:///{tmp_path / 'chains.db'}", store.slots)
        await engine.start(drive)
        try:
            await engine.enqueue("acme", "run-1", 0)
            await until(lambda: driven == ["run-1"])
            await engine.enqueue("acme", "run-1", 1)  # a person chose, or cancelled it: nobody asks again
            await until(lambda: driven == ["run-1", "run-1"])
        finally:
            let_go.set()
            await engine.close()


@requirement("CHN-7")
async def test_workflows_that_were_cut_short_before_they_were_at_work_are_not_counted_as_broken(
    tmp_path: Path,
) -> None:
    driven: list[str] = []

    async def drive(tenant: str, run_id: str) -> None:
        driven.append(run_id)
        if len(driven) <= MOST_BREAKS:
            raise Interrupted

    async with asyncio.timeout(PATIENCE_S), durable("sqlite", tmp_path, ManualClock()) as store:
        engine = DbosEngine(f"sqlite:///{tmp_path / 'chains.db'}", store.slots)
        await engine.start(drive)
        try:
            for times in range(MOST_BREAKS + 1):
                await engine.enqueue("acme", "run-1", 0)
                await until(partial(_driven, driven, times + 1))
        finally:
            await engine.close()


def _driven(driven: list[str], times: int) -> bool:
    return len(driven) == times


@requirement("CHN-7")
async def test_a_run_is_driven_once_though_the_engine_does_not_answer(tmp_path: Path) -> None:
    pace = Pace()
    driven: list[str] = []
    at_work, may_end = asyncio.Event(), asyncio.Event()

    async def drive(tenant: str, run_id: str) -> None:
        driven.append(run_id)
        at_work.set()
        await may_end.wait()

    async with asyncio.timeout(PATIENCE_S), durable("sqlite", tmp_path, ManualClock()) as store:
        engine = DbosEngine(f"sqlite:///{tmp_path / 'chains.db'}", store.slots, pace)
        await engine.start(drive)
        try:
            pace.answer_s = 0.0  # it cannot have answered by then
            assert not await engine.drives("acme", "run-1")
            await engine.enqueue("acme", "run-1", 0)
            await at_work.wait()
            assert await engine.drives("acme", "run-1")
            await engine.enqueue("acme", "run-1", 0)
            pace.answer_s = PATIENCE_S
            await engine.enqueue("acme", "run-1", 0)  # nor is it driven twice once it answers
            may_end.set()
            await until(lambda: not dbos._active)
            assert driven == ["run-1"]
        finally:
            may_end.set()
            await engine.close()


@requirement("CHN-7")
async def test_what_waits_in_the_queue_beyond_the_lease_though_there_is_room_is_driven(
    tmp_path: Path,
) -> None:
    pace = Pace(poll_s=PATIENCE_S, at_once=0)  # nobody looks into the queue
    driven: list[str] = []

    async def drive(tenant: str, run_id: str) -> None:
        driven.append(run_id)

    async with asyncio.timeout(PATIENCE_S), durable("sqlite", tmp_path, ManualClock()) as store:
        engine = DbosEngine(f"sqlite:///{tmp_path / 'chains.db'}", store.slots, pace)
        await engine.start(drive)
        try:
            await engine.enqueue("acme", "run-1", 0)
            assert await engine.drives("acme", "run-1")  # when there is room
            pace.at_once = 1
            assert await engine.drives("acme", "run-1")  # soon
            pace.lease_s = -1.0
            assert not await engine.drives("acme", "run-1")
            await engine.enqueue("acme", "run-1", 0)
            await until(lambda: driven == ["run-1"])
        finally:
            await engine.close()
