"""Does anything happen twice, or end early, because processes do not agree what time it is?"""

import asyncio
import sys
from itertools import cycle
from pathlib import Path

import pytest

from tests.faults.faketime import HOUR_S
from tests.faults.skewed import JUMPERS, PATIENCE_MS, PATIENCE_S, POLL_S, SKEWS, Skewed, skewed
from tests.requirements import requirement
from tests.soak import effects
from tests.stored import DURABLE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libfaketime's wheel is for Linux")

JUMP_S = 25 * HOUR_S
KEYS = 100
"""In the long form: several rounds of every process's sweeper."""


async def begun(name: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await effects.seen(f"begun.{name}"):  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)  # it begins in another process


async def deliver(world: Skewed, keys: int) -> None:
    """Every key to every process at once, and once more later; nobody's clock matters."""
    tools = cycle(("plain", "probed"))
    for number in range(keys):
        tool, key = next(tools), f"key-{number}"
        told = await world.everywhere(tool, key, task=key)
        again = await world.everywhere(tool, key, task=key)
        assert {answer["status"] for answer in (*told.values(), *again.values())} == {"done"}, told
        assert len({str(answer["data"]) for answer in (*told.values(), *again.values())}) == 1
        assert all(answer["replayed"] for answer in again.values())
    happened = world.effects.counts()
    assert [happened[f"key-{number}"] for number in range(keys)] == [1] * keys


async def hold_on(world: Skewed, at: str, name: str) -> None:
    """A call runs at one process while its clock jumps by 25 hours and back: its claim holds everywhere."""
    running = asyncio.create_task(world.call(at, "slow", name, task=name))
    await begun(name)
    for ahead_s in (JUMP_S, -JUMP_S, 0.0):
        world.clocks[at].set(ahead_s)
        for other in world.servers:
            told = await world.call(other, "slow", name, task=name, deadline_ms=PATIENCE_MS)
            assert told["code"] == "KEY_IN_USE", told
    await effects.happen(f"go.{name}")
    assert (await running)["status"] == "done"
    told = await world.everywhere("slow", name, task=name)
    assert {(answer["status"], answer["replayed"]) for answer in told.values()} == {("done", True)}
    assert world.effects.counts()[name] == 1


async def ask_people(world: Skewed, at: str) -> None:
    """A question asked at one process is open at every other, and what is said to it holds everywhere."""
    key = f"asked-{at}"
    held = await world.call(at, "asked", key, task=key)
    assert held["status"] == "held"
    for other in world.servers:
        assert (await world.call(other, "asked", key, task=key))["status"] == "held", other
        found = await world.ask(other, "GET", f"/v1/approvals/{held['approval']['id']}")
        assert (found["answer"], found["level"]) == ("PENDING", 0), other
    answered = await world.approve("tomorrow", held["approval"]["id"])
    assert answered["answer"] == "APPROVED"
    told = await world.everywhere("asked", key, task=key, approval_token=answered["token"])
    assert {answer["status"] for answer in told.values()} == {"done"}, told
    assert world.effects.counts()[key] == 1


async def plan(world: Skewed, at: str) -> None:
    """What was foreseen at one process may run at every other."""
    key = f"plan-{at}"
    plan = (await world.call(at, "plain", key, task=key, preview=True))["preview"]["plan_token"]
    for other in world.servers:
        told = await world.done(other, "plain", f"{key}-{other}", task=f"{key}-{other}", plan_token=plan)
        assert told["status"] == "done", told


async def use_up(world: Skewed, at: str) -> None:
    """What is used up at one process is used up at every other."""
    for number in range(2):
        assert (await world.done(at, "seldom", f"r-{number}", task="r"))["status"] == "done"
    told = {other: await world.call(other, "seldom", f"r-{other}", task="r") for other in world.servers}
    assert {other: answer.get("code") for other, answer in told.items()} == dict.fromkeys(
        told, "RATE_LIMITED"
    )
    for number in range(3):
        assert (await world.done(at, "plain", f"b-{number}", task="b"))["status"] == "done"
    told = {other: await world.call(other, "plain", f"b-{other}", task="b") for other in world.servers}
    codes = {other: answer.get("code") for other, answer in told.items()}
    assert codes == dict.fromkeys(told, "BUDGET_EXHAUSTED")


@requirement("IDM-8", "IDM-4", "IDM-6", "APR-3", "APR-6", "POL-4", "POL-5")
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
async def test_nothing_happens_twice_and_nothing_ends_early_where_clocks_disagree(
    kind: str, tmp_path: Path
) -> None:
    async with skewed(kind, tmp_path) as world:
        await deliver(world, 4)
        await hold_on(world, "now", "slow-1")
        await world.start("tomorrow", JUMP_S)  # it sweeps, and forgets what is over, before it takes calls
        await replayed(world, "key-0")
        for at in ("early", "late"):
            await ask_people(world, at)
            await plan(world, at)
        await use_up(world, "late")


@pytest.mark.soak
@requirement("IDM-8", "IDM-4", "IDM-6", "APR-3", "APR-6", "POL-4", "POL-5")
@pytest.mark.parametrize("kind", DURABLE)
@pytest.mark.parametrize("first", ["early", "now", "late"])
async def test_no_clock_counts_whoever_comes_first_and_however_they_jump(
    kind: str, first: str, tmp_path: Path
) -> None:
    async with skewed(kind, tmp_path, {first: SKEWS[first]}) as world:
        for name in SKEWS.keys() - {first}:
            await world.start(name, SKEWS[name])
        await world.start("tomorrow", JUMP_S)
        questions = [await world.call(at, "asked", f"open-{at}", task=f"open-{at}") for at in world.servers]
        await asyncio.gather(deliver(world, KEYS), *(hold_on(world, at, f"slow-{at}") for at in JUMPERS))
        for at in world.servers:
            await ask_people(world, at)
            await plan(world, at)
        await use_up(world, "early")
        for asked in questions:
            found = await world.ask("late", "GET", f"/v1/approvals/{asked['approval']['id']}")
            assert found["answer"] == "PENDING"
        for number in range(0, KEYS, 10):
            await replayed(world, f"key-{number}")


async def replayed(world: Skewed, key: str) -> None:
    told = await world.everywhere("plain", key, task=key)
    assert {(answer["status"], answer["replayed"]) for answer in told.values()} == {("done", True)}, told
    assert world.effects.counts()[key] == 1
