"""What is told about a write whose outcome got lost: unknown, never failed, until evidence settles it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from holdfast import Code, Gateway, Observation, Status, testing
from holdfast.testing import ManualClock, settle_loop
from tests.faults.machine import Machine, machine
from tests.faults.wayward import DEADLINE_S, SETTLE_AFTER_S, Register
from tests.requirements import requirement
from tests.stored import DURABLE

BREAKS = (
    "raise",
    "exit",
    "cancel itself",
    "answer with the wrong type",
    "answer with something that is not JSON",
    "answer with a number no JSON reader takes",
)
KINDS = ("async", "sync")


class World:
    """One gateway, the register it writes to, and the time."""

    def __init__(self, gateway: Gateway, register: Register, around: Machine) -> None:
        self.gateway = gateway
        self.register = register
        self.machine = around

    async def call(self, tool: str, way: str, key: str = "k") -> Observation:
        return await self.gateway.call(f"faults.{tool}", {"way": way}, key=key)

    async def call_past_its_deadline(self, tool: str, way: str) -> Observation:
        running = asyncio.create_task(self.call(tool, way))
        await self.register.acted.wait()
        await self.machine.clock.advance(DEADLINE_S)
        await self.machine.clock.advance(1.0)  # and the grace to stop in
        return await running

    async def until_settled(self, call_id: str) -> Observation:
        """The call once it is no longer unknown; a late answer comes from a thread nobody waits for."""
        async with asyncio.timeout(30):
            while True:
                seen = await self.gateway.find(self.gateway.identity.at_terminal(), call_id)
                if seen is not None and seen.status is not Status.UNKNOWN:
                    return seen
                await asyncio.sleep(0)


@pytest_asyncio.fixture(params=DURABLE)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    register = Register()
    async with machine(request.param, tmp_path, lambda _: register.tools()) as around:
        worker = await around.start_worker()
        try:
            yield World(worker.gateway, register, around)
        finally:
            register.released.set()
            await worker.gateway.close()


def lost(seen: Observation) -> bool:
    remedy = seen.remedy
    return (
        seen.status is Status.UNKNOWN
        and seen.code is Code.OUTCOME_UNKNOWN
        and seen.http_status == 504
        and not remedy.retryable
        and seen.data is None
        and f"holdfast settle {seen.call_id}" in (seen.message or "")
    )


@requirement("IDM-5", "EXE-1")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", BREAKS)
async def test_a_write_that_acts_and_breaks_is_unknown_and_never_runs_again(
    world: World, kind: str, way: str
) -> None:
    first = await world.call(f"plain_{kind}", way)
    again = await world.call(f"plain_{kind}", way)
    assert lost(first)
    assert lost(again)
    assert again.replayed
    assert world.register.effects["k"] == 1


@requirement("IDM-5")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", BREAKS)
async def test_a_probe_that_sees_the_effect_settles_it_at_once(world: World, kind: str, way: str) -> None:
    first = await world.call(f"probed_{kind}", way)
    again = await world.call(f"probed_{kind}", way)
    assert first.status is Status.DONE
    assert first.data == {"line": 1}
    assert first.warnings == ("the answer was lost; a probe saw that the effect happened",)
    assert (again.status, again.data, again.replayed) == (Status.DONE, {"line": 1}, True)
    assert world.register.effects["k"] == 1


@requirement("IDM-5", "EXE-1")
async def test_a_write_that_hangs_is_cancelled_at_its_deadline_and_unknown(world: World) -> None:
    seen = await world.call_past_its_deadline("plain_async", "hang")
    assert lost(seen)
    assert lost(await world.call("plain_async", "hang"))
    assert world.register.effects["k"] == 1


@requirement("IDM-5", "EXE-1")
async def test_the_sweep_settles_by_its_probe_what_hung_past_its_deadline(world: World) -> None:
    seen = await world.call_past_its_deadline("probed_async", "hang")
    assert seen.status is Status.UNKNOWN
    await world.gateway.tidy()
    again = await world.call("probed_async", "hang")
    assert (again.status, again.data, again.replayed) == (Status.DONE, {"line": 1}, True)
    assert world.register.effects["k"] == 1


@requirement("IDM-5")
async def test_a_probe_that_sees_nothing_frees_the_key_only_after_deadline_and_settling_time(
    world: World,
) -> None:
    first = await world.call("probed_async", "raise before acting")
    early = await world.call("probed_async", "raise before acting")
    assert first.status is early.status is Status.UNKNOWN
    await world.machine.pass_time(DEADLINE_S + SETTLE_AFTER_S)
    assert await world.gateway.tidy() == 1
    second = await world.call("probed_async", "raise before acting")
    assert second.status is Status.UNKNOWN
    assert not second.replayed  # it ran again, and went wrong again


@requirement("IDM-5", "PPL-4")
async def test_a_person_who_says_committed_makes_every_retry_a_replay(world: World) -> None:
    lost_call = await world.call("plain_async", "raise")
    person = world.gateway.identity.at_terminal()
    settled = await world.gateway.settle(person, lost_call.call_id, "committed", "line 1 is there")
    again = await world.call("plain_async", "raise")
    assert settled.status is again.status is Status.DONE
    assert again.replayed
    assert "line 1 is there" in again.warnings[0]
    assert world.register.effects["k"] == 1


@requirement("IDM-5", "PPL-4")
async def test_a_person_who_says_no_effect_frees_the_key(world: World) -> None:
    lost_call = await world.call("plain_async", "raise before acting")
    person = world.gateway.identity.at_terminal()
    await world.gateway.settle(person, lost_call.call_id, "no-effect", "the register is empty")
    again = await world.call("plain_async", "raise before acting")
    assert not again.replayed
    assert again.call_id == lost_call.call_id


@requirement("IDM-5")
async def test_a_tool_that_proves_it_did_nothing_fails_and_frees_the_key(world: World) -> None:
    first = await world.call("plain_async", "no effect")
    again = await world.call("plain_async", "no effect")
    assert first.status is again.status is Status.FAILED
    assert first.code is Code.SEMANTIC_INVALIDITY
    assert not again.replayed
    assert world.register.effects["k"] == 0


@requirement("EXE-1", "IDM-5")
@pytest.mark.parametrize(("tool", "way"), [("plain_sync", "hang"), ("plain_async", "ignore the deadline")])
async def test_work_that_cannot_be_stopped_answers_unknown_and_settles_the_claim_when_it_ends(
    world: World, tool: str, way: str
) -> None:
    seen = await world.call_past_its_deadline(tool, way)
    assert lost(seen)
    assert lost(await world.call(tool, way))
    world.register.released.set()
    late = await world.until_settled(seen.call_id)
    again = await world.call(tool, way)
    assert late.status is again.status is Status.DONE
    assert again.data == {"line": 1}
    assert again.replayed
    assert world.register.effects["k"] == 1


@requirement("EXE-1")
async def test_a_thread_past_its_deadline_keeps_its_slot_until_it_ends() -> None:
    clock, register = ManualClock(), Register()
    tools = register.tools()
    async with testing.gateway(*tools, namespace="faults", clock=clock, concurrency=1) as gateway:
        running = asyncio.create_task(gateway.call("faults.plain_sync", {"way": "hang"}, key="k"))
        await register.acted.wait()
        await clock.advance(DEADLINE_S)
        await clock.advance(1.0)
        assert lost(await running)
        waiting = asyncio.create_task(gateway.call("faults.plain_sync", {"way": "well"}, key="other"))
        await settle_loop()
        await clock.advance(DEADLINE_S)
        turned_away = await waiting
        assert (turned_away.status, turned_away.code) == (Status.FAILED, Code.TIMEOUT)
        assert register.effects["other"] == 0
        register.released.set()
        assert (await gateway.call("faults.plain_sync", {"way": "well"}, key="other")).status is Status.DONE


@requirement("EXE-1", "IDM-5")
async def test_a_late_proof_of_no_effect_frees_the_key(world: World) -> None:
    seen = await world.call_past_its_deadline("plain_sync", "hang, then no effect")
    world.register.released.set()
    late = await world.until_settled(seen.call_id)
    again = await world.call("plain_sync", "hang, then no effect")
    assert late.status is again.status is Status.FAILED
    assert not again.replayed


@requirement("IDM-5")
async def test_a_late_exception_leaves_it_unknown(world: World) -> None:
    seen = await world.call_past_its_deadline("plain_sync", "hang, then raise")
    world.register.released.set()
    await world.gateway.close()  # waits for late answers
    found = await world.gateway.find(world.gateway.identity.at_terminal(), seen.call_id)
    assert found is not None
    assert lost(found)


@requirement("IDM-5")
async def test_a_negative_probe_frees_nothing_while_the_work_may_still_act(world: World) -> None:
    seen = await world.call_past_its_deadline("probed_sync", "hang, then no effect")
    await world.machine.pass_time(DEADLINE_S + SETTLE_AFTER_S)
    await world.gateway.tidy()
    found = await world.gateway.find(world.gateway.identity.at_terminal(), seen.call_id)
    assert found is not None
    assert found.status is Status.UNKNOWN


@requirement("EXE-1", "IDM-4")
async def test_a_caller_that_goes_away_does_not_stop_a_dispatched_write(world: World) -> None:
    waiting = asyncio.create_task(world.call("plain_sync", "hang"))
    await world.register.acted.wait()
    waiting.cancel()
    await asyncio.wait((waiting,))
    world.register.released.set()
    again = await world.call("plain_sync", "hang")
    assert (again.status, again.data, again.replayed) == (Status.DONE, {"line": 1}, True)
    assert world.register.effects["k"] == 1
