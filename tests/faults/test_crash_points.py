"""Is what a crash leaves behind what the documentation says, at every point of a call's life?"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast import Gateway
from holdfast import config as configuration
from holdfast.gateway.storing import root_of
from holdfast.gateway.wiring import connected
from holdfast.servers.app import build
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.system import RandomIds, SystemClock
from tests.faults.crashing import POINTS
from tests.faults.table import crash_table
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.soak.effects import Effects, counting, told_of
from tests.soak.server import ROOT
from tests.stored import DURABLE, Durable, place, rows, url_of

CONFIG = """\
store: {}
upstreams:
  faults: {{functions: "tests.faults.tools:TOOLS"}}
"""
TOOLS = {"no probe": "faults.plain", "probe": "faults.probed"}
SETTLED_S = 30.0
"""Far more than deadline + settle_after; only a broken sweep needs it."""

POLL_S = 0.05
HEARTBEAT_S = 0.1
"""Of the bystander on PostgreSQL: it sees a death while the attempt's time still runs."""


@dataclass
class Evidence:
    """What was seen at one crash point, in the words of the table."""

    cells: dict[str, str] = field(default_factory=dict)
    effects: dict[str, int] = field(default_factory=dict)
    """How often it had happened in the end, by column family."""


class Bystander:
    """Another process on the same database: it sweeps when told to, so that nothing is a matter of luck."""

    def __init__(self, gateway: Gateway, kind: str, folder: Path, effects: Effects) -> None:
        self.gateway = gateway
        self.kind, self.folder = kind, folder
        self.effects = effects
        self._client = Client(build(gateway), {"host": "127.0.0.1:8080"})

    async def retry(self, tool: str, key: str) -> str:
        body = await self._send(tool, key)
        return f"{body['http']} {body['status']}, {'replay' if body['replayed'] else 'runs'}"

    async def settle(self, tool: str, key: str, how: str) -> None:
        call_id = (await self._send(tool, key))["call_id"]
        outcome: Any = how.removeprefix("settle ")
        await self.gateway.settle(
            self.gateway.identity.at_terminal(), call_id, outcome, "looked at the register"
        )

    async def _send(self, tool: str, key: str) -> dict[str, Any]:
        answer = await self._client.post("/v1/calls", {"tool": tool, "arguments": {}, "key": key})
        return {**answer.json(), "http": answer.status}

    def state(self, key: str) -> str:
        states = rows(self.kind, self.folder, "SELECT key, state FROM {}operation")
        return str(dict(states).get(key, "nothing"))

    async def sweep_until_settled(self, keys: list[str]) -> None:
        async with asyncio.timeout(SETTLED_S):
            while any(self.state(key) in ("dispatched", "unknown") for key in keys):
                await self.gateway.tidy()
                await asyncio.sleep(POLL_S)  # real time must pass: the deadline is the dead worker's


async def crash_everywhere(kind: str, folder: Path, patch: pytest.MonkeyPatch) -> dict[str, Evidence]:
    config = folder / "holdfast.yaml"
    patch.chdir(ROOT)
    async with place(kind, folder), counting(folder / "effects") as effects:
        config.write_text(CONFIG.format(url_of(kind, folder)))
        for name, value in told_of(effects).items():
            patch.setenv(name, value)
        async with bystander(kind, config, effects) as other:
            seen = {point: await crash(point, config, other) for point in POINTS}
            await other.sweep_until_settled([key(point, "probe") for point in POINTS])
            for point in POINTS:
                await look_later(point, seen[point], other)
    return seen


@asynccontextmanager
async def bystander(kind: str, file: Path, effects: Effects) -> AsyncIterator[Bystander]:
    config, clock = configuration.load(file), SystemClock()
    root = partial(root_of, config)
    opened: Durable = SqliteStore(config.store_path, clock)
    if kind == "postgres":
        opened = PostgresStore(config.store, root, clock, heartbeat_s=HEARTBEAT_S)
    async with opened as store:
        gateway = Gateway.assemble(config, store, connected(config), clock=store.clock, ids=RandomIds())
        try:
            yield Bystander(gateway, kind, file.parent, effects)
        finally:
            await gateway.close()


async def crash(point: str, config: Path, other: Bystander) -> Evidence:
    await die(point, config)
    seen, happened = Evidence(), other.effects.counts()
    by_tool = {family: "yes" if happened[key(point, family)] else "no" for family in TOOLS}
    state = {family: other.state(key(point, family)) for family in TOOLS}
    seen.cells["effect happened"] = agreed(by_tool)
    seen.cells["ledger right after"] = agreed(state)
    answers = await asyncio.gather(*(other.retry(tool, key(point, f)) for f, tool in TOOLS.items()))
    for family, answer in zip(TOOLS, answers, strict=True):
        seen.cells[f"{family}, retry at once"] = answer
    return seen


async def die(point: str, config: Path) -> None:
    """One server, one write of each tool under way, and a client that never hears of either again."""
    command = ("-m", "tests.faults.crashing", str(config), point, str(len(TOOLS)))
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    url = f"http://127.0.0.1:{int(await process.stdout.readline())}/v1/calls"
    async with aiohttp.ClientSession() as session:
        bodies = [{"tool": tool, "arguments": {}, "key": key(point, f)} for f, tool in TOOLS.items()]
        answers = await asyncio.gather(*(session.post(url, json=b) for b in bodies), return_exceptions=True)
    assert all(isinstance(answer, aiohttp.ClientConnectionError) for answer in answers), answers
    assert await process.wait() == -9


async def look_later(point: str, seen: Evidence, other: Bystander) -> None:
    for family, tool in TOOLS.items():
        seen.cells[f"{family}, retry later"] = await other.retry(tool, key(point, family))
    tool, name = TOOLS["no probe"], key(point, "no probe")
    advice = crash_table()[point]["a person, where there is no probe"]
    if advice != "nothing":
        await other.settle(tool, name, advice)
    seen.cells["a person, where there is no probe"] = advice
    seen.cells["retry after that"] = await other.retry(tool, name)
    seen.effects = {family: other.effects.counts()[key(point, family)] for family in TOOLS}


def key(point: str, family: str) -> str:
    return f"{point}/{family}".replace(" ", "-")


def agreed(by_tool: dict[str, str]) -> str:
    """What holds with a probe and without."""
    [value] = set(by_tool.values())
    return value


def test_the_table_has_a_row_for_every_crash_point() -> None:
    assert tuple(crash_table()) == POINTS


@requirement("IDM-4", "IDM-5", "AUD-5")
@pytest.mark.parametrize("kind", DURABLE)
async def test_a_crash_leaves_what_the_documentation_says_and_in_the_end_one_effect(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All points in one test: what is left of each is looked at later, when all have had their time."""
    seen = await crash_everywhere(kind, tmp_path, monkeypatch)
    assert {point: one.cells for point, one in seen.items()} == crash_table()
    assert all(one.effects == {"no probe": 1, "probe": 1} for one in seen.values()), seen
