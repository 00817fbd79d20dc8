"""What happens when no tool of a capability can answer? EXE-4: a person, or what was known last."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast import Code, Gateway, Observation, Principal, Status
from holdfast.model import defaults
from holdfast.model.approval import Approval
from holdfast.testing import ManualClock, settle_loop
from tests.fallbacks.post import ANA, SEND, Apart, Post, opened, send, tried
from tests.requirements import requirement
from tests.stored import DURABLE

UNAVAILABLE = Code.DEPENDENCY_UNAVAILABLE.value
EVERYBODY = ("mail", "backup", "pigeon")
AUTH: dict[str, Any] = {
    "people": {
        "ana": {"scopes": ["mail:**", "facts:**"], "trust": 90},
        "olga": {"roles": ["operator"], "scopes": ["**"]},
    }
}
OLGA = Principal(user="olga", agent="local", roles=frozenset({"operator"}), scopes=frozenset({"**"}))
ASKING = {"send-message": {**SEND, "then": "person"}}
STALE = {"facts": {"tools": ["mail.look", "backup.look"], "then": "stale"}}


async def look(gateway: Gateway, name: str = "x", clock: ManualClock | None = None) -> Observation:
    looking = asyncio.ensure_future(gateway.call("mail.look", {"name": name}, principal=ANA))
    if clock is not None:  # reads are tried again after a while
        await clock.drive(looking)
    return await looking


async def question(gateway: Gateway) -> Approval:
    [asked] = await gateway.approvals(OLGA)
    return asked


# --- what was known last ------------------------------------------------------------------


@requirement("EXE-4", "EXE-5")
async def test_what_was_known_last_is_told_as_stale_when_nobody_answers(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    async with opened(store, tmp_path, post, clock, STALE) as gateway:
        first = await look(gateway)
        await clock.advance(60.0)
        post.mood |= {"mail": UNAVAILABLE, "backup": UNAVAILABLE}
        seen = await look(gateway, clock=clock)
        assert (seen.status, seen.data) == (Status.DONE, first.data)
        assert seen.provenance is not None
        assert first.provenance is not None
        assert (seen.provenance.freshness, seen.provenance.confidence) == ("stale", 0.8)
        assert seen.provenance.retrieved_at == first.provenance.retrieved_at
        assert seen.fallback is not None
        assert seen.fallback["level"] == 2
        assert [tool for tool, _ in tried(seen)] == ["mail.look", "backup.look"]


@requirement("EXE-5")
async def test_what_is_past_its_time_is_no_answer_while_somebody_answers(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    async with opened("memory", tmp_path, post, clock, STALE) as gateway:
        await look(gateway)
        await clock.advance(60.0)
        seen = await look(gateway)
        assert seen.provenance is not None
        assert (seen.provenance.freshness, post.asked) == ("live", ["mail", "mail"])


@requirement("EXE-5")
async def test_an_answer_grows_no_younger_by_being_told_again(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    async with opened("memory", tmp_path, post, clock, STALE) as gateway:
        for _ in range(3):  # each within the ten seconds of the one before it
            await look(gateway)
            await clock.advance(6.0)
        assert post.asked == ["mail", "mail"]


async def test_what_was_never_known_is_not_made_up(tmp_path: Path, post: Post, clock: ManualClock) -> None:
    post.mood |= {"mail": UNAVAILABLE, "backup": UNAVAILABLE}
    async with opened("memory", tmp_path, post, clock, STALE) as gateway:
        seen = await look(gateway, clock=clock)
        assert (seen.status, seen.code, seen.tool) == (Status.FAILED, UNAVAILABLE, "backup.look")


async def test_what_another_tenant_knew_is_not_told(tmp_path: Path, post: Post, clock: ManualClock) -> None:
    async with opened("memory", tmp_path, post, clock, STALE) as gateway:
        await look(gateway)
        await clock.advance(60.0)
        post.mood |= {"mail": UNAVAILABLE, "backup": UNAVAILABLE}
        other = replace(ANA, tenant="other")
        looking = asyncio.ensure_future(gateway.call("mail.look", {"name": "x"}, principal=other))
        await clock.drive(looking)
        assert looking.result().status is Status.FAILED


# --- a person -----------------------------------------------------------------------------


@requirement("EXE-4")
async def test_a_person_is_asked_with_what_was_tried_and_how_urgent_it_is(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= dict.fromkeys(EVERYBODY, UNAVAILABLE)
    async with opened(store, tmp_path, post, clock, ASKING, auth=AUTH) as gateway:
        seen = await send(gateway, deadline_ms=30_000)
        assert (seen.status, seen.tool, seen.code) == (Status.HELD, "mail.send", Code.APPROVAL_REQUIRED)
        assert [tool for tool, _ in tried(seen)] == ["mail.send", "backup.post", "pigeon.send"]
        asked = await question(gateway)
        packet = asked.packet
        assert asked.need == {"operator": 1}
        assert packet["arguments"]["to"] == "bob"
        assert packet["trace_id"] == seen.trace_id
        assert packet["escalation"]["urgency"] == "high"
        assert packet["escalation"]["wanted_by"]
        assert [one["tool"] for one in packet["escalation"]["tried"]] == [
            "mail.send",
            "backup.post",
            "pigeon.send",
        ]


@requirement("EXE-4")
async def test_an_approved_call_is_tried_again_from_the_first_level(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= dict.fromkeys(EVERYBODY, UNAVAILABLE)
    async with opened(store, tmp_path, post, clock, ASKING, auth=AUTH) as gateway:
        await send(gateway)
        post.mood.clear()
        waiting = await send(gateway)
        assert (waiting.status, post.senders) == (Status.HELD, [])  # a person has the word
        await gateway.decide(OLGA, (await question(gateway)).id, True)
        seen = await send(gateway)
        assert (seen.status, seen.tool, post.senders) == (Status.DONE, "mail.send", ["mail"])


@requirement("EXE-4")
async def test_an_approved_call_falls_back_again_where_it_must(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= dict.fromkeys(EVERYBODY, UNAVAILABLE)
    async with opened(store, tmp_path, post, clock, ASKING, auth=AUTH) as gateway:
        await send(gateway)
        await gateway.decide(OLGA, (await question(gateway)).id, True)
        assert (await send(gateway)).status is Status.FAILED  # and nobody is asked twice
        assert not await gateway.approvals(OLGA)
        del post.mood["backup"]
        seen = await send(gateway)
        assert (seen.tool, post.senders) == ("backup.post", ["backup"])


@requirement("EXE-4")
@pytest.mark.parametrize("how", ["well", "quarantined", "resting"])
async def test_what_a_person_denied_stays_denied_at_every_level(
    tmp_path: Path, post: Post, clock: ManualClock, how: str
) -> None:
    post.mood |= dict.fromkeys(EVERYBODY, UNAVAILABLE)
    async with opened("memory", tmp_path, post, clock, ASKING, auth=AUTH) as gateway:
        await send(gateway)
        await gateway.decide(OLGA, (await question(gateway)).id, False)
        post.mood.clear()
        if how == "resting":
            for _ in range(5):
                gateway._runtime.breaker("mail.send").failed()
        if how == "quarantined":
            await gateway.halt(OLGA, "mail.send", "broken")
        seen = await send(gateway)
        assert (seen.status, post.senders) == (Status.REFUSED, [])


@requirement("EXE-4")
async def test_an_unanswered_question_is_a_no(tmp_path: Path, post: Post, clock: ManualClock) -> None:
    post.mood |= dict.fromkeys(EVERYBODY, UNAVAILABLE)
    async with opened("memory", tmp_path, post, clock, ASKING, auth=AUTH) as gateway:
        await send(gateway)
        post.mood.clear()
        await clock.advance(defaults.APPROVAL_S + 1)
        await gateway.tidy()
        seen = await send(gateway)
        assert (seen.code, post.senders) == (Code.APPROVAL_DENIED, [])


@requirement("EXE-4")
@pytest.mark.parametrize("store", DURABLE, indirect=True)
async def test_the_gateway_itself_goes_on_once_it_is_approved_and_across_a_restart(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= dict.fromkeys(EVERYBODY, UNAVAILABLE)
    async with opened(store, tmp_path, post, clock, ASKING, auth=AUTH) as gateway:
        await send(gateway, release="gateway")
    post.mood.clear()
    post.mood["mail"] = UNAVAILABLE
    async with opened(store, tmp_path, post, clock, ASKING, auth=AUTH, ids=Apart()) as gateway:
        await gateway.decide(OLGA, (await question(gateway)).id, True)
        while not post.sent:
            await settle_loop()
            await clock.quiet()
    assert post.senders == ["backup"]


async def test_where_nobody_can_be_asked_the_failure_says_so(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= dict.fromkeys(EVERYBODY, UNAVAILABLE)
    async with opened("memory", tmp_path, post, clock, ASKING) as gateway:
        seen = await send(gateway)
        assert (seen.status, seen.code) == (Status.FAILED, UNAVAILABLE)
        assert any("nobody could be asked" in warning for warning in seen.warnings)


@requirement("EXE-4", "APR-4")
@pytest.mark.parametrize("denied", [True, False])
async def test_a_person_who_was_asked_is_not_gone_around_with_the_token_of_a_preview(
    store: str, tmp_path: Path, post: Post, clock: ManualClock, denied: bool
) -> None:
    post.mood |= dict.fromkeys(EVERYBODY, UNAVAILABLE)
    async with opened(store, tmp_path, post, clock, ASKING, auth=AUTH) as gateway:
        assert (await send(gateway)).status is Status.HELD
        if denied:
            await gateway.decide(OLGA, (await question(gateway)).id, approve=False)
        post.mood.clear()
        looked = await send(gateway, preview=True)
        assert looked.preview is not None
        seen = await send(gateway, plan_token=looked.preview["plan_token"])
        assert seen.code is (Code.APPROVAL_DENIED if denied else Code.APPROVAL_REQUIRED)
        assert post.sent == []


@requirement("EXE-4", "APR-4")
@pytest.mark.parametrize("store", DURABLE, indirect=True)
async def test_a_no_stays_a_no_where_the_configuration_names_no_fallback_any_more(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= dict.fromkeys(EVERYBODY, UNAVAILABLE)
    async with opened(store, tmp_path, post, clock, ASKING, auth=AUTH) as gateway:
        assert (await send(gateway)).status is Status.HELD
        await gateway.decide(OLGA, (await question(gateway)).id, approve=False)
    post.mood.clear()
    async with opened(store, tmp_path, post, clock, {}, auth=AUTH) as gateway:
        assert (await send(gateway)).code is Code.APPROVAL_DENIED
    assert post.sent == []


class Meanwhile:
    """Somebody else calls as soon as a key is the first tool's again."""

    def __init__(self, kept: Any, other: Callable[[], Awaitable[object]]) -> None:
        self._kept, self._others = kept, [other]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kept, name)

    async def move(self, at: Any, tool: str, to: str, tools: Any = ()) -> Any:
        moved = await self._kept.move(at, tool, to, tools)
        if to == "mail.send" and self._others:
            await self._others.pop()()
        return moved


@requirement("EXE-4")
async def test_who_was_to_ask_a_person_gets_what_another_caller_of_the_key_has_done_meanwhile(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= dict.fromkeys(EVERYBODY, UNAVAILABLE)
    async with opened(store, tmp_path, post, clock, ASKING, auth=AUTH) as gateway:

        async def other() -> None:
            post.mood.clear()
            assert (await send(gateway)).status is Status.DONE

        gateway.fallbacks._kept = cast(Any, Meanwhile(gateway.fallbacks._kept, other))
        seen = await send(gateway)
        assert (seen.status, seen.replayed, post.senders) == (Status.DONE, True, ["mail"])
