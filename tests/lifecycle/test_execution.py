"""Does running a tool respect deadlines, retries, breakers, caches and bulkheads?"""

import asyncio
import threading
from typing import Any

import pytest

from holdfast import Code, Effect, Status, tool
from holdfast.execution.retry import pause
from holdfast.model import defaults
from holdfast.testing import ManualClock, settle_loop
from tests.lifecycle.conftest import Open
from tests.lifecycle.world import ANA, WRITE, World
from tests.requirements import requirement


async def passing(call: "asyncio.Task[Any]", clock: ManualClock) -> Any:
    """Let time pass until the call is answered."""
    await clock.drive(call)
    return await call


@requirement("EXE-1")
async def test_a_read_that_takes_too_long_is_cancelled_and_times_out(open_gateway: Open) -> None:
    ended: list[str] = []

    @tool(effect=Effect.READ_ONLY, timeout_ms=400, max_retries=0)
    async def slow(thing: str) -> str:
        """Never answers."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return thing

    clock = ManualClock()
    async with open_gateway([slow], clock=clock) as gateway:
        call = asyncio.create_task(gateway.call("test.slow", {"thing": "a"}, principal=ANA))
        answer = await passing(call, clock)
    assert (answer.status, answer.code) == (Status.FAILED, Code.TIMEOUT)
    assert answer.remedy.retryable
    assert ended == ["cancelled"]


@requirement("EXE-1")
async def test_the_callers_deadline_narrows_the_tools(open_gateway: Open, world: World) -> None:
    world.mood, clock = "hang", ManualClock()
    async with open_gateway(world, clock=clock) as gateway:
        call = asyncio.create_task(
            gateway.call("test.touch", {"thing": "a"}, key="k", deadline_ms=100, principal=ANA)
        )
        await world.entered.wait()
        await clock.advance(0.05)
        assert not call.done()
        answer = await passing(call, clock)
    assert answer.code is Code.OUTCOME_UNKNOWN
    assert clock.monotonic() < 1


@requirement("EXE-1", "IDM-5")
async def test_a_synchronous_write_past_its_deadline_is_unknown_until_its_late_answer_settles_it(
    open_gateway: Open,
) -> None:
    go, started = threading.Event(), threading.Event()

    @tool(**WRITE, timeout_ms=100)
    def stubborn(thing: str) -> str:
        """Cannot be stopped."""
        started.set()
        go.wait(30)
        return thing

    clock = ManualClock()
    async with open_gateway([stubborn], clock=clock) as gateway:
        call = asyncio.create_task(gateway.call("test.stubborn", {"thing": "a"}, key="k", principal=ANA))
        await asyncio.to_thread(started.wait, 30)
        answer = await passing(call, clock)
        slots = gateway._runtime.bulkhead("test")
        kept = slots._value
        go.set()
        late = list(gateway._runtime.late)
        await asyncio.wait(late)
        again = await gateway.call("test.stubborn", {"thing": "a"}, key="k", principal=ANA)
    assert (answer.status, answer.code) == (Status.UNKNOWN, Code.OUTCOME_UNKNOWN)
    assert kept == defaults.UPSTREAM_CONCURRENCY - 1
    assert again.replayed
    assert (again.status, again.data) == (Status.DONE, "a")


@requirement("EXE-2")
async def test_a_read_is_tried_again_while_its_upstream_cannot_be_reached(open_gateway: Open) -> None:
    tries: list[float] = []
    clock = ManualClock()

    @tool(effect=Effect.READ_ONLY)
    async def flaky(thing: str) -> str:
        """Fails twice."""
        tries.append(clock.monotonic())
        if len(tries) < 3:
            raise ConnectionError("no route")
        return thing

    async with open_gateway([flaky], clock=clock) as gateway:
        call = asyncio.create_task(gateway.call("test.flaky", {"thing": "a"}, principal=ANA))
        answer = await passing(call, clock)
    assert (answer.status, answer.attempts) == (Status.DONE, 3)
    assert 0.15 <= tries[1] - tries[0] <= 0.26
    assert 0.30 <= tries[2] - tries[1] <= 0.51


@requirement("EXE-2")
async def test_a_write_whose_upstream_knows_no_keys_is_never_tried_twice(
    open_gateway: Open, world: World
) -> None:
    world.mood = "raise"
    async with open_gateway(world) as gateway:
        answer = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        again = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
    assert answer.status is Status.UNKNOWN
    assert again.status is Status.UNKNOWN
    assert again.replayed
    assert world.touched == {"a": 1}


@requirement("EXE-2", "FIG-1")
def test_waits_between_tries_double_are_capped_and_jittered_and_honour_retry_after() -> None:
    assert [pause(n, None, 0.5) for n in (1, 2, 3)] == [0.2, 0.4, 0.8]
    assert pause(20, None, 0.5) == 10.0
    assert pause(1, None, 0.0) == pytest.approx(0.15)
    assert pause(1, None, 1.0) == pytest.approx(0.25)
    assert pause(1, 3_000, 0.5) == 3.0


@requirement("EXE-3", "FIG-1")
async def test_a_tool_that_fails_five_times_rests_and_is_tried_once_after_thirty_seconds(
    open_gateway: Open,
) -> None:
    asked: list[str] = []
    sick = [True]

    @tool(effect=Effect.READ_ONLY, max_retries=0)
    async def ill(thing: str) -> str:
        """Fails while it is ill."""
        asked.append(thing)
        if sick[0]:
            raise ConnectionError("down")
        return thing

    clock = ManualClock()
    async with open_gateway([ill], clock=clock) as gateway:

        async def ask() -> Any:
            return await gateway.call("test.ill", {"thing": "a"}, principal=ANA)

        for _ in range(5):
            assert (await ask()).code is Code.DEPENDENCY_UNAVAILABLE
        resting = await ask()
        assert len(asked) == 5
        assert resting.remedy.retry_after_ms
        await clock.advance(30)
        assert (await ask()).code is Code.DEPENDENCY_UNAVAILABLE
        assert len(asked) == 6
        sick[0] = False
        assert (await ask()).attempts == 0
        await clock.advance(30)
        assert (await ask()).status is Status.DONE
        assert (await ask()).status is Status.DONE
    assert len(asked) == 8


@requirement("EXE-5")
async def test_a_read_with_a_time_to_live_is_answered_from_memory_and_never_stale(open_gateway: Open) -> None:
    asked: list[str] = []

    @tool(effect=Effect.READ_ONLY, cache_ttl_s=60)
    async def rate(currency: str) -> int:
        """An exchange rate."""
        asked.append(currency)
        return len(asked)

    clock = ManualClock()
    other = ANA.__class__(tenant="acme", user="ana", agent="bot", scopes=ANA.scopes)
    async with open_gateway([rate], clock=clock) as gateway:
        live = await gateway.call("test.rate", {"currency": "EUR"}, principal=ANA)
        cached = await gateway.call("test.rate", {"currency": "EUR"}, principal=ANA)
        tenant = await gateway.call("test.rate", {"currency": "EUR"}, principal=other)
        await clock.advance(60)
        fresh = await gateway.call("test.rate", {"currency": "EUR"}, principal=ANA)
    assert (live.data, cached.data, tenant.data, fresh.data) == (1, 1, 2, 3)
    assert cached.provenance is not None
    assert live.provenance is not None
    assert (live.provenance.freshness, cached.provenance.freshness) == ("live", "cached")
    assert cached.provenance.retrieved_at == live.provenance.retrieved_at


@requirement("EXE-9")
async def test_an_upstream_is_never_given_more_than_its_bulkhead_holds(
    open_gateway: Open, world: World
) -> None:
    running, most = [0], [0]
    gate = asyncio.Event()

    @tool(effect=Effect.READ_ONLY)
    async def busy(thing: str) -> str:
        """Counts who is here."""
        running[0] += 1
        most[0] = max(most[0], running[0])
        await gate.wait()
        running[0] -= 1
        return thing

    clock = ManualClock()
    async with open_gateway([busy], clock=clock) as gateway:
        calls = [
            asyncio.create_task(gateway.call("test.busy", {"thing": str(i)}, principal=ANA))
            for i in range(40)
        ]
        while clock.sleepers < 40:  # all have a deadline: 32 inside, 8 at the door
            await settle_loop()
        late = gateway.call("test.busy", {"thing": "x"}, deadline_ms=50, principal=ANA)
        waiting = asyncio.create_task(late)
        while clock.sleepers < 41:
            await settle_loop()
        answer = await passing(waiting, clock)
        gate.set()
        done = await asyncio.gather(*calls)
    assert most[0] == defaults.UPSTREAM_CONCURRENCY
    assert {d.status for d in done} == {Status.DONE}
    assert answer.code is Code.TIMEOUT
    assert answer.attempts == 0


@requirement("EXE-1")
async def test_whoever_waits_may_go_away_and_a_dispatched_write_is_finished(
    open_gateway: Open, world: World
) -> None:
    world.mood = "wait"
    async with open_gateway(world) as gateway:
        call = asyncio.create_task(gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA))
        await world.entered.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        world.release.set()
        again = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
    assert (again.status, again.replayed) == (Status.DONE, True)
    assert world.touched == {"a": 1}


@requirement("EXE-1")
async def test_whoever_stops_waiting_for_a_read_stops_the_read(open_gateway: Open) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ_ONLY)
    async def long(thing: str) -> str:
        """Takes its time."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return thing

    async with open_gateway([long]) as gateway:
        call = asyncio.create_task(gateway.call("test.long", {"thing": "a"}, principal=ANA))
        await started.wait()
        call.cancel()
        await stopped.wait()


@requirement("LIF-5")
@pytest.mark.parametrize("mood", ["raise", "garbage"])
async def test_nothing_of_a_tools_failure_leaks_to_the_caller(
    open_gateway: Open, world: World, mood: str
) -> None:
    world.mood = mood
    async with open_gateway(world) as gateway:
        answer = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
    said = answer.to_json()
    for secret in (b"secret", b"Traceback", b"RuntimeError", b".py"):
        assert secret not in said


@requirement("EXE-10")
async def test_arguments_arrive_as_values_whatever_they_look_like(open_gateway: Open) -> None:
    seen: list[str] = []

    @tool(effect=Effect.READ_ONLY)
    async def echo(text: str) -> str:
        """Say it again."""
        seen.append(text)
        return text

    hostile = [
        "; rm -rf /",
        "$(id)",
        "'; DROP TABLE operation; --",
        "__import__('os')",
        "=args.text",
        "{{7*7}}",
        "\u202e",
    ]
    async with open_gateway([echo]) as gateway:
        for text in hostile:
            assert (await gateway.call("test.echo", {"text": text}, principal=ANA)).data == text
    assert seen == hostile
