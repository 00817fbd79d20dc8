"""Do sagas hold through hundreds of kills, on both stores?"""

import random
from pathlib import Path

import pytest

from tests.chains.crashed import crashed, wrong
from tests.chains.crashing import DURING, POINTS
from tests.requirements import requirement
from tests.stored import DURABLE, place, url_of

TIMES = 20


@pytest.mark.soak
@requirement("SAG-1", "CHN-7", "IDM-4")
@pytest.mark.parametrize("kind", DURABLE)
async def test_a_saga_killed_twenty_times_at_every_point_is_all_done_or_all_undone(
    kind: str, tmp_path: Path
) -> None:
    points = [*POINTS * TIMES, *DURING]
    random.Random(9).shuffle(points)
    async with place(kind, tmp_path):
        told = await crashed(url_of(kind, tmp_path), tmp_path, points)
    assert wrong(told, points) == []
