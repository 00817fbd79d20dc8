"""Who answers when a tool cannot, and what is the caller told of it? EXE-4, on every store."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from holdfast import Code, Status
from holdfast.model.errors import StoreError
from holdfast.ports import Capabilities, Place
from holdfast.stores.memory import MemoryStore
from holdfast.testing import ManualClock
from tests.fallbacks.post import ANA, Post, gateway_on, opened, send, tried
from tests.requirements import requirement
from tests.stored import rows

UNAVAILABLE = Code.DEPENDENCY_UNAVAILABLE.value


async def test_the_first_tool_answers_as_if_there_were_no_other(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    async with opened(store, tmp_path, post, clock) as gateway:
        seen = await send(gateway)
        assert (seen.status, seen.tool, seen.fallback) == (Status.DONE, "mail.send", None)
        assert post.asked == ["mail"]


@requirement("EXE-4")
@pytest.mark.parametrize(
    "code",
    [
        Code.DEPENDENCY_UNAVAILABLE,
        Code.TOOL_UNAVAILABLE,
        Code.TIMEOUT,
        Code.RESOURCE_EXHAUSTED,
        Code.RATE_LIMITED,
    ],
)
async def test_a_tool_that_cannot_answer_is_replaced_by_the_next(
    tmp_path: Path, post: Post, clock: ManualClock, code: Code
) -> None:
    post.mood["mail"] = code.value
    async with opened("memory", tmp_path, post, clock) as gateway:
        working = asyncio.ensure_future(send(gateway))
        await clock.drive(working)
        seen = working.result()
        assert (seen.status, seen.tool, seen.data) == (
            Status.DONE,
            "backup.post",
            {"by": "backup", "to": "bob"},
        )
        assert seen.provenance is not None
        assert seen.provenance.confidence == 0.9
        assert seen.fallback == {
            "capability": "send-message",
            "level": 1,
            "confidence_decrement": 0.1,
            "tried": [
                {
                    "tool": "mail.send",
                    "code": code.value,
                    "message": "mail is out of order",
                    "call_id": seen.fallback["tried"][0]["call_id"] if seen.fallback else "",
                }
            ],
        }


@requirement("EXE-4")
async def test_levels_are_tried_in_order_until_one_answers(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= {"mail": UNAVAILABLE, "backup": UNAVAILABLE}
    async with opened(store, tmp_path, post, clock) as gateway:
        working = asyncio.ensure_future(send(gateway))
        await clock.drive(working)
        seen = working.result()
        assert post.senders == ["pigeon"]
        assert seen.provenance is not None
        assert seen.provenance.confidence == 0.5
        assert tried(seen) == [("mail.send", UNAVAILABLE), ("backup.post", UNAVAILABLE)]
        assert seen.fallback is not None
        assert (seen.fallback["level"], seen.fallback["confidence_decrement"]) == (2, 0.5)


@pytest.mark.parametrize("code", [Code.SEMANTIC_INVALIDITY, Code.POLICY_VIOLATION, Code.CONFLICT])
async def test_a_tool_that_says_no_is_not_replaced(
    tmp_path: Path, post: Post, clock: ManualClock, code: Code
) -> None:
    post.mood["mail"] = code.value
    async with opened("memory", tmp_path, post, clock) as gateway:
        seen = await send(gateway)
        assert (seen.status, seen.code, post.senders) == (Status.FAILED, code, [])
        assert {*post.asked} == {"mail"}


async def test_wrong_arguments_are_told_by_the_first_even_while_it_rests(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    async with opened("memory", tmp_path, post, clock) as gateway:
        for _ in range(5):
            gateway._runtime.breaker("mail.send").failed()
        seen = await gateway.call("mail.send", {"too": "bob"}, principal=ANA, key="k")
        assert (seen.tool, seen.code) == ("mail.send", Code.STRUCTURAL_VIOLATION)
        assert post.asked == []


@requirement("EXE-4")
async def test_a_tool_that_rests_is_passed_over_without_an_attempt(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    async with opened(store, tmp_path, post, clock) as gateway:
        for _ in range(5):
            gateway._runtime.breaker("mail.send").failed()
        seen = await send(gateway)
        assert (seen.tool, post.asked) == ("backup.post", ["backup"])
        assert tried(seen) == [("mail.send", "it failed too often and is given a rest")]
        assert seen.fallback is not None
        assert seen.fallback["tried"][0]["skipped"] is True


@requirement("EXE-4")
async def test_when_all_have_failed_the_last_one_tells_and_the_next_call_begins_with_the_first(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= dict.fromkeys(("mail", "backup", "pigeon"), UNAVAILABLE)
    async with opened(store, tmp_path, post, clock) as gateway:
        working = asyncio.ensure_future(send(gateway))
        await clock.drive(working)
        seen = working.result()
        assert (seen.status, seen.code, seen.tool) == (Status.FAILED, UNAVAILABLE, "pigeon.send")
        assert [tool for tool, _ in tried(seen)] == ["mail.send", "backup.post"]
        post.mood.clear()
        again = await send(gateway)
        assert (again.status, again.tool, post.senders) == (Status.DONE, "mail.send", ["mail"])


@requirement("EXE-4")
async def test_what_fell_back_is_replayed_from_there_when_the_first_is_back(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood["mail"] = UNAVAILABLE
    async with opened(store, tmp_path, post, clock) as gateway:
        working = asyncio.ensure_future(send(gateway))
        await clock.drive(working)
        post.mood.clear()
        again = await send(gateway)
        assert (again.replayed, again.tool, post.senders) == (True, "backup.post", ["backup"])
        assert again.fallback == working.result().fallback
        other = await send(gateway, "another")
        assert other.tool == "mail.send"


@requirement("EXE-4")
async def test_nothing_falls_back_while_the_outcome_is_unknown(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood["mail"] = "lose"
    async with opened(store, tmp_path, post, clock) as gateway:
        seen = await send(gateway)
        assert (seen.status, seen.tool) == (Status.UNKNOWN, "mail.send")
        for _ in range(5):
            gateway._runtime.breaker("mail.send").failed()
        again = await send(gateway)
        assert (again.status, again.tool, post.senders) == (Status.UNKNOWN, "mail.send", ["mail"])


@requirement("EXE-4")
async def test_another_tool_of_the_capability_does_not_act_under_the_same_key(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    async with opened(store, tmp_path, post, clock) as gateway:
        await send(gateway)
        direct = {"recipient": "bob", "body": "hello"}
        seen = await gateway.call("backup.post", direct, principal=ANA, key="k")
        assert (seen.status, seen.code, post.senders) == (Status.REFUSED, Code.KEY_MISMATCH, ["mail"])
        first = await gateway.call("backup.post", direct, principal=ANA, key="other")
        then = await send(gateway, "other")
        assert (first.status, then.tool, then.replayed) == (Status.DONE, "backup.post", True)
        assert post.senders == ["mail", "backup"]


async def test_a_level_its_caller_may_not_use_does_not_exist_for_them(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= {"mail": UNAVAILABLE, "backup": UNAVAILABLE}
    async with opened("memory", tmp_path, post, clock) as gateway:
        little = replace(ANA, scopes=frozenset({"mail:send"}))
        working = asyncio.ensure_future(send(gateway, by=little))
        await clock.drive(working)
        seen = working.result()
        assert (seen.status, post.senders) == (Status.FAILED, [])
        assert "pigeon" not in str(seen.to_dict())


async def test_a_preview_stays_with_the_tool_it_is_of(tmp_path: Path, post: Post, clock: ManualClock) -> None:
    async with opened("memory", tmp_path, post, clock) as gateway:
        for _ in range(5):
            gateway._runtime.breaker("mail.send").failed()
        seen = await send(gateway, preview=True)
        assert (seen.status, seen.tool, seen.fallback) == (Status.PREVIEW, "mail.send", None)


@requirement("EXE-4")
async def test_all_levels_share_the_callers_deadline(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= {"mail": "slow", "backup": "slow"}
    async with opened(store, tmp_path, post, clock) as gateway:
        began = clock.monotonic()
        looking = gateway.call("mail.look", {"name": "x"}, principal=ANA, deadline_ms=7_000)
        working = asyncio.ensure_future(looking)
        await clock.drive(working)
        seen = working.result()
        assert (seen.tool, seen.code) == ("backup.look", Code.TIMEOUT)  # 5 s of the first, 2 s were left
        assert clock.monotonic() - began < 7.5
        assert post.asked == ["mail", "backup"]


@requirement("EXE-4", "TEL-4")
async def test_a_level_that_usually_takes_longer_than_what_is_left_is_passed_over(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood["mail"] = UNAVAILABLE
    async with opened("memory", tmp_path, post, clock) as gateway:
        post.mood["backup"] = "wait"
        slow = gateway.call("backup.post", {"recipient": "bob", "body": "x"}, principal=ANA, key="slow")
        working = asyncio.ensure_future(slow)
        await post.entered.wait()
        await clock.advance(3.0)
        post.go_on.set()
        await working
        await gateway.health.fresh("default")
        post.mood["backup"] = "well"
        falling = asyncio.ensure_future(send(gateway, deadline_ms=2_000))
        await clock.drive(falling)
        seen = falling.result()
        assert seen.tool == "pigeon.send"
        assert [tool for tool, _ in tried(seen)] == ["mail.send", "backup.post"]
        assert "usually takes" in tried(seen)[1][1]


@requirement("EXE-4")
async def test_a_read_falls_back_when_it_breaks(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood["mail"] = "lose"
    async with opened(store, tmp_path, post, clock) as gateway:
        working = asyncio.ensure_future(gateway.call("mail.look", {"name": "x"}, principal=ANA))
        await clock.drive(working)
        seen = working.result()
        assert (seen.status, seen.tool, tried(seen)) == (
            Status.DONE,
            "backup.look",
            [("mail.look", UNAVAILABLE)],
        )


async def test_a_key_derived_from_task_and_step_is_the_same_at_every_level(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood["mail"] = UNAVAILABLE
    async with opened(store, tmp_path, post, clock) as gateway:
        working = asyncio.ensure_future(send(gateway, None, task="t", step="s"))
        await clock.drive(working)
        post.mood.clear()
        again = await send(gateway, None, task="t", step="s")
        assert (again.replayed, again.key, post.senders) == (True, working.result().key, ["backup"])


@requirement("EXE-4")
async def test_a_tool_that_did_nothing_under_a_key_leaves_it_to_the_others(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    direct = {"recipient": "bob", "body": "hello"}
    post.mood["backup"] = UNAVAILABLE
    async with opened(store, tmp_path, post, clock) as gateway:
        first = await gateway.call("backup.post", direct, principal=ANA, key="k")
        assert first.code == UNAVAILABLE
        assert (await send(gateway)).tool == "mail.send"
        post.mood.clear()
        again = await gateway.call("backup.post", direct, principal=ANA, key="k")
        assert (again.code, post.senders) == (Code.KEY_MISMATCH, ["mail"])


async def test_a_tool_without_others_beside_it_costs_nothing_more(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    alone = {"facts": {"tools": ["mail.look", "backup.look"]}}
    async with opened("sqlite", tmp_path, post, clock, alone) as gateway:
        seen = await send(gateway)
        await gateway.call("mail.look", {"name": "x"}, principal=ANA)
        assert (seen.status, seen.fallback) == (Status.DONE, None)
    assert rows("sqlite", tmp_path, "SELECT * FROM {}capability_level") == []


@requirement("EXE-4")
async def test_the_record_says_at_which_level_a_call_was_made(post: Post, clock: ManualClock) -> None:
    post.mood["mail"] = UNAVAILABLE
    kept = MemoryStore(clock)
    async with gateway_on(kept, post, clock) as gateway:
        seen = await send(gateway)
    told = {one.call_id: orjson.loads(one.body) for one in kept.records if one.kind == "outcome"}
    assert told[seen.call_id]["fallback"] == {"capability": "send-message", "level": 1}
    assert [body.get("fallback") for name, body in told.items() if name != seen.call_id] == [None]
    assert len({body["trace_id"] for body in told.values()}) == 1


class Away:
    """A store that cannot say who answers for a key, from one question on."""

    def __init__(self, kept: Capabilities, first: str) -> None:
        self._kept, self._first = kept, first

    async def tool(self, at: Place) -> str | None:
        if self._first == "tool":
            raise StoreError("the store is away")
        return await self._kept.tool(at)

    async def move(self, at: Place, tool: str, to: str, tools: Sequence[str] = ()) -> str:
        raise StoreError("the store is away")


@requirement("EXE-4")
@pytest.mark.parametrize("first", ["tool", "move"])
async def test_a_call_that_cannot_fall_back_tells_why_its_own_tool_did_not_answer(
    tmp_path: Path, post: Post, clock: ManualClock, first: str
) -> None:
    post.mood["mail"] = UNAVAILABLE
    async with opened("memory", tmp_path, post, clock) as gateway:
        gateway.fallbacks._kept = Away(gateway.fallbacks._kept, first)
        seen = await send(gateway)
        assert (seen.tool, seen.code, post.asked) == ("mail.send", UNAVAILABLE, ["mail"])


async def test_arguments_that_cannot_be_said_to_another_tool_pass_it_over(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood["mail"] = UNAVAILABLE
    odd = {"tools": ["mail.send", {"tool": "backup.post", "arguments": {"recipient": "=args.to.name"}}]}
    async with opened("memory", tmp_path, post, clock, {"send-message": odd}) as gateway:
        seen = await send(gateway)
        assert (seen.tool, post.asked) == ("mail.send", ["mail"])
        assert tried(seen) == [("backup.post", "its arguments cannot be made from these")]
        direct = await gateway.call("backup.post", {"recipient": "x", "body": "y"}, principal=ANA, key="d")
        other = await send(gateway, "d")  # a key that another tool has answered, and words it does not know
        assert (direct.status, other.status, post.senders) == (Status.DONE, Status.REFUSED, ["backup"])
