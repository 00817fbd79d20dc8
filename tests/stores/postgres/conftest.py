"""A database of a test's own, and a wire to it that breaks where the test says."""

from collections.abc import AsyncIterator, Iterator

import pytest

from holdfast.stores.postgres import connection
from tests.postgres import database
from tests.stores.postgres.wire import Wire, wired


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with database() as url:
        yield url


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is time to connect and none to try again: what is not known at once is not found out."""
    monkeypatch.setattr(connection, "AGAIN_S", 3600.0)


@pytest.fixture
def wire(url: str) -> Iterator[Wire]:
    with wired(url) as opened:
        yield opened
