"""On which databases do stores live, die and live again?"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.lives.tools import Slow
from tests.lives.town import ENGINES, Town, town


@pytest.fixture(autouse=True)
def effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVES_EFFECTS", str(tmp_path / "effects"))
    Slow.reset()


@pytest.fixture(params=ENGINES)
async def home(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Town]:
    async with town(request.param, tmp_path / "home") as found:
        yield found
