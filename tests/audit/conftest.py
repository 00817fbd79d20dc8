"""Which logs do the tests look at?"""

import asyncio
from pathlib import Path

import pytest

from tests.audit.world import Place, fill

RECORDS = 1000


@pytest.fixture(scope="session")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A log of a thousand records; nobody may change it, everybody may copy it."""
    place = Place(tmp_path_factory.mktemp("thousand"))
    asyncio.run(fill(place, RECORDS))
    return place


@pytest.fixture(scope="session")
def exported(thousand: Place) -> bytes:
    return thousand.export()


@pytest.fixture
def log(thousand: Place, tmp_path: Path) -> Place:
    """A copy to lay hands on."""
    return thousand.copy(tmp_path / "log")


@pytest.fixture(scope="session")
def place_of_80(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A small log, for what is done to every byte of it."""
    place = Place(tmp_path_factory.mktemp("eighty"))
    asyncio.run(fill(place, 80))
    return place
