"""A process that dies in a transaction takes it with it: afterwards all of it is there, or nothing."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.chains.banking import POINTS
from tests.requirements import requirement
from tests.soak.server import ROOT
from tests.stored import DURABLE, place, url_of

DONE = ("before book", "during book", "during book~commit", "after book~commit")
"""It was not begun, or could be begun again, or all of it was committed."""
MOST_S = 300.0


async def told(url: str, folder: Path, *points: str) -> list[dict[str, Any]]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.chains.banking", url, str(folder), *points),
        env={**os.environ, "PYTHONPATH": path},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(MOST_S):
        said, wrong = await process.communicate()
    assert process.returncode == 0, wrong.decode()[-3000:]
    return [json.loads(line) for line in said.splitlines() if line.startswith(b"{")]


@requirement("CHN-5", "CHN-7", "EXE-8")
@pytest.mark.parametrize("kind", [DURABLE[0], pytest.param(DURABLE[1], marks=pytest.mark.soak)])
async def test_a_transaction_killed_anywhere_is_there_as_a_whole_or_not_at_all(
    kind: str, tmp_path: Path
) -> None:
    async with place(kind, tmp_path):
        lines = await told(url_of(kind, tmp_path), tmp_path, *POINTS)
    deaths = {one["point"]: one["died"] for one in lines if "died" in one}
    assert deaths == dict.fromkeys(POINTS, -signal.SIGKILL)
    ended = {one["point"]: (one["state"], one["did"]) for one in lines if "state" in one}
    done: tuple[str, list[str]] = ("COMPLETED", ["give", "note", "take"])
    assert ended == {point: done if point in DONE else ("COMPENSATED", []) for point in POINTS}
