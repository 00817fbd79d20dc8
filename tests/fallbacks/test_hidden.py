"""Does a caller learn of tools that it may not use, because they once answered for its key? EXE-4."""

from dataclasses import replace
from pathlib import Path

from holdfast import Code
from holdfast.testing import ManualClock
from tests.fallbacks.post import ANA, SEND, Post, opened, send, tried
from tests.requirements import requirement

UNAVAILABLE = Code.DEPENDENCY_UNAVAILABLE.value
NARROW = replace(ANA, scopes=frozenset({"mail:send"}))
"""The same principal, by a word that opens less."""


@requirement("EXE-4")
async def test_a_tool_that_answered_for_a_key_is_not_named_to_who_may_not_use_it(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= {"mail": UNAVAILABLE, "backup": UNAVAILABLE}
    async with opened(store, tmp_path, post, clock) as gateway:
        assert (await send(gateway)).tool == "pigeon.send"
        for mood in (UNAVAILABLE, "well"):
            post.mood |= {"mail": mood, "backup": mood}
            seen = await send(gateway, by=NARROW)
            assert (seen.tool, seen.code) == ("mail.send", Code.KEY_MISMATCH)
            assert "pigeon" not in seen.to_json().decode()
    assert post.senders == ["pigeon"]


@requirement("EXE-4")
async def test_what_was_tried_is_told_again_without_tools_that_the_caller_may_not_use(
    store: str, tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    first, second, _ = SEND["tools"]
    post.mood |= {"mail": UNAVAILABLE, "pigeon": UNAVAILABLE}
    ordered = {"send-message": {"tools": [first, "pigeon.send", second]}}
    async with opened(store, tmp_path, post, clock, ordered) as gateway:
        seen = await send(gateway)
        assert [tool for tool, _ in tried(seen)] == ["mail.send", "pigeon.send"]
        again = await send(gateway, by=NARROW)
        assert (again.replayed, tried(again)) == (True, [("mail.send", UNAVAILABLE)])
        assert "pigeon" not in again.to_json().decode()
