"""What can a worker still do that was stopped in the middle and woken, or a machine that was restarted?"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from holdfast import Code, Observation, Status
from holdfast.model import defaults
from tests.faults.machine import Machine, Worker, machine
from tests.faults.stage import Stage
from tests.requirements import requirement
from tests.stored import ALL

LEASE_S = defaults.LEASE_MIN_S + 0.1
YEAR_S = 365 * 86_400.0


class World:
    def __init__(self, around: Machine, stage: Stage, first: Worker, second: Worker) -> None:
        self.machine = around
        self.stage = stage
        self.first = first
        self.second = second

    async def begin(self, worker: Worker, tool: str) -> "asyncio.Task[Observation]":
        """A call that has come as far as it can without the test's help."""
        task = asyncio.create_task(worker.gateway.call(f"faults.{tool}", {}, key="k"))
        await self.machine.quiet()
        return task

    async def tell(self, order: str) -> None:
        scene = self.stage.scenes[-1]
        scene.orders.put_nowait(order)
        await self.machine.quiet()

    async def ask(self, worker: Worker, tool: str) -> Observation:
        task = await self.begin(worker, tool)
        assert task.done(), f"'{tool}' runs again"
        return await task

    @property
    def effects(self) -> int:
        return self.stage.effects["k"]


@pytest_asyncio.fixture(params=ALL)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    stage = Stage()
    async with machine(request.param, tmp_path, stage.tools) as around:
        yield World(around, stage, await around.start_worker(), await around.start_worker())


@requirement("IDM-4", "IDM-5")
async def test_a_stopped_workers_claim_is_unknown_after_its_lease_and_its_late_effect_is_the_only_one(
    world: World,
) -> None:
    sleeping = await world.begin(world.first, "plain")
    world.first.stop()
    await world.machine.pass_time(LEASE_S)
    assert (await world.ask(world.second, "plain")).code is Code.OUTCOME_UNKNOWN
    world.first.wake()
    await world.machine.quiet()
    assert (await sleeping).status is Status.UNKNOWN
    assert (await world.ask(world.second, "plain")).code is Code.OUTCOME_UNKNOWN
    assert world.effects == 1


@requirement("IDM-4", "IDM-5")
async def test_a_probe_that_sees_nothing_frees_nothing_while_a_stopped_worker_may_wake(world: World) -> None:
    _ = await world.begin(world.first, "probed")
    world.first.stop()
    await world.machine.pass_time(LEASE_S)
    await world.second.gateway.tidy()
    assert (await world.ask(world.second, "probed")).code is Code.OUTCOME_UNKNOWN
    world.first.wake()
    await world.machine.quiet()
    await world.second.gateway.tidy()
    assert (await world.ask(world.second, "probed")).status is Status.DONE
    assert world.effects == 1


@requirement("IDM-5")
async def test_a_probe_that_sees_nothing_frees_the_key_of_a_dead_worker(world: World) -> None:
    _ = await world.begin(world.first, "probed")
    world.first.kill()
    assert (await world.ask(world.second, "probed")).code is Code.OUTCOME_UNKNOWN
    await world.machine.pass_time(LEASE_S)
    again = await world.begin(world.second, "probed")
    await world.tell("answer")
    assert (await again).status is Status.DONE
    assert world.effects == 1


@requirement("IDM-4")
async def test_a_claim_is_refused_whose_key_became_unknown_after_the_caller_looked(world: World) -> None:
    world.second.stop()
    looked = await world.begin(world.second, "plain")  # past every other gate, not yet at the ledger
    first = await world.begin(world.first, "plain")
    await world.tell("act")
    await world.tell("break off")
    assert (await first).code is Code.OUTCOME_UNKNOWN
    world.second.wake()
    await world.machine.quiet()
    assert (await looked).code is Code.OUTCOME_UNKNOWN
    assert world.effects == 1


@requirement("IDM-4", "IDM-5")
async def test_a_late_result_of_an_old_claim_cannot_overwrite_a_newer_one(world: World) -> None:
    """A person was wrong: the old attempt acts after all. The key's newer operation keeps its own outcome."""
    sleeping = await world.begin(world.first, "plain")
    world.first.stop()
    await world.machine.pass_time(LEASE_S)
    unknown = await world.ask(world.second, "plain")
    person = world.second.gateway.identity.at_terminal()
    await world.second.gateway.settle(person, unknown.call_id, "no-effect", "not there yet")
    again = await world.begin(world.second, "plain")
    await world.tell("answer")
    done = await again
    world.first.wake()
    await world.machine.quiet()
    replay = await world.ask(world.second, "plain")
    assert (replay.status, replay.data, replay.replayed) == (Status.DONE, done.data, True)
    assert (await sleeping).status is Status.DONE  # it is told what the ledger knows, not what it believes


@requirement("IDM-8")
@pytest.mark.parametrize("jump_s", [YEAR_S, -YEAR_S])
async def test_a_jump_of_the_wall_clock_neither_ends_a_lease_nor_reopens_a_window(
    world: World, jump_s: float
) -> None:
    running = await world.begin(world.first, "plain")
    world.machine.clock.jump(jump_s)
    assert await world.second.gateway.tidy(forget=True) == 0
    duplicate = await world.begin(world.second, "plain")
    assert not duplicate.done()  # it waits for the first: the claim is as good as before
    await world.tell("answer")
    await world.machine.pass_time(0.2)  # another process's outcome is looked for now and then
    assert (await running).status is (await duplicate).status is Status.DONE
    world.machine.clock.jump(jump_s)
    await world.second.gateway.tidy(forget=True)
    assert (await world.ask(world.second, "plain")).replayed
    assert world.effects == 1


@requirement("IDM-8", "IDM-5")
async def test_what_ran_when_the_machine_was_restarted_is_unknown_until_its_probe_is_asked(
    world: World,
) -> None:
    _ = await world.begin(world.first, "probed")
    _ = await world.begin(world.first, "plain")
    world.first.kill()
    world.second.kill()
    world.machine.boot.id = "boot-2"
    after = await world.machine.start_worker()
    await after.gateway.tidy()
    assert (await world.ask(after, "plain")).code is Code.OUTCOME_UNKNOWN
    again = await world.begin(after, "probed")
    await world.tell("answer")
    assert (await again).status is Status.DONE
    assert world.effects == 1
