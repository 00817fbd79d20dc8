"""What became of sagas whose process died, counted outside."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.chains.crashing import goes_back
from tests.chains.orders import FIVE
from tests.soak.server import ROOT

UNDONE = [f"{name}~undo" for name in reversed(FIVE)]


async def crashed(url: str, folder: Path, points: Sequence[str]) -> list[dict[str, Any]]:
    return await program("tests.chains.crashing", url, folder, *points)


async def program(name: str, url: str, folder: Path, *more: str) -> list[dict[str, Any]]:
    """What it tells, line by line."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    log = folder / "program.log"
    with log.open("ab") as said:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", name, url, str(folder), *more),
            env={**os.environ, "PYTHONPATH": path},
            stdout=asyncio.subprocess.PIPE,
            stderr=said,
        )
    told, _ = await process.communicate()
    assert process.returncode == 0, log.read_text()[-3000:]
    return [json.loads(line) for line in told.splitlines()]


def wrong(told: Sequence[dict[str, Any]], points: Sequence[str]) -> list[dict[str, Any]]:
    """Those that are neither all done nor all undone, or did something twice."""
    assert [one["point"] for one in told] == list(points)
    return [one for one in told if (one["state"], one["did"]) != _right(one["point"])]


def _right(point: str) -> tuple[str, list[str]]:
    return ("COMPENSATED", [*FIVE, *UNDONE]) if goes_back(point) else ("COMPLETED", list(FIVE))
