"""What does a key mean? The table in docs/explanation/keys-and-replay.md, case by case."""

import asyncio
from typing import Any

import pytest

from holdfast import Code, Observation, Status, tool
from holdfast.model import defaults
from holdfast.testing import ManualClock, settle_loop
from tests.lifecycle.conftest import Open
from tests.lifecycle.world import ANA, BEN, WRITE, World, invocations
from tests.requirements import requirement


def without(observation: Observation, *names: str) -> dict[str, Any]:
    return {k: v for k, v in observation.to_dict().items() if k not in names}


@requirement("IDM-1", "IDM-3", "NAM-4")
async def test_the_same_key_answers_with_the_first_observation_and_acts_once(
    open_gateway: Open, world: World
) -> None:
    async with open_gateway(world) as gateway:
        first = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        again = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
    assert first.status is Status.DONE
    assert not first.replayed
    assert again.replayed
    assert first.to_json().replace(b'"replayed":false', b'"replayed":true') == again.to_json()
    assert world.touched == {"a": 1}


@requirement("IDM-3")
async def test_the_same_key_with_other_arguments_is_a_mismatch_that_names_the_call(
    open_gateway: Open, world: World
) -> None:
    async with open_gateway(world) as gateway:
        first = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        other = await gateway.call("test.touch", {"thing": "b"}, key="k", principal=ANA)
    assert other.code is Code.KEY_MISMATCH
    assert first.call_id in (other.message or "")
    assert "committed" in (other.message or "")
    assert world.touched == {"a": 1}


@requirement("IDM-4")
async def test_a_duplicate_waits_for_the_one_that_runs_and_gets_its_answer(
    open_gateway: Open, world: World
) -> None:
    world.mood = "wait"
    async with open_gateway(world) as gateway:
        first = asyncio.create_task(gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA))
        await world.entered.wait()
        second = asyncio.create_task(gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA))
        await settle_loop()
        world.release.set()
        one, two = await asyncio.gather(first, second)
    assert (one.status, two.status) == (Status.DONE, Status.DONE)
    assert two.replayed
    assert world.touched == {"a": 1}


@requirement("IDM-4")
async def test_a_duplicate_that_waited_long_enough_is_told_to_come_back(
    open_gateway: Open, world: World
) -> None:
    world.mood, clock = "wait", ManualClock()
    async with open_gateway(world, clock=clock) as gateway:
        first = asyncio.create_task(gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA))
        await world.entered.wait()
        second = asyncio.create_task(gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA))
        await clock.drive(second)
        told = await second
        world.release.set()
        await first
    assert told.code is Code.KEY_IN_USE
    assert told.remedy.retryable
    assert told.remedy.retry_after_ms
    assert clock.monotonic() >= defaults.DUPLICATE_WAIT_S
    assert world.touched == {"a": 1}


@requirement("IDM-4")
async def test_fifty_duplicates_at_once_are_one_effect(open_gateway: Open, world: World) -> None:
    async with open_gateway(world) as gateway:
        calls = (gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA) for _ in range(50))
        answers = await asyncio.gather(*calls)
    assert world.touched == {"a": 1}
    assert {answer.status for answer in answers} == {Status.DONE}
    assert sum(not answer.replayed for answer in answers) == 1


@requirement("IDM-3", "LIF-3")
async def test_a_refusal_leaves_the_key_free(open_gateway: Open, world: World) -> None:
    async with open_gateway(world) as gateway:
        refused = await gateway.call("test.touch", {"thing": 1}, key="k", principal=ANA)
        done = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
    assert refused.code is Code.TYPE_MISMATCH
    assert done.status is Status.DONE
    assert not done.replayed


@requirement("IDM-2", "AUT-6")
async def test_keys_of_other_principals_and_tools_are_other_operations(
    open_gateway: Open, world: World
) -> None:
    async with open_gateway(world) as gateway:
        for principal in (ANA, BEN):
            done = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=principal)
            assert not done.replayed
        other = await gateway.call("test.touch_probed", {"thing": "a"}, key="k", principal=ANA)
    assert not other.replayed
    assert world.touched == {"a": 3}


@requirement("IDM-1")
@pytest.mark.parametrize(
    ("key", "accepted"), [("x" * 255, True), ("x" * 256, False), ("", False), ("é", False), ("a\n", False)]
)
async def test_a_key_is_up_to_255_printable_ascii_characters(
    open_gateway: Open, world: World, key: str, accepted: bool
) -> None:
    async with open_gateway(world) as gateway:
        answer = await gateway.call("test.touch", {"thing": "a"}, key=key, principal=ANA)
    assert (answer.status is Status.DONE) is accepted
    if not accepted:
        assert answer.code is Code.STRUCTURAL_VIOLATION
        assert answer.field_errors[0].path == "/key"


