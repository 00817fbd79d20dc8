"""Are there never more effects than the budget, and an exact rest, after real processes were killed?"""

import asyncio
from collections import Counter
from pathlib import Path
from time import monotonic

import aiohttp
import pytest

from tests.requirements import requirement
from tests.soak.effects import counting, told_of
from tests.soak.ledger import STORES, Ledger, ledger_in
from tests.soak.server import Server

CONFIG = """\
store: {store}
upstreams:
  soak: {{functions: "tests.soak.tools:TOOLS", concurrency: 64}}
limits:
  budgets: [{{per: tenant, kind: write, calls: {most}}}]
"""
TOOL = "soak.apply_probed"
CALMING_S = 60.0


class Kills:
    """Calls to several servers on one database, some of which are killed on the way."""

    def __init__(self, ledger: Ledger, servers: list[Server]) -> None:
        self.codes: Counter[str] = Counter()
        self.lost = 0
        self._ledger = ledger
        self._servers = servers

    async def start(self) -> None:
        for server in self._servers:
            await server.begin()

    async def storm(self, calls: int, kills: int) -> None:
        connector = aiohttp.TCPConnector(limit=200)
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
            group.create_task(self._kill(calls, kills))
            for number in range(calls):
                group.create_task(self._call(session, number))

    async def calls_one_by_one(self, first: int, count: int) -> None:
        async with aiohttp.ClientSession() as session:
            for number in range(first, first + count):
                await self._call(session, number)

    async def _call(self, session: aiohttp.ClientSession, number: int) -> None:
        server = self._servers[number % len(self._servers)]
        await server.up.wait()
        body = {"tool": TOOL, "arguments": {"item": number}, "key": f"key-{number}"}
        try:
            async with session.post(f"{server.url}/v1/calls", json=body) as response:
                answer = await response.json()
            self.codes[answer.get("code") or answer["status"]] += 1
        except (aiohttp.ClientError, OSError, TimeoutError):
            self.lost += 1  # nobody asks again: the sweep must find out

    async def _kill(self, calls: int, kills: int) -> None:
        for number in range(kills):
            enough = calls * (number + 1) / (kills + 40)
            while self.codes.total() + self.lost < enough:  # noqa: ASYNC110
                await asyncio.sleep(0.005)  # servers answer at their own pace
            victim = self._servers[number % len(self._servers)]
            await victim.kill()
            await victim.begin()

    async def calm(self) -> None:
        end = monotonic() + CALMING_S
        while await self._ledger.unsettled(TOOL) and monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # a poll of the database, with a deadline
        assert await self._ledger.unsettled(TOOL) == 0


async def storm(store: str, folder: Path, *, calls: int, most: int, kills: int, processes: int) -> Kills:
    async with ledger_in(store, folder) as ledger, counting(folder / "effects") as effects:
        config = folder / "holdfast.yaml"
        config.write_text(CONFIG.format(store=ledger.url, most=most))
        servers = [Server(f"server-{n}", config, told_of(effects)) for n in range(processes)]
        it = Kills(ledger, servers)
        try:
            await it.start()
            await it.storm(calls, kills)
            assert effects.counts().total() <= most
            await it.calm()
            happened = effects.counts()
            assert set(happened.values()) <= {
                1
            }  # none where all that had claimed were killed before they acted
            assert await ledger.budget() == (happened.total(), 0)
            await it.calls_one_by_one(calls, most - happened.total() + 5)
            assert effects.counts().total() == most
            assert set(effects.counts().values()) == {1}
            assert await ledger.budget() == (most, 0)
        finally:
            for server in servers:
                await server.close()
    return it


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
@requirement("POL-4", "IDM-4", "PPL-6")
async def test_a_budget_is_kept_by_several_processes_of_which_some_are_killed(
    tmp_path: Path, store: str
) -> None:
    it = await storm(store, tmp_path, calls=200, most=60, kills=2, processes=2)
    assert it.codes["BUDGET_EXHAUSTED"] > 0


@pytest.mark.soak
@pytest.mark.parametrize("store", STORES)
@requirement("POL-4", "IDM-4", "PPL-6")
async def test_ten_thousand_calls_against_a_budget_of_a_thousand_with_kills(
    tmp_path: Path, store: str
) -> None:
    it = await storm(store, tmp_path, calls=10_000, most=1000, kills=20, processes=3)
    assert it.lost > 0
    assert it.codes["BUDGET_EXHAUSTED"] > 0
