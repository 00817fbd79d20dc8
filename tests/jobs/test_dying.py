"""A job whose process is killed anywhere: does it go on, once, and is its outcome found?"""

from pathlib import Path

import pytest

from tests.chains.crashed import program
from tests.jobs.dying import POINTS, STOPPED
from tests.requirements import requirement
from tests.stored import place, url_of


@requirement("EXE-6", "IDM-4")
@pytest.mark.parametrize(
    ("kind", "points"),
    [
        ("sqlite", POINTS),
        ("postgres", ("after outcome", "during look")),
        pytest.param("postgres", POINTS, marks=pytest.mark.soak, id="postgres-all"),
    ],
)
async def test_a_job_whose_process_was_killed_is_followed_by_another_one(
    kind: str, points: tuple[str, ...], tmp_path: Path
) -> None:
    async with place(kind, tmp_path):
        told = await program("tests.jobs.dying", url_of(kind, tmp_path), tmp_path, *points)
    assert [one["point"] for one in told] == list(points)
    for one in told:
        stopped = one["point"] in STOPPED
        assert one["status"] == ("failed" if stopped else "done"), one
        assert one["data"] == (None if stopped else {"flour": 7}), one
        assert one["did"] == (["submit", "stop"] if stopped else ["submit"]), one