@requirement("IDM-6", "IDM-8")
async def test_after_the_window_the_answer_is_replayed_while_kept_and_then_the_key_is_expired(
    open_gateway: Open, world: World
) -> None:
    clock = ManualClock()
    async with open_gateway(world, clock=clock) as gateway:
        await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        clock.jump(25 * 3600)  # a clock that jumps is not time that passes
        await gateway.tidy(forget=True)
        jumped = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        await clock.advance(defaults.DEDUP_FLOOR_S + 1)
        kept = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        await gateway.tidy(forget=True)
        gone = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
    assert jumped.replayed
    assert kept.replayed
    assert (gone.status, gone.code, gone.http_status) == (Status.REFUSED, Code.KEY_EXPIRED, 410)
    assert world.touched == {"a": 1}


@requirement("IDM-2", "LIF-2")
async def test_a_retry_across_a_version_change_finds_its_own_operation(open_gateway: Open) -> None:
    calls: list[str] = []

    def version(number: str) -> Any:
        @tool(**WRITE, name="touch", version=number)
        async def touch(thing: str) -> dict[str, str]:
            """Touch a thing."""
            calls.append(number)
            return {"by": number}

        return touch

    old, new = version("1.0.0"), version("1.1.0")
    async with open_gateway([old, new]) as gateway:
        first = await gateway.call("test.touch", {"thing": "a"}, key="k", version="1.0.0", principal=ANA)
        again = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        fresh = await gateway.call("test.touch", {"thing": "a"}, key="k2", principal=ANA)
    assert first.version == "1.0.0"
    assert again.replayed
    assert again.version == "1.0.0"
    assert fresh.version == "1.1.0"
    assert calls == ["1.0.0", "1.1.0"]


@requirement("CON-5", "IDM-2")
async def test_defaults_given_or_omitted_are_the_same_call(open_gateway: Open, world: World) -> None:
    async with open_gateway(world) as gateway:
        await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        again = await gateway.call(
            "test.touch", {"note": "", "times": 1, "thing": "a"}, key="k", principal=ANA
        )
    assert again.replayed


@requirement("IDM-1", "IDM-2")
async def test_task_and_step_make_a_key_that_a_retry_makes_again(open_gateway: Open, world: World) -> None:
    async with open_gateway(world) as gateway:
        first = await gateway.call("test.touch", {"thing": "a"}, task="t", step="s", principal=ANA)
        again = await gateway.call("test.touch", {"thing": "a"}, task="t", step="s", principal=ANA)
        other = await gateway.call("test.touch", {"thing": "a"}, task="t", step="s2", principal=ANA)
        mine = await gateway.call("test.touch", {"thing": "a"}, task="t", step="s", principal=BEN)
    assert first.key_source == "derived"
    assert again.replayed
    assert not other.replayed
    assert not mine.replayed
    assert len({first.key, other.key, mine.key}) == 3


@requirement("IDM-1")
async def test_a_write_without_a_key_is_refused_and_says_how_to_make_one(
    open_gateway: Open, world: World
) -> None:
    async with open_gateway(world) as gateway:
        answer = await gateway.call("test.touch", {"thing": "a"}, principal=ANA)
    assert answer.code is Code.KEY_REQUIRED
    assert "'key'" in (answer.message or "")
    assert world.touched == {}


@requirement("IDM-1")
async def test_a_key_on_a_read_only_links_its_retries(open_gateway: Open, world: World) -> None:
    async with open_gateway(world) as gateway:
        for thing in ("a", "b"):
            seen = await gateway.call("test.look", {"thing": thing}, key="k", principal=ANA)
            assert seen.data["thing"] == thing
            assert not seen.replayed
    assert world.reads == 2


@requirement("IDM-5", "IDM-3")
async def test_a_tool_that_proves_no_effect_frees_its_key_for_the_same_arguments_only(
    open_gateway: Open, world: World
) -> None:
    world.mood = "no_effect"
    async with open_gateway(world) as gateway:
        failed = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        world.mood = "well"
        other = await gateway.call("test.touch", {"thing": "b"}, key="k", principal=ANA)
        done = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
    assert (failed.status, failed.message) == (Status.FAILED, "the thing is locked")
    assert other.code is Code.KEY_MISMATCH
    assert done.status is Status.DONE
    assert done.call_id == failed.call_id
    assert world.touched == {"a": 1}


@requirement("IDM-7", "AUT-6")
async def test_one_key_of_two_callers_is_two_operations_upstream_too(open_gateway: Open) -> None:
    seen: list[Any] = []
    async with open_gateway([invocations(seen)]) as gateway:
        answers = [await gateway.call("test.keyed", {"thing": "a"}, key="k", principal=p) for p in (ANA, BEN)]
    assert [answer.data["number"] for answer in answers] == [1, 2]
    assert len({i.key for i in seen}) == 2


@requirement("IDM-7", "EXE-2")
async def test_an_upstream_that_honours_the_key_is_asked_again_with_the_same_key(open_gateway: Open) -> None:
    seen: list[Any] = []
    clock = ManualClock()
    async with open_gateway([invocations(seen)], clock=clock) as gateway:
        call = asyncio.create_task(gateway.call("test.keyed", {"thing": "flaky"}, key="k", principal=ANA))
        await clock.drive(call)
        done = await call
    assert done.status is Status.DONE
    assert done.attempts == 2
    assert len({i.key for i in seen}) == 1
    assert seen[0].key.startswith("k.")
    assert done.outcome is not None
    assert done.outcome.strength == "exactly_once"
