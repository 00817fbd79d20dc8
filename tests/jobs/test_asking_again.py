"""Somebody wants to know now how far a job is that is looked at ever less often: what are they told?"""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.model.observation import Status
from holdfast.testing import ManualClock
from tests.jobs.works import ADA, JOB, Works, Yard, opened, tools, yard
from tests.requirements import requirement
from tests.stored import ALL, DURABLE, place

durable = pytest.mark.parametrize("kind", DURABLE)
stores = pytest.mark.parametrize("kind", ALL)

EVERY_S = 2.0
RARELY = {**JOB, "every_s": EVERY_S, "slowest_s": 3600.0, "max_wait_s": 86_400.0}
LONG_S = 300.0
"""After so long nobody looks again for a minute at least."""


async def _gone_on(here: Yard) -> None:
    """A job is submitted, and goes on until looks at it are rare."""
    seen = await here.render(deadline_ms=1000)
    assert seen.status is Status.PARTIAL
    await here.clock.advance(LONG_S)
    here.works.jobs["job-1"] |= {"share": 0.7}


@stores
@requirement("EXE-6")
async def test_the_same_key_is_told_how_far_it_is_by_now(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path, *tools(works := Works(), RARELY), works=works) as here:
        await _gone_on(here)
        again = await here.render(deadline_ms=1500)
        assert again.pending is not None
        assert (again.status, again.pending["progress"]) == (Status.PARTIAL, 0.7)


@stores
@requirement("EXE-6")
async def test_the_same_key_gets_the_outcome_of_a_job_that_is_over(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path, *tools(works := Works(), RARELY), works=works) as here:
        await _gone_on(here)
        works.finish()
        again = await here.render(deadline_ms=1500)
        assert (again.status, again.data) == (Status.DONE, {"file": "film.mp4"})
        assert works.submitted == ["tea"]


@stores
@requirement("EXE-6")
async def test_who_waits_for_it_gets_an_end_that_comes_meanwhile(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path, *tools(works := Works(), RARELY), works=works) as here:
        await _gone_on(here)
        began = here.clock.monotonic()
        here.after(3.0, works.finish)
        again = await here.render(deadline_ms=60_000)
        assert again.status is Status.DONE
        assert here.clock.monotonic() - began <= 2 * EVERY_S + 1.0  # its pauses begin anew


@stores
@requirement("EXE-6")
async def test_who_has_waited_in_vain_is_told_how_far_it_is_when_time_is_up(
    kind: str, tmp_path: Path
) -> None:
    async with yard(kind, tmp_path, *tools(works := Works(), RARELY), works=works) as here:
        await _gone_on(here)
        here.after(30.0, lambda: works.jobs["job-1"].update(share=0.9))  # between two looks: at 28 and 60
        again = await here.render(deadline_ms=34_000)
        assert again.pending is not None
        assert again.pending["progress"] == 0.9


async def _several(here: Yard) -> None:
    asked = [
        here.gateway.call("works.render", {"title": "tea"}, principal=ADA, key="k-1", deadline_ms=deadline)
        for deadline in (400, 800, 1200)
    ]
    await asyncio.gather(*asked)


@stores
@requirement("EXE-6")
async def test_however_many_ask_there_is_one_look_for_each_pause_of_the_contract(
    kind: str, tmp_path: Path
) -> None:
    works = Works(takes_s=0.5)
    async with yard(kind, tmp_path, *tools(works, RARELY), works=works) as here:
        await _gone_on(here)
        before = len(works.looked)
        for _ in range(10):
            await here.driven(_several(here))
        looks = works.looked[before:]
        assert len(looks) >= 3
        assert all(later - earlier >= EVERY_S for earlier, later in pairwise(looks))


@durable
@requirement("EXE-6")
async def test_it_is_looked_at_whichever_process_is_asked(kind: str, tmp_path: Path) -> None:
    works, clock = Works(takes_s=0.2), ManualClock()
    made = tools(works, RARELY)
    async with (
        place(kind, tmp_path),
        opened(kind, tmp_path, works, clock, *made) as one,
        opened(kind, tmp_path, works, clock, *made) as other,
    ):
        await _gone_on(one)
        before = len(works.looked)
        again = await other.render(deadline_ms=1500)
        assert again.pending is not None
        assert again.pending["progress"] == 0.7
        await one.render(deadline_ms=500)
        assert len(works.looked) == before + 1
        assert works.most_at_once == 1
