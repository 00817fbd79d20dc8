"""Who asks after a job, when several processes could? And what of a read that takes its time?"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import Effect, Undo, tool
from holdfast.model.errors import ConfigError
from holdfast.model.observation import Observation, Status
from holdfast.testing import ManualClock
from tests.jobs.works import ADA, JOB, Works, opened, tools, yard
from tests.requirements import requirement
from tests.stored import ALL, DURABLE, place

durable = pytest.mark.parametrize("kind", DURABLE)
stores = pytest.mark.parametrize("kind", ALL)


@durable
@requirement("EXE-6")
@requirement("IDM-4")
async def test_two_processes_never_ask_after_one_job_at_once(kind: str, tmp_path: Path) -> None:
    works, clock = Works(takes_s=1.0), ManualClock()
    async with (
        place(kind, tmp_path),
        opened(kind, tmp_path, works, clock) as one,
        opened(kind, tmp_path, works, clock) as other,
    ):
        seen = await one.render(deadline_ms=1000)
        await other.gateway.jobs.tend()
        await clock.advance(120.0)
        assert works.most_at_once == 1
        assert len(works.looked) <= 11  # 2, 4, 8 and then every 16 seconds, each up to a fifth less
        works.finish()
        now = await other.ended(seen)
        assert (now.data, works.submitted) == ({"file": "film.mp4"}, ["tea"])


@durable
@requirement("EXE-6")
async def test_what_one_process_submitted_another_one_follows(kind: str, tmp_path: Path) -> None:
    works, clock = Works(), ManualClock()
    async with place(kind, tmp_path):
        async with opened(kind, tmp_path, works, clock) as first:
            seen = await first.render(deadline_ms=1000)
        works.finish()
        async with opened(kind, tmp_path, works, clock) as second:
            assert (await second.found(seen)).status is Status.PARTIAL
            await second.gateway.tidy()
            assert (await second.ended(seen)).data == {"file": "film.mp4"}


@durable
@requirement("EXE-6")
async def test_who_waits_here_hears_of_the_end_that_another_process_saw(kind: str, tmp_path: Path) -> None:
    works, clock = Works(), ManualClock()
    async with (
        place(kind, tmp_path),
        opened(kind, tmp_path, works, clock) as one,
        opened(kind, tmp_path, works, clock) as other,
    ):
        one.gateway.jobs.wake = lambda: None  # type: ignore[method-assign]  # it waits, and never asks
        one.after(5.0, works.finish)
        await other.gateway.jobs.tend()
        waiting = asyncio.ensure_future(one.render(deadline_ms=60_000))
        while not works.submitted:  # the test moves time
            await clock.advance(0.1)
        await clock.advance(0.5)
        await other.gateway.jobs.tend()
        assert (await waiting).data == {"file": "film.mp4"}


@requirement("EXE-6")
async def test_a_process_that_closes_tells_who_waits_that_it_goes_on(tmp_path: Path) -> None:
    works, clock = Works(), ManualClock()
    async with opened("memory", tmp_path, works, clock) as here:
        waiting = asyncio.ensure_future(
            here.gateway.call("works.render", {"title": "tea"}, principal=ADA, key="k-1", deadline_ms=60_000)
        )
        await clock.advance(10.0)
        assert not waiting.done()
        await here.gateway.close()
        seen: Observation = await waiting
        assert (seen.status, seen.pending is not None) == (Status.PARTIAL, True)


# --- reads --------------------------------------------------------------------------------------------------


def _report(works: Works, **said: Any) -> Any:
    @tool(effect=Effect.READ_ONLY, job={**JOB, "result": "state.made"}, **said)
    async def report(title: str) -> dict[str, Any]:
        """Count something at length."""
        return {"job": works.begin(title)}

    return report


@stores
@requirement("EXE-6")
async def test_a_read_that_takes_its_time_is_followed_by_its_own_call(kind: str, tmp_path: Path) -> None:
    works = Works()
    async with yard(kind, tmp_path, _report(works), *tools(works)[1:], works=works) as here:
        here.after(5.0, works.finish)
        seen = await here.driven(here.gateway.call("works.report", {"title": "tea"}, principal=ADA))
        assert (seen.status, seen.data) == (Status.DONE, {"file": "film.mp4"})


@requirement("EXE-6")
async def test_a_read_out_of_time_is_stopped_and_has_failed(tmp_path: Path) -> None:
    works = Works()
    async with yard("memory", tmp_path, _report(works), *tools(works)[1:], works=works) as here:
        asked = here.gateway.call("works.report", {"title": "tea"}, principal=ADA, deadline_ms=10_000)
        seen = await here.driven(asked)
        assert (seen.status, seen.code, works.stopped) == (Status.FAILED, "TIMEOUT", ["job-1"])
        assert here.clock.monotonic() <= 11.0


@requirement("EXE-6")
@requirement("EXE-1")
async def test_a_read_whose_caller_leaves_is_stopped(tmp_path: Path) -> None:
    works = Works()
    async with yard("memory", tmp_path, _report(works), *tools(works)[1:], works=works) as here:
        waiting = asyncio.ensure_future(
            here.gateway.call("works.report", {"title": "tea"}, principal=ADA, deadline_ms=60_000)
        )
        await here.clock.advance(3.0)
        waiting.cancel()
        await here.clock.advance(1.0)
        assert works.stopped == ["job-1"]


@requirement("EXE-6")
async def test_a_failed_report_is_a_failed_read(tmp_path: Path) -> None:
    works = Works()
    async with yard("memory", tmp_path, _report(works), *tools(works)[1:], works=works) as here:
        here.after(1.0, lambda: works.fail("no such year"))
        seen = await here.driven(here.gateway.call("works.report", {"title": "tea"}, principal=ADA))
        assert seen.status is Status.FAILED
        assert "no such year" in (seen.message or "")


# --- contracts ----------------------------------------------------------------------------------------------


@requirement("EXE-6")
@requirement("CON-2")
async def test_what_is_wrong_with_a_job_is_told_all_at_once(tmp_path: Path) -> None:
    works = Works()
    job = {
        "id": "answer.job",
        "poll": {"tool": "stop", "arguments": {"job": "=job"}},
        "done": "state.done &&",
        "cancel": {"tool": "look", "arguments": {"job": "=job", "now": True}},
        "every_s": 10.0,
        "slowest_s": 1.0,
    }
    with pytest.raises(Exception, match="not admitted") as refused:
        async with yard("memory", tmp_path, *tools(works, job), works=works):
            pass
    told = str(refused.value)
    for part in (
        "'runtime.job.id'",
        "'runtime.job.done'",
        "'runtime.job.poll' reads 'works.stop', which is LOW_RISK_INTERNAL",
        "'runtime.job.cancel' names 'works.look', which is READ_ONLY and can stop nothing",
        "'runtime.job.slowest_s' of 1 is less than 'every_s' (10)",
    ):
        assert part in told, told


@requirement("EXE-6")
async def test_to_be_called_back_one_must_know_where(tmp_path: Path) -> None:
    works = Works()

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.EXACT,
        manifest=[("film", "CREATE", "one")],
        idempotency="none",
        job={**JOB, "callback": "tell"},
    )
    async def render(title: str, tell: str) -> dict[str, Any]:
        """Make a film."""
        return {"job": works.begin(title), "tell": tell}

    with pytest.raises(ConfigError, match="set 'base_url' to where it reaches this gateway"):
        async with yard("memory", tmp_path, render, *tools(works)[1:], works=works):
            pass
