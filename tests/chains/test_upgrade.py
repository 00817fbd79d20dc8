"""Does a run that an older build has begun, and was killed over, go on with this one?

The older build is run for real: its files come from the history of this checkout.
"""

import asyncio
import io
import signal
import subprocess
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chains.crashed import UNDONE
from tests.chains.drivers import driver
from tests.chains.orders import BAD, FIVE, acted
from tests.postgres import empty_database
from tests.requirements import requirement
from tests.soak.server import ROOT
from tests.stored import DURABLE, rows, url_of

OLDER = "14aec03025c927c12b23c7c92e65b78e4d216ece"
"""The first build whose chains are whole: with it, a run's body and its journal have the shape they have."""
PATIENCE_S = 60.0
VERSION = "SELECT max(version) FROM {}schema_migration"


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its source and its tests, which know how to drive runs with it."""
    asked = ["git", "-C", str(ROOT), "archive", "--format=zip", OLDER, "src", "tests"]
    told = subprocess.run(asked, capture_output=True, check=False)
    if told.returncode:
        pytest.skip("the older build is not in the history of this checkout")
    tree = tmp_path_factory.mktemp("older")
    with zipfile.ZipFile(io.BytesIO(told.stdout)) as files:
        files.extractall(tree)
    return tree


@asynccontextmanager
async def unmigrated(kind: str, folder: Path) -> AsyncIterator[None]:
    """A place whose database no build has seen."""
    if kind == "sqlite":
        yield
        return
    async with empty_database() as url:
        (folder / "database.url").write_text(url)
        yield


def version(kind: str, folder: Path) -> int:
    [(number,)] = rows(kind, folder, VERSION)
    return int(number)


async def upgraded(kind: str, folder: Path, older: Path, point: str, item: str) -> list[dict[str, Any]]:
    """Begun with the older build and killed there; what this build made of it."""
    url = url_of(kind, folder)
    async with driver("old", url, folder, tree=older, keys=["k-1"], point=point, item=item) as old:
        begun = await old.said("begun")
        assert await old.ended() == -signal.SIGKILL, old.log
    before, did = version(kind, folder), acted(folder, begun["begun"])
    assert did, "it did nothing"
    async with driver("new", url, folder, runs=1) as new:
        told = await new.runs()
    assert before < version(kind, folder), "it was no older build"
    assert (told[0]["run"], told[0]["did"][: len(did)]) == (begun["begun"], did)
    assert "its runs are taken over" in new.log
    return told


@requirement("CHN-7", "SAG-1", "PPL-5")
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
async def test_a_saga_that_an_older_build_was_killed_over_is_finished_by_this_one(
    kind: str, tmp_path: Path, older: Path
) -> None:
    async with asyncio.timeout(PATIENCE_S), unmigrated(kind, tmp_path):
        [told] = await upgraded(kind, tmp_path, older, "after pack", "tea")
    assert (told["state"], told["did"]) == ("COMPLETED", list(FIVE))


@pytest.mark.soak
@requirement("CHN-7", "SAG-1", "PPL-5")
@pytest.mark.parametrize("kind", DURABLE)
async def test_a_saga_that_an_older_build_was_taking_back_is_taken_back_by_this_one(
    kind: str, tmp_path: Path, older: Path
) -> None:
    async with asyncio.timeout(PATIENCE_S), unmigrated(kind, tmp_path):
        [told] = await upgraded(kind, tmp_path, older, "after pack~undo", BAD)
    assert (told["state"], told["did"]) == ("COMPENSATED", [*FIVE, *UNDONE])


@pytest.mark.soak
@requirement("CHN-7", "SAG-1", "PPL-5", "IDM-4")
@pytest.mark.parametrize("kind", DURABLE)
async def test_a_step_that_an_older_build_did_and_could_not_write_down_is_not_done_again(
    kind: str, tmp_path: Path, older: Path
) -> None:
    async with asyncio.timeout(PATIENCE_S), unmigrated(kind, tmp_path):
        [told] = await upgraded(kind, tmp_path, older, "during ship", "tea")
    assert (told["state"], told["did"]) == ("COMPLETED", list(FIVE))
