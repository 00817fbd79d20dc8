"""What every test of fallbacks starts from."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.testing import ManualClock
from tests.fallbacks.post import Post
from tests.stored import ALL, place


@pytest.fixture(params=ALL)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    async with place(request.param, tmp_path) as kind:
        yield kind


@pytest.fixture
def post() -> Post:
    return Post()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
