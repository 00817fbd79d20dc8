"""What is seen must be the same on every store."""

from pathlib import Path

import pytest

from tests.lifecycle.conftest import store
from tests.lifecycle.world import World
from tests.telemetry.world import Open, Seen, opener

__all__ = ["open_gateway", "seen", "store", "world"]


@pytest.fixture
def open_gateway(store: str, tmp_path: Path) -> Open:
    return opener(store, tmp_path)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def seen() -> Seen:
    return Seen()
