"""Which stores must keep the same promises? Every one in `STORES`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.stores.world import STORES, World


@pytest.fixture(params=list(STORES))
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with STORES[request.param](tmp_path) as opened:
        yield opened
