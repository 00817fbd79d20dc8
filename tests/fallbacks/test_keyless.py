"""What does a client get that knows no keys, when its call fell back? EXE-4, IDM-1."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import Code, Gateway, Observation, Status
from holdfast.model.vocabulary import KeySource, ToolStatus
from holdfast.testing import ManualClock
from tests.fallbacks.post import ANA, Post, opened, send
from tests.fallbacks.test_declared import standing
from tests.fallbacks.test_last import ASKING, AUTH, EVERYBODY, UNAVAILABLE
from tests.requirements import requirement

_NUMBERS = itertools.count(1)


async def ask(gateway: Gateway) -> Observation:
    """The protocol makes a key for each request."""
    return await send(gateway, None, request_key=f"request-{next(_NUMBERS)}")


async def got(gateway: Gateway) -> Observation:
    seen = await ask(gateway)
    await gateway.delivered(ANA, seen.call_id)
    return seen


async def lost(gateway: Gateway) -> Observation:
    seen = await ask(gateway)
    await gateway.abandoned(ANA, seen.call_id)
    return seen


@requirement("EXE-4", "IDM-1")
async def test_an_answer_that_reached_nobody_is_had_from_the_level_that_gave_it(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood["mail"] = Code.DEPENDENCY_UNAVAILABLE.value
    async with opened(store, tmp_path, post, clock) as gateway:
        first = await lost(gateway)
        assert first.tool == "backup.post"
        post.mood.clear()
        again = await got(gateway)
        assert (again.status, again.tool, again.replayed) == (Status.DONE, "backup.post", True)
        assert post.senders == ["backup"]


@requirement("EXE-4", "IDM-1")
async def test_a_client_that_has_its_answer_means_another_operation(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood["mail"] = Code.DEPENDENCY_UNAVAILABLE.value
    async with opened(store, tmp_path, post, clock) as gateway:
        await got(gateway)
        post.mood.clear()
        again = await got(gateway)
        assert (again.status, again.tool, again.replayed) == (Status.DONE, "mail.send", False)
        assert post.senders == ["backup", "mail"]
        assert not gateway._ports.attendance._calls  # nobody is waited for any more


@requirement("EXE-4", "IDM-1")
async def test_a_client_whose_answer_is_on_its_way_is_not_taken_for_another(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood["mail"] = Code.DEPENDENCY_UNAVAILABLE.value
    async with opened(store, tmp_path, post, clock) as gateway:
        first = await ask(gateway)  # not delivered yet: its client still waits
        post.mood.clear()
        other = await ask(gateway)
        assert (first.tool, other.tool, other.replayed) == ("backup.post", "mail.send", False)
        assert post.senders == ["backup", "mail"]


@requirement("EXE-4", "IDM-1")
async def test_what_a_stand_in_did_while_the_first_was_passed_over_is_not_done_again_by_the_first(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    resting = {"mail.send"}
    async with opened(store, tmp_path, post, clock) as gateway:
        gateway.fallbacks._rests = lambda tool: tool in resting
        first = await lost(gateway)
        assert (first.tool, post.asked) == ("backup.post", ["backup"])
        resting.clear()
        again = await got(gateway)
        assert (again.status, again.tool, again.replayed) == (Status.DONE, "backup.post", True)
        other = await got(gateway)
        assert (other.tool, other.replayed) == ("mail.send", False), "it has its answer and means another one"
        assert post.senders == ["backup", "mail"]


def rest(gateway: Gateway, tool: str) -> None:
    gateway.fallbacks._rests = lambda name: name == tool


def quarantine(gateway: Gateway, tool: str) -> None:
    """No gate gets to see that it was called before."""
    standing(gateway, tool, ToolStatus.QUARANTINED)


@requirement("EXE-4", "IDM-1", "IDM-5")
@pytest.mark.parametrize("stop", [rest, quarantine])
async def test_nobody_stands_in_for_a_tool_that_may_have_acted_for_the_same_client(
    store: str, tmp_path: Path, post: Post, clock: ManualClock, stop: Callable[[Gateway, str], None]
) -> None:
    post.mood["mail"] = "lose"
    async with opened(store, tmp_path, post, clock) as gateway:
        assert (await lost(gateway)).status is Status.UNKNOWN
        stop(gateway, "mail.send")
        for _ in range(2):
            seen = await got(gateway)
            assert (seen.tool, seen.status is Status.DONE) == ("mail.send", False)
            assert seen.key_source in (None, KeySource.ADOPTED)
        assert post.senders == ["mail"]


@requirement("EXE-4", "IDM-1")
async def test_nobody_stands_in_while_a_person_is_asked_for_the_same_client(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= dict.fromkeys(EVERYBODY, UNAVAILABLE)
    async with opened(store, tmp_path, post, clock, ASKING, auth=AUTH) as gateway:
        first = await lost(gateway)
        post.mood.clear()
        rest(gateway, "mail.send")
        again = await got(gateway)
        assert (first.status, again.status) == (Status.HELD, Status.HELD)
        assert (again.approval, post.sent) == (first.approval, [])
