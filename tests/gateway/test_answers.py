"""What becomes of an MCP server's answer?"""

from pathlib import Path

from holdfast.model.errors import Code
from holdfast.model.observation import Status
from tests.gateway.depot import OVERLAY, Depot, fronted
from tests.gateway.test_discovery import ME
from tests.requirements import requirement

MAPPED = OVERLAY.replace(
    "idempotency: none}",
    "idempotency: none, in_band: \"has(result.content) ? 'jammed' : ''\", "
    "errors: [{match: jammed, code: CONFLICT, effect: none}]}",
)


@requirement("NAM-5", "EXE-5")
async def test_the_answer_is_kept_in_both_its_forms_and_a_replay_has_them_too(tmp_path: Path) -> None:
    async with fronted(Depot(), tmp_path) as gateway:
        first = await gateway.call("depot.take", {"item": "nail"}, principal=ME, key="k-1")
        again = await gateway.call("depot.take", {"item": "nail"}, principal=ME, key="k-1")
    assert first.data == {"item": "nail", "taken": 1}
    assert first.native is not None
    assert first.native["structuredContent"] == first.data
    assert (again.replayed, again.data, again.native) == (True, first.data, first.native)


@requirement("VER-1")
async def test_a_tool_that_says_it_failed_has_failed_for_good_and_its_words_are_kept(tmp_path: Path) -> None:
    depot = Depot()
    async with fronted(depot, tmp_path) as gateway:
        write = await gateway.call("depot.take", {"item": "jammed"}, principal=ME, key="k-1")
        again = await gateway.call("depot.take", {"item": "jammed"}, principal=ME, key="k-1")
        read = await gateway.call("depot.stock", {"item": "jammed"}, principal=ME)
    assert (write.status, again.replayed, read.status) == (Status.FAILED, True, Status.FAILED)
    assert "the door is jammed" in (write.message or "")
    assert write.native is not None
    assert write.native["isError"] is True
    assert depot.taken == ["jammed"]


@requirement("VER-1")
async def test_an_overlay_may_know_better_what_an_error_means(tmp_path: Path) -> None:
    depot = Depot()
    async with fronted(depot, tmp_path, overlay=MAPPED) as gateway:
        first = await gateway.call("depot.take", {"item": "jammed"}, principal=ME, key="k-1")
        again = await gateway.call("depot.take", {"item": "jammed"}, principal=ME, key="k-1")
    assert (first.code, again.replayed) == (Code.CONFLICT, False)
    assert depot.taken == ["jammed", "jammed"]
