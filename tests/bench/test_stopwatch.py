"""Is every moment charged to the part that was under way, and to no other?"""

import asyncio

import pytest

from bench.parts import Looked, parted
from bench.stopwatch import CALL, REST, STEP, TASK, Cost, Part, Stopwatch, calibrate


async def test_a_part_is_counted_once_per_call_and_again_for_every_step() -> None:
    watch = Stopwatch()

    async def waits() -> str:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "done"

    assert await watch.around("waits", waits)() == "done"
    part = watch.parts["waits"]
    assert part.calls == 1
    assert (part.inner[TASK], part.inner[STEP]) == (1, 2)
    assert watch.parts[REST].outer == part.inner


async def test_what_others_do_while_a_part_waits_is_not_charged_to_it() -> None:
    watch = Stopwatch()
    turn = asyncio.Event()
    seen: list[str] = []

    async def waits() -> None:
        await turn.wait()

    def works() -> None:
        seen.append(watch.part.name)

    waiting = asyncio.create_task(watch.around("waits", waits)())
    await asyncio.sleep(0)
    works()
    watch.around("works", works)()
    works()
    turn.set()
    await waiting
    assert seen == [REST, "works", REST]


def test_a_part_inside_a_part_is_charged_alone() -> None:
    watch = Stopwatch()
    seen: list[str] = []
    inner = watch.around("inner", lambda: seen.append(watch.part.name))

    def outer() -> None:
        inner()
        seen.append(watch.part.name)

    watch.around("outer", outer)()
    assert seen == ["inner", "outer"]
    assert watch.parts["outer"].outer[CALL] == 1


async def test_a_failure_goes_through_a_watched_part_and_ends_it() -> None:
    watch = Stopwatch()

    async def breaks() -> None:
        await asyncio.sleep(0)
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        await watch.around("breaks", breaks)()
    assert watch.part.name == REST


async def test_a_watched_part_can_be_cancelled_while_it_waits() -> None:
    watch = Stopwatch()
    cleaned: list[bool] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    task = asyncio.create_task(watch.around("waits", waits)())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == [True]
    assert watch.part.name == REST


def test_what_looking_costs_is_told_for_both_sides() -> None:
    watch = Stopwatch()
    part = watch.parts["part"] = Part("part")
    part.inner[CALL] = watch.part.outer[CALL] = 3
    free = Cost(0.0, 0.0)
    assert watch.looking((Cost(100.0, 200.0), free, free)) == {"part": 300.0, REST: 600.0}


async def test_who_looks_twice_looks_twice_as_often_and_changes_nothing() -> None:
    watch = Stopwatch(twice=True)

    async def waits() -> str:
        await asyncio.sleep(0)
        return "done"

    assert await watch.around("waits", waits)() == "done"
    assert watch.around("calls", lambda: 7)() == 7
    waiting, calling = watch.parts["waits"], watch.parts["calls"]
    assert (waiting.calls, waiting.inner[TASK], waiting.inner[STEP]) == (2, 2, 2)
    assert (calling.calls, calling.inner[CALL]) == (2, 2)
    assert watch.part.name == REST


def test_a_look_costs_what_looking_twice_takes_more_than_looking_once() -> None:
    once, twice = Looked(), Looked()
    once.spent.update({"run": 100.0, "claim": 50.0})
    once.looking.update({"run": 6.0, "claim": 4.0})
    once.apart.update({"store": 30.0})
    twice.spent.update({"run": 112.0, "claim": 58.0})  # 20 more where 10 were thought of
    assert parted(once, twice) == {"run": 88.0, "claim": 42.0, "store": 30.0}
    twice.spent = once.spent.copy()  # by chance: a look costs no less than where nothing else is done
    assert parted(once, twice) == {"run": 94.0, "claim": 46.0, "store": 30.0}


def test_a_calibration_knows_every_kind_of_look() -> None:
    costs = calibrate(times=50, rounds=3)
    assert len(costs) == 3
    assert all(cost.inner >= 0 and cost.outer >= 0 for cost in costs)
    assert costs[TASK].inner > 0
