"""What does a client get that knows no keys, when its call fell back? EXE-4, IDM-1."""

import itertools
from pathlib import Path

from holdfast import Code, Gateway, Observation, Status
from holdfast.testing import ManualClock
from tests.fallbacks.post import ANA, Post, opened, send
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
