"""A job that nobody wants any more, or that takes too long."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.observation import Status
from tests.jobs.works import ADA, JOB, Works, tools, yard
from tests.requirements import requirement
from tests.stored import ALL

stores = pytest.mark.parametrize("kind", ALL)
SOON_S = 5.0
_UNSTOPPABLE: dict[str, Any] = {name: said for name, said in JOB.items() if name != "cancel"}


@stores
@requirement("EXE-6")
async def test_who_submitted_it_has_it_stopped_at_its_upstream(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path) as here:
        seen = await here.render(deadline_ms=3000)
        assert await here.gateway.cancel(ADA, seen.call_id) == "requested"
        now = await here.ended(seen)
        assert (now.status, now.code, here.works.stopped) == (Status.FAILED, "CANCELLED", ["job-1"])
        assert "cancelled by 'ada'" in (now.message or "")
        again = await here.render()
        assert (again.replayed, again.code, here.works.submitted) == (True, "CANCELLED", ["tea"])


@requirement("EXE-6")
async def test_what_is_being_cancelled_says_so(tmp_path: Path) -> None:
    async with yard("memory", tmp_path) as here:
        here.works.obeys = False
        seen = await here.render(deadline_ms=3000)
        await here.gateway.cancel(ADA, seen.call_id)
        now = await here.found(seen)
        assert now.pending is not None
        assert now.pending["cancelling"] == "cancelled by 'ada'"
        assert "job 'job-1' is being cancelled (cancelled by 'ada')" in (now.message or "")
        assert await here.gateway.cancel(ADA, seen.call_id) == "too late"


@stores
@requirement("EXE-6")
async def test_a_job_that_ended_before_it_was_stopped_has_ended(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path) as here:
        here.works.obeys = False
        seen = await here.render(deadline_ms=1000)
        here.works.finish()
        await here.gateway.cancel(ADA, seen.call_id)
        now = await here.ended(seen)
        assert (now.status, now.data) == (Status.DONE, {"file": "film.mp4"})


@stores
@requirement("EXE-6")
async def test_past_its_longest_wait_it_is_cancelled(kind: str, tmp_path: Path) -> None:
    works = Works()
    async with yard(kind, tmp_path, *tools(works, {**JOB, "max_wait_s": 20.0}), works=works) as here:
        seen = await here.render(deadline_ms=60_000)
        assert (seen.status, seen.code, works.stopped) == (Status.FAILED, "TIMEOUT", ["job-1"])
        assert "not over after 20 s" in (seen.message or "")
        assert not seen.remedy.retryable
        assert 20.0 <= here.clock.monotonic() <= 21.0


@stores
@requirement("EXE-6")
async def test_a_stop_that_was_accepted_and_never_heard_of_again_ends_it(kind: str, tmp_path: Path) -> None:
    works = Works(obeys=False)
    async with yard(kind, tmp_path, *tools(works, {**JOB, "max_wait_s": 20.0}), works=works) as here:
        seen = await here.render(deadline_ms=200_000)
        assert (seen.status, seen.code, works.stopped) == (Status.FAILED, "TIMEOUT", ["job-1"])
        assert here.clock.monotonic() >= 80.0


@stores
@requirement("EXE-6")
async def test_one_that_cannot_be_stopped_is_unknown_in_the_end(kind: str, tmp_path: Path) -> None:
    works = Works()
    job = {**_UNSTOPPABLE, "max_wait_s": 20.0}
    async with yard(kind, tmp_path, *tools(works, job), works=works) as here:
        seen = await here.render(deadline_ms=60_000)
        assert (seen.status, seen.code, seen.pending) == (Status.UNKNOWN, "OUTCOME_UNKNOWN", None)
        assert "its job could not be cancelled (not over after 20 s)" in (seen.message or "")
        looks = len(works.looked)
        await here.clock.advance(600.0)
        assert len(works.looked) == looks
        person = here.gateway.identity.at_terminal()
        now = await here.gateway.settle(person, seen.call_id, "no-effect", "there is no film")
        assert now.status is Status.FAILED


@requirement("EXE-6")
async def test_without_a_tool_that_stops_it_a_cancellation_is_too_late(tmp_path: Path) -> None:
    works = Works()
    async with yard("memory", tmp_path, *tools(works, _UNSTOPPABLE), works=works) as here:
        seen = await here.render(deadline_ms=3000)
        assert await here.gateway.cancel(ADA, seen.call_id) == "too late"


@requirement("EXE-6")
async def test_a_call_that_waits_for_its_job_can_be_cancelled_too(tmp_path: Path) -> None:
    async with yard("memory", tmp_path) as here:

        async def cancel_soon() -> None:
            await here.clock.sleep(SOON_S)
            [call] = list(here.gateway._under_way)
            assert await here.gateway.cancel(ADA, call.id) == "requested"

        cancelling = asyncio.ensure_future(cancel_soon())
        seen = await here.render(deadline_ms=60_000)
        await cancelling
        assert (seen.status, seen.code, here.works.stopped) == (Status.FAILED, "CANCELLED", ["job-1"])


@stores
@requirement("EXE-6")
@requirement("EXE-7")
async def test_what_a_job_changes_stays_locked_and_what_stops_it_is_let_in(kind: str, tmp_path: Path) -> None:
    works = Works()
    async with yard(kind, tmp_path, *tools(works, scope="*"), works=works) as here:
        seen = await here.render(deadline_ms=3000)
        other = await here.render("coffee", key="k-2", deadline_ms=3000)
        assert (other.code, works.submitted) == ("CONFLICT", ["tea"])
        await here.gateway.cancel(ADA, seen.call_id)
        assert ((await here.ended(seen)).code, works.stopped) == ("CANCELLED", ["job-1"])
        again = await here.render("coffee", key="k-2", deadline_ms=3000)
        assert (again.status, works.submitted) == (Status.PARTIAL, ["tea", "coffee"])
