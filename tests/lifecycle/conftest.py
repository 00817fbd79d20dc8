"""Every lifecycle test runs on every store."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from holdfast import Gateway
from tests.lifecycle.world import World, opened
from tests.stored import ALL, place

Open = Callable[..., AbstractAsyncContextManager[Gateway]]


@pytest.fixture(params=ALL)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    async with place(request.param, tmp_path) as kind:
        yield kind


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def open_gateway(store: str, tmp_path: Path) -> Open:
    def open_it(*sources: object, **options: Any) -> AbstractAsyncContextManager[Gateway]:
        return opened(store, tmp_path, *sources, **options)

    return open_it
