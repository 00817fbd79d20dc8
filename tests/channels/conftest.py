"""Every kind of store, and real receivers on this machine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.approvals.opening import House
from tests.channels.receiver import Receiver
from tests.lifecycle.conftest import store

__all__ = ["store"]


@pytest.fixture
def house(store: str, tmp_path: Path) -> House:
    return House(store, tmp_path)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver().open() as opened:
        yield opened
