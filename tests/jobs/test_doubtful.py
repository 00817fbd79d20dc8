"""What becomes of a job when what is said of it makes no sense, or nobody can be asked any more?"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.call import Call, Decision
from holdfast.model.observation import Status
from holdfast.testing import ManualClock
from tests.jobs.works import ADA, JOB, Works, opened, tools, yard
from tests.requirements import requirement
from tests.stored import ALL, DURABLE, place

stores = pytest.mark.parametrize("kind", ALL)
durable = pytest.mark.parametrize("kind", DURABLE)
SHORT_MS = 10_000


def _says(**said: Any) -> Callable[[Works], None]:
    return lambda works: works.jobs["job-1"].update(said)


@pytest.mark.parametrize(
    "said",
    [
        {"share": float("nan"), "left_s": float("nan")},
        {"share": float("inf"), "left_s": float("inf")},
        {"share": -7, "left_s": -1e18},
        {"share": 1e300, "left_s": 1e300},
        {"share": "half", "left_s": None},
        {"share": True, "left_s": True},
        {"share": [[]], "left_s": {}},
    ],
    ids=lambda said: str(said)[:40],
)
@stores
@requirement("EXE-6")
async def test_a_share_or_an_end_that_makes_no_sense_is_not_told_and_stops_nothing(
    kind: str, said: dict[str, Any], tmp_path: Path
) -> None:
    async with yard(kind, tmp_path) as here:
        here.after(1.0, lambda: _says(**said)(here.works))
        seen = await here.render(deadline_ms=SHORT_MS)
        assert seen.pending is not None, seen
        assert seen.pending.get("progress", 0.0) in (0.0, 1.0)
        assert len(here.works.looked) >= 2
        again = await here.render(deadline_ms=SHORT_MS)
        assert again.status is Status.PARTIAL
        here.works.finish()
        assert (await here.ended(seen)).data == {"file": "film.mp4"}


@stores
@requirement("EXE-6")
async def test_what_has_ended_meanwhile_is_not_stopped(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path) as here:
        seen = await here.render(deadline_ms=1000)
        here.works.finish()
        await here.gateway.cancel(ADA, seen.call_id)
        now = await here.ended(seen)
        assert (now.status, now.data, here.works.stopped) == (Status.DONE, {"file": "film.mp4"}, [])


@durable
@requirement("EXE-6")
async def test_what_ended_while_nobody_was_there_to_look_is_not_stopped(kind: str, tmp_path: Path) -> None:
    works, clock = Works(), ManualClock()
    async with place(kind, tmp_path):
        async with opened(kind, tmp_path, works, clock) as first:
            seen = await first.render(deadline_ms=1000)
        works.finish()
        await clock.advance(2 * JOB["max_wait_s"])
        async with opened(kind, tmp_path, works, clock) as second:
            await second.gateway.tidy()
            assert (await second.ended(seen)).data == {"file": "film.mp4"}
            assert works.stopped == []


class Later:
    """Allows everything, and from some time on shows less."""

    version = "later"

    def __init__(self) -> None:
        self.redact: tuple[str, ...] = ()

    def decide(self, call: Call) -> Decision:
        return Decision("d-1", True, redact=self.redact, version=self.version)


@stores
@requirement("EXE-6")
@requirement("POL-1")
async def test_what_policy_masks_since_it_was_submitted_is_no_longer_told(kind: str, tmp_path: Path) -> None:
    policy = Later()
    async with yard(kind, tmp_path, policy=policy) as here:
        seen = await here.render(deadline_ms=1000)
        assert "job-1" in str(seen.to_dict())
        policy.redact = ("/job",)
        again = await here.render(deadline_ms=1000)
        assert (again.status, again.call_id) == (Status.PARTIAL, seen.call_id)
        assert "job-1" not in str(again.to_dict())


@durable
@requirement("EXE-6")
@requirement("PPL-5")
async def test_the_jobs_of_an_erased_tenant_keep_nobody_elses_waiting(kind: str, tmp_path: Path) -> None:
    hers = replace(ADA, tenant="acme")
    async with yard(kind, tmp_path) as here:
        given: dict[str, Any] = {"key": "k-1", "deadline_ms": 1000}
        await here.driven(here.gateway.call("works.render", {"title": "hers"}, principal=hers, **given))
        seen = await here.render(deadline_ms=1000)
        await here.gateway.log.erase(here.gateway.identity.at_terminal(), "acme")
        await here.driven(here.gateway.tidy())
        looks = len(here.works.looked)
        here.works.finish("job-2")
        assert (await here.ended(seen, within_s=30.0)).data == {"file": "film.mp4"}
        assert len(here.works.looked) <= looks + 4
        await here.clock.advance(2 * JOB["max_wait_s"])
        assert await here.gateway.jobs._kept.soonest(0.0, 0.0) is None


@stores
@requirement("EXE-6")
async def test_a_job_that_is_over_is_not_kept(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path) as here:
        seen = await here.render(deadline_ms=1000)
        here.works.finish()
        assert (await here.ended(seen)).status is Status.DONE
        await here.clock.advance(2 * 86_400.0)
        await here.driven(here.gateway.tidy(forget=True))
        assert await here.gateway.jobs._kept.get("default", seen.call_id) is None


@durable
@requirement("EXE-6")
async def test_a_job_whose_tool_is_gone_is_unknown_after_its_longest_wait(kind: str, tmp_path: Path) -> None:
    works, clock = Works(), ManualClock()
    async with place(kind, tmp_path):
        async with opened(kind, tmp_path, works, clock) as first:
            seen = await first.render(deadline_ms=1000)
        async with opened(kind, tmp_path, works, clock, *tools(works)[1:]) as second:
            await second.gateway.tidy()
            assert (await second.found(seen)).status is Status.PARTIAL
            now = await second.ended(seen)
            assert (now.status, now.code) == (Status.UNKNOWN, "OUTCOME_UNKNOWN")
            assert "'works.render'" in (now.message or "")
            assert clock.monotonic() >= JOB["max_wait_s"]
            assert (works.stopped, works.looked) == ([], [])
            assert await second.gateway.jobs._kept.soonest(0.0, 0.0) is None


@stores
@requirement("EXE-6")
async def test_a_job_that_nobody_keeps_any_more_is_not_said_to_go_on(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path) as here:
        seen = await here.render(deadline_ms=1000)
        kept = here.gateway.jobs._kept
        await here.clock.advance(JOB["every_s"])
        job = await kept.get("default", seen.call_id)
        assert job is not None
        await kept.end(job)
        now = await here.found(seen)
        assert (now.status, now.code, now.pending) == (Status.UNKNOWN, "OUTCOME_UNKNOWN", None)
        again = await here.render(deadline_ms=1000)
        assert (again.status, here.works.submitted) == (Status.UNKNOWN, ["tea"])


@requirement("EXE-6")
async def test_of_a_failure_told_at_length_the_beginning_is_told(tmp_path: Path) -> None:
    async with yard("memory", tmp_path) as here:
        here.after(1.0, lambda: here.works.fail("x" * 1_000_000))
        seen = await here.render()
        assert seen.status is Status.FAILED
        assert 1000 < len(seen.message or "") < 3000


@requirement("EXE-6")
async def test_a_tool_that_never_says_how_far_it_is_keeps_no_other_job_waiting(tmp_path: Path) -> None:
    works = Works()
    async with yard("memory", tmp_path, *tools(works, {**JOB, "max_wait_s": 60.0}), works=works) as here:
        seen = await here.render(deadline_ms=1000)
        works.takes_s = 1e9
        await here.clock.advance(10.0)
        works.takes_s = 0.0
        other = await here.render("coffee", key="k-2", deadline_ms=1000)
        works.finish("job-2")
        assert (await here.ended(other, within_s=20.0)).status is Status.DONE
        works.takes_s = 1e9
        assert (await here.ended(seen)).code in ("TIMEOUT", "OUTCOME_UNKNOWN")
