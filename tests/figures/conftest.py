"""Where a test asks for a house, it runs on every store."""

from pathlib import Path

import pytest

from tests.approvals.opening import House
from tests.figures.shop import Shop
from tests.lifecycle.conftest import store

__all__ = ["store"]


@pytest.fixture
def house(store: str, tmp_path: Path) -> House:
    return House(store, tmp_path)


@pytest.fixture
def shop(house: House) -> Shop:
    return Shop(house.clock)
