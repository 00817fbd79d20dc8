"""Do processes that share a store keep out of each other's way? Told by the tools themselves. EXE-7."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.conflicts.worker import wishes
from tests.polling import FELT_S
from tests.requirements import requirement
from tests.stored import DURABLE, url_of

COUNT = 12


class Painter:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()

    async def hear(self) -> str:
        assert self.process.stdout is not None
        async with asyncio.timeout(3 * FELT_S):
            return (await self.process.stdout.readline()).decode().strip()


@asynccontextmanager
async def painter(store: str, folder: Path, name: str) -> AsyncIterator[Painter]:
    command = ("-m", "tests.conflicts.worker", url_of(store, folder), str(folder), name)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        found = Painter(process)
        assert await found.hear() == "ready"
        yield found
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def seen(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "seen").read_text().splitlines()]


def overlaps(found: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs that were in one room at one time."""
    return [
        (one, other)
        for one, other in combinations(found, 2)
        if (set(one["rooms"]) & set(other["rooms"]) or "*" in one["rooms"] or "*" in other["rooms"])
        and one["from"] < other["to"]
        and other["from"] < one["to"]
    ]


Hired = Callable[[str], AbstractAsyncContextManager[Painter]]


@pytest.fixture
def hired(store: str, tmp_path: Path) -> Hired:
    return lambda name: painter(store, tmp_path, name)


@requirement("EXE-7")
@pytest.mark.parametrize("store", DURABLE, indirect=True)
async def test_two_processes_never_change_the_same_at_once(hired: Hired, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        painters = [await stack.enter_async_context(hired(name)) for name in "ab"]
        for one in painters:
            await one.say(f"many {COUNT}")
        told = [json.loads(await one.hear()) for one in painters]
        found = seen(tmp_path)
        assert told == [["done"] * COUNT] * 2
        assert len(found) == 2 * len(wishes(COUNT))
        assert {one["by"] for one in found} == {one.process.pid for one in painters}
        assert not overlaps(found)
        (tmp_path / "seen").unlink()
        for one in painters:
            await one.say(f"blind {COUNT}")
        for one in painters:
            assert json.loads(await one.hear()) == ["done"] * COUNT
        assert overlaps(seen(tmp_path)), "those who tell nobody what they touch are in each other's way"


@requirement("EXE-7", "IDM-4")
@pytest.mark.parametrize("store", DURABLE, indirect=True)
async def test_what_a_killed_process_was_changing_can_be_changed_by_another(
    hired: Hired, tmp_path: Path
) -> None:
    async with hired("a") as first, hired("b") as second:
        await first.say("hold r0 r1 r2")
        assert await first.hear() == "inside"
        await second.say(f"many {COUNT}")
        first.process.send_signal(signal.SIGKILL)
        assert json.loads(await second.hear()) == ["done"] * COUNT
    assert not overlaps(seen(tmp_path))
