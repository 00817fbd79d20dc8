"""Do people see what was tried, where they are asked and where they look a call up? EXE-4."""

from pathlib import Path

from holdfast import Code, Status
from holdfast.testing import ManualClock
from tests.console.asking import signed_in, text
from tests.fallbacks.post import Post, opened, send
from tests.fallbacks.test_last import ASKING, AUTH, EVERYBODY
from tests.requirements import requirement

UNAVAILABLE = Code.DEPENDENCY_UNAVAILABLE.value


@requirement("EXE-4")
async def test_the_page_of_an_escalated_question_says_what_was_tried(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    post.mood |= dict.fromkeys(EVERYBODY, UNAVAILABLE)
    async with opened("memory", tmp_path, post, clock, ASKING, auth=AUTH) as gateway:
        held = await send(gateway, deadline_ms=30_000)
        assert held.approval is not None
        [olga] = await signed_in(gateway, "olga")
        said = text(await olga.get(f"/approvals/{held.approval.id}"))
    assert "No tool of send-message could answer" in said
    assert "mail.send dependency unavailable" in said
    assert "pigeon is out of order" in said
    assert "it was wanted by" in said


@requirement("EXE-4")
async def test_the_page_of_a_call_that_fell_back_says_so(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    async with opened("memory", tmp_path, post, clock, auth=AUTH) as gateway:
        for _ in range(5):
            gateway._runtime.breaker("mail.send").failed()
        seen = await send(gateway)
        assert seen.status is Status.DONE
        [olga] = await signed_in(gateway, "olga")
        said = text(await olga.get(f"/calls/{seen.call_id}"))
    assert "Level 1 of send-message" in said
    assert "after mail.send (passed over)" in said
