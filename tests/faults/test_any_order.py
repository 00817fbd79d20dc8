"""Can any order of duplicates, kills, stops, lost answers and settlements yield a second effect?

A model stands beside the gateway: it knows what has really happened and what each caller was told.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast import HoldfastError, Observation, Status
from holdfast.model import defaults
from tests.faults.machine import Machine, Worker
from tests.faults.stage import TOOLS, Scene, Stage
from tests.requirements import requirement

T = TypeVar("T")

KEYS = ("a", "b")
ANY = st.integers(min_value=0, max_value=7)
"""Chooses among however many there are."""
LIVES = 5
"""Workers in one story: starting one takes longer than all the rest."""
WAIT_S = 60
LONG_S = 2 * defaults.LEASE_MIN_S


class AnyOrder(RuleBasedStateMachine):
    kind: ClassVar[str] = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = TemporaryDirectory()
        self.stage = Stage()
        self.asked: dict[asyncio.Task[Observation], str] = {}
        self.told_done: set[str] = set()
        self.workers: list[Worker] = []
        self.run(self._open())

    async def _open(self) -> None:
        self.machine = Machine(self.kind, Path(self.folder.name), self.stage.tools)
        await self.machine.open()
        self.workers = [await self.machine.start_worker() for _ in range(2)]

    def run(self, step: Coroutine[Any, Any, T]) -> T:
        async def quietly() -> T:
            result = await step
            await self.machine.quiet()
            return result

        result = self.runner.run(quietly())
        self._listen()
        return result

    def _listen(self) -> None:
        for task in [task for task in self.asked if task.done()]:
            key = self.asked.pop(task)
            if not task.cancelled() and task.result().status is Status.DONE:
                self.told_done.add(key)

    @property
    def awake(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.running]

    @property
    def scenes(self) -> list[Scene]:
        return [scene for scene in self.stage.scenes if scene.listens]

    # -- what callers do ---------------------------------------------------------

    @precondition(lambda self: self.awake)
    @rule(worker=ANY, tool=st.sampled_from(TOOLS), key=st.sampled_from(KEYS))
    def deliver(self, worker: int, tool: str, key: str) -> None:
        self.run(self._deliver(self.awake[worker % len(self.awake)], tool, key))

    async def _deliver(self, worker: Worker, tool: str, key: str) -> None:
        name = f"{tool}-{key}"
        task = asyncio.create_task(worker.gateway.call(f"faults.{tool}", {}, key=name))
        self.asked[task] = name

    @precondition(lambda self: self.asked)
    @rule(one=ANY)
    def lose_the_answer(self, one: int) -> None:
        async def hang_up() -> None:
            list(self.asked)[one % len(self.asked)].cancel()

        self.run(hang_up())

    # -- what tools do -----------------------------------------------------------

    @precondition(lambda self: self.scenes)
    @rule(scene=ANY, order=st.sampled_from(("act", "answer", "break off", "prove that nothing happened")))
    def play(self, scene: int, order: str) -> None:
        async def tell() -> None:
            self.scenes[scene % len(self.scenes)].orders.put_nowait(order)

        self.run(tell())

    # -- what happens to workers -------------------------------------------------

    @precondition(lambda self: len(self.machine.lives) < LIVES)
    @rule(worker=ANY)
    def kill(self, worker: int) -> None:
        self.run(self._replace(self.workers.pop(worker % len(self.workers))))

    async def _replace(self, worker: Worker) -> None:
        worker.kill()
        self.workers.append(await self.machine.start_worker())

    @precondition(lambda self: self.awake)
    @rule(worker=ANY)
    def stop(self, worker: int) -> None:
        self.awake[worker % len(self.awake)].stop()

    @precondition(lambda self: self.scenes and len(self.awake) > 1)
    @rule(scene=ANY)
    def stop_one_in_the_middle_for_longer_than_its_lease(self, scene: int) -> None:
        self.scenes[scene % len(self.scenes)].life.going_on.clear()
        self.run(self.machine.pass_time(LONG_S))

    @precondition(lambda self: len(self.awake) < len(self.workers))
    @rule()
    def wake(self) -> None:
        async def everybody() -> None:
            for worker in self.workers:
                worker.wake()

        self.run(everybody())

    # -- what time and people do -------------------------------------------------

    @rule(seconds=st.sampled_from((0.5, 2.5, 4.0, LONG_S)))
    def pass_time(self, seconds: float) -> None:
        self.run(self.machine.pass_time(seconds))

    @rule(seconds=st.sampled_from((-1e7, 1e7)))
    def set_the_clock(self, seconds: float) -> None:
        self.machine.clock.jump(seconds)

    @precondition(lambda self: self.awake)
    @rule(worker=ANY, forget=st.booleans())
    def sweep(self, worker: int, forget: bool) -> None:
        self.run(self.awake[worker % len(self.awake)].gateway.tidy(forget=forget))

    @precondition(lambda self: self.awake and not self.asked)
    @rule(tool=st.sampled_from(TOOLS), key=st.sampled_from(KEYS))
    def settle_by_hand(self, tool: str, key: str) -> None:
        """A careful person: looks at the register, and says nothing while something may still act."""
        name = f"{tool}-{key}"
        if self.stage.effects[name] or not self.stage.may_still_act(name):
            self.run(self._settle(self.awake[0], tool, name))

    async def _settle(self, worker: Worker, tool: str, name: str) -> None:
        seen = await worker.gateway.call(f"faults.{tool}", {}, key=name, preview=True)
        outcome: Literal["committed", "no-effect"] = "committed" if self.stage.effects[name] else "no-effect"
        person = worker.gateway.identity.at_terminal()
        with suppress(HoldfastError):  # nothing there, or nothing unknown about it
            await worker.gateway.settle(person, seen.call_id, outcome, "looked")

    # -- what must hold ----------------------------------------------------------

    @invariant()
    def no_effect_happens_twice(self) -> None:
        assert all(count <= 1 for count in self.stage.effects.values()), self.stage.effects

    @invariant()
    def whoever_was_told_done_has_its_effect(self) -> None:
        assert all(self.stage.effects[name] == 1 for name in self.told_done), self.told_done

    def teardown(self) -> None:
        try:
            self.run(self._everybody_dies_and_one_comes_back())
            self.no_effect_happens_twice()
            self.whoever_was_told_done_has_its_effect()
        finally:
            self.runner.run(self.machine.close())
            self.runner.close()
            self.folder.cleanup()

    async def _everybody_dies_and_one_comes_back(self) -> None:
        for worker in self.workers:
            worker.kill()
        survivor = await self.machine.start_worker()
        await self.machine.pass_time(LONG_S)
        await survivor.gateway.tidy()
        for tool in TOOLS:
            for key in KEYS:
                await self._is_settled(survivor, tool, f"{tool}-{key}")

    async def _is_settled(self, survivor: Worker, tool: str, name: str) -> None:
        """With a probe the truth is known: it is done, or it runs now. Without, it may stay unknown."""
        happened = self.stage.effects[name]
        answer = asyncio.create_task(survivor.gateway.call(f"faults.{tool}", {}, key=name))
        runs = asyncio.create_task(self.stage.waiting())
        async with asyncio.timeout(WAIT_S):
            await asyncio.wait((answer, runs), return_when=asyncio.FIRST_COMPLETED)
            if runs.done():
                assert not happened, f"{name} runs again"
                runs.result().orders.put_nowait("answer")
            status = (await answer).status
        runs.cancel()
        assert status in ({Status.DONE} if tool == "probed" else {Status.DONE, Status.UNKNOWN}), await answer


class AnyOrderOnDisk(AnyOrder):
    kind = "sqlite"


class AnyOrderOnPostgres(AnyOrder):
    kind = "postgres"


@requirement("IDM-4", "IDM-5", "IDM-8", "EXE-1")
def test_no_order_of_events_yields_a_second_effect_in_memory() -> None:
    run_state_machine_as_test(AnyOrder, settings=settings(max_examples=30, stateful_step_count=40))


@requirement("IDM-4", "IDM-5", "IDM-8", "PPL-6")
def test_no_order_of_events_yields_a_second_effect_on_disk() -> None:
    run_state_machine_as_test(AnyOrderOnDisk, settings=settings(max_examples=8, stateful_step_count=25))


@requirement("IDM-4", "IDM-5", "IDM-8", "PPL-6")
def test_no_order_of_events_yields_a_second_effect_on_postgres() -> None:
    run_state_machine_as_test(AnyOrderOnPostgres, settings=settings(max_examples=5, stateful_step_count=25))
