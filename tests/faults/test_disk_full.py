"""What happens to calls while the disk of the store is full, and after room was made?"""

import asyncio
import os
import resource
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import aiohttp
import pytest

from holdfast import config as configuration
from holdfast.gateway import auditing, logfile
from tests.faults.small_disk import small_disk
from tests.faults.triggers import full_disk
from tests.requirements import requirement
from tests.soak.effects import Effects, counting, told_of
from tests.soak.server import Server
from tests.stored import DURABLE, place, url_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit of another process is Linux's")

CONFIG = """\
store: {store}
upstreams:
  faults: {{functions: "tests.faults.tools:TOOLS"}}
"""
TRIES = 200
"""More calls than a page of any file has room for."""
REFUSED = 6
PATIENCE_S = 20.0
POLL_S = 0.05

Do = Callable[[], Awaitable[None]]


@dataclass
class Disk:
    server: Server
    effects: Effects
    http: aiohttp.ClientSession
    config: Path
    fill: Do = field(init=False)
    make_room: Do = field(init=False)
    told: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    async def call(self, key: str) -> dict[str, Any]:
        tool = "plain" if len(key) % 2 else "probed"
        body = {"tool": f"faults.{tool}", "arguments": {}, "key": key}
        async with self.http.post(f"{self.server.url}/v1/calls", json=body) as response:
            answer: dict[str, Any] = await response.json()
        self.told.setdefault(key, []).append(answer)
        return answer

    async def status(self, path: str) -> int:
        async with self.http.get(f"{self.server.url}{path}") as response:
            return int(response.status)

    async def until_ready(self) -> None:
        end = monotonic() + PATIENCE_S
        while await self.status("/ready") != 200:
            assert monotonic() < end, "it does not become ready again"
            await asyncio.sleep(POLL_S)  # the disk tells nobody


@asynccontextmanager
async def limited(kind: str, folder: Path, server: Server) -> AsyncIterator[tuple[Do, Do]]:
    """How its disk is filled, and how room is made."""
    if kind == "postgres":
        async with full_disk(url_of(kind, folder)) as full:
            yield full.fill, full.make_room
        return

    async def fill() -> None:
        size = (folder / "ledger.db-wal").stat().st_size
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    async def make_room() -> None:
        everything = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, everything)

    yield fill, make_room


@pytest.fixture(params=DURABLE)
async def disk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Disk]:
    kind = request.param
    async with (
        place(kind, tmp_path),
        serving(url_of(kind, tmp_path), tmp_path) as disk,
        limited(kind, tmp_path, disk.server) as (disk.fill, disk.make_room),
    ):
        yield disk


@asynccontextmanager
async def serving(store: str, folder: Path) -> AsyncIterator[Disk]:
    """A gateway on a disk that cannot be filled yet."""
    async with counting(folder / "effects") as effects:
        config = folder / "holdfast.yaml"
        config.write_text(CONFIG.format(store=store))
        server = Server("server", config, told_of(effects))
        try:
            await server.begin()
            async with aiohttp.ClientSession() as http:
                yield Disk(server, effects, http, config)
        finally:
            await server.close()


@requirement("AUD-5", "IDM-4", "TEL-6")
async def test_on_a_full_disk_nothing_runs_unrecorded_and_afterwards_everything_goes_on(disk: Disk) -> None:
    await survives(disk)


@pytest.mark.soak
@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk must be mounted, which only root may")
@requirement("AUD-5", "IDM-4", "TEL-6")
async def test_a_postgresql_without_a_byte_left_runs_nothing_unrecorded_either(tmp_path: Path) -> None:
    async with small_disk() as (url, small), serving(url, tmp_path) as disk:
        disk.fill, disk.make_room = small.fill, small.make_room
        await survives(disk)


async def survives(disk: Disk) -> None:
    before = [await disk.call(f"before-{number}") for number in range(4)]
    assert {answer["status"] for answer in before} == {"done"}
    await disk.fill()
    for number in range(TRIES):
        await disk.call(f"full-{number}")
        if sum(told[0]["status"] != "done" for told in disk.told.values()) >= REFUSED:
            break
    else:
        raise AssertionError("the disk is not full")
    assert await disk.status("/ready") == 503
    assert await disk.status(f"/v1/calls/{before[0]['call_id']}") == 200
    await disk.make_room()
    await disk.until_ready()
    for key in list(disk.told):
        await settled(disk, key)
    check(disk)
    await disk.server.close()
    config = configuration.load(disk.config)
    signed, checkpoints = logfile.public_key(config), auditing.checkpoint_path(config)
    report = await asyncio.to_thread(logfile.verify, logfile.place(config), checkpoints, signed)
    assert report.faults == []


async def settled(disk: Disk, key: str) -> None:
    """Ask again until there is an answer that stays."""
    end = monotonic() + PATIENCE_S
    while (await disk.call(key))["status"] not in ("done", "unknown"):
        assert monotonic() < end, f"{key} is stuck: {disk.told[key][-1]}"
        await asyncio.sleep(POLL_S)  # outcomes are written when the store takes them


def check(disk: Disk) -> None:
    happened = disk.effects.counts()
    for key, told in disk.told.items():
        done = [answer for answer in told if answer["status"] == "done"]
        assert happened[key] <= 1, key
        assert happened[key] == 1 or not done, key
        assert len({str(answer["data"]) for answer in done}) <= 1, key
        if told[0]["status"] == "done":  # what was told is not lost
            assert all(answer["status"] == "done" for answer in told), key
        if told[0]["status"] == "refused":  # nothing had run then
            assert told[0]["code"] == "RESOURCE_EXHAUSTED", told[0]
            assert told[-1]["status"] == "done", told
