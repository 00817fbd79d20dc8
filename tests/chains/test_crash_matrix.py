"""Is a saga all done or all undone, each thing once, wherever the process that drove it was killed?"""

from pathlib import Path

import pytest

from tests.chains.crashed import crashed, wrong
from tests.chains.crashing import DURING, POINTS, goes_back
from tests.requirements import requirement
from tests.stored import DURABLE, place, url_of

FORWARD = [point for point in POINTS if not goes_back(point)]
BACK = [point for point in POINTS if goes_back(point)]
HALF = ["during charge", "during pack~undo"]


def test_the_matrix_has_two_points_for_each_step_each_undoing_and_the_turn() -> None:
    assert (len(FORWARD), len(BACK), len(set(POINTS))) == (10, 12, 22)
    assert set(HALF) <= set(DURING)


@requirement("SAG-1", "CHN-7", "IDM-4")
@pytest.mark.parametrize("points", [FORWARD, BACK], ids=["forward", "back"])
@pytest.mark.parametrize("kind", DURABLE)
async def test_a_saga_killed_anywhere_is_all_done_or_all_undone_and_acts_once(
    kind: str, points: list[str], tmp_path: Path
) -> None:
    async with place(kind, tmp_path):
        told = await crashed(url_of(kind, tmp_path), tmp_path, points)
    assert wrong(told, points) == []
    assert all(one["rounds"] == 2 for one in told), told


@requirement("SAG-1", "CHN-7", "IDM-4")
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
async def test_a_step_that_a_killed_process_had_half_done_is_looked_into_and_not_done_again(
    kind: str, tmp_path: Path
) -> None:
    async with place(kind, tmp_path):
        told = await crashed(url_of(kind, tmp_path), tmp_path, HALF)
    assert wrong(told, HALF) == []
