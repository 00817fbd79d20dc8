"""Does a key keep its meaning where the configuration, or what is asked, is another one? EXE-4."""

from pathlib import Path
from typing import Any

import pytest

from holdfast import Code, Status
from holdfast.testing import ManualClock
from tests.fallbacks.post import ANA, SEND, Apart, Post, opened, send
from tests.requirements import requirement
from tests.stored import DURABLE

UNAVAILABLE = Code.DEPENDENCY_UNAVAILABLE.value
DIRECT = {"recipient": "bob", "body": "hello"}
durable = pytest.mark.parametrize("store", DURABLE, indirect=True)


@requirement("EXE-4", "IDM-4")
@durable
async def test_a_key_keeps_its_tool_when_the_capability_is_called_otherwise(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood["mail"] = UNAVAILABLE
    async with opened(store, tmp_path, post, clock, {"send-message": SEND}, ids=Apart()) as gateway:
        assert (await send(gateway)).tool == "backup.post"
    post.mood.clear()
    async with opened(store, tmp_path, post, clock, {"messages": SEND}, ids=Apart()) as gateway:
        seen = await send(gateway)
    assert (seen.status, seen.tool, seen.replayed) == (Status.DONE, "backup.post", True)
    assert post.senders == ["backup"]


@requirement("EXE-4", "IDM-4")
@durable
async def test_what_a_tool_did_before_it_had_stand_ins_is_not_done_again_by_one(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    async with opened(store, tmp_path, post, clock, {}) as gateway:
        assert (await send(gateway)).tool == "mail.send"
    async with opened(store, tmp_path, post, clock, {"send-message": SEND}, ids=Apart()) as gateway:
        direct = await gateway.call("backup.post", DIRECT, principal=ANA, key="k")
        gateway.fallbacks._rests = lambda tool: tool == "mail.send"
        again = await send(gateway)
    assert direct.code is Code.KEY_MISMATCH
    assert (again.tool, again.replayed) == ("mail.send", True)
    assert post.senders == ["mail"]


@requirement("EXE-4", "IDM-4")
@durable
async def test_who_rests_does_not_pass_a_key_by_one_who_has_used_it(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    """The third has acted; the first rests; the second must not."""
    async with opened(store, tmp_path, post, clock, {}) as gateway:
        done = await gateway.call("pigeon.send", {"to": "bob"}, principal=ANA, key="k")
        assert done.status is Status.DONE
    async with opened(store, tmp_path, post, clock, {"send-message": SEND}, ids=Apart()) as gateway:
        gateway.fallbacks._rests = lambda tool: tool == "mail.send"
        seen = await send(gateway)
    assert (seen.tool, seen.replayed, post.senders) == ("pigeon.send", True, ["pigeon"])


@requirement("EXE-4", "IDM-2")
@pytest.mark.parametrize("rests", [True, False])
async def test_other_arguments_are_another_call_even_where_a_stand_in_is_told_the_same(
    store: str, tmp_path: Path, post: Post, clock: ManualClock, rests: bool
) -> None:
    said: dict[str, Any] = {"tool": "backup.post", "arguments": {"recipient": "=args.to", "body": "look"}}
    post.mood["mail"] = UNAVAILABLE
    async with opened(store, tmp_path, post, clock, {"send-message": {"tools": ["mail.send", said]}}) as it:
        it.fallbacks._rests = lambda tool: rests and tool == "mail.send"
        one = await it.call("mail.send", {"to": "bob", "text": "one"}, principal=ANA, key="k")
        other = await it.call("mail.send", {"to": "bob", "text": "two"}, principal=ANA, key="k")
        again = await it.call("mail.send", {"to": "bob", "text": "one"}, principal=ANA, key="k")
    assert (one.tool, one.status) == ("backup.post", Status.DONE)
    assert (other.status, other.code) == (Status.REFUSED, Code.KEY_MISMATCH)
    assert (again.replayed, post.senders) == (True, ["backup"])
