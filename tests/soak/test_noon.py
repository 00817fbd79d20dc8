"""Backups under load, every server killed, the store put back: does any key run a second time?"""

import asyncio
import json
import os
import random
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.requirements import requirement
from tests.soak.audit import check_log
from tests.soak.effects import Effects, counting, told_of
from tests.soak.ledger import STORES, ledger_in
from tests.soak.server import ROOT, Server
from tests.soak.storm import CONFIG, PLAIN, delivery_of

SERVERS = 3
CLIENTS = 4
BACKUPS = 3
BETWEEN = 60
"""Answers between two backups, and between the last one and the end of everything."""

Answer = dict[str, Any]


class Day:
    def __init__(self, folder: Path, store: str, effects: Effects) -> None:
        self.config = folder / "holdfast.yaml"
        self.config.write_text(CONFIG.format(store=store, tools="TOOLS"))
        self._environment = told_of(effects)
        self.servers = [Server(f"server-{n}", self.config, told_of(effects)) for n in range(SERVERS)]
        self.sent: set[int] = set()
        self.done: dict[int, Answer] = {}
        self._numbers: Iterator[int] = count()
        self._answered = asyncio.Condition()

    async def open(self) -> None:
        await asyncio.gather(*(server.begin() for server in self.servers))

    async def kill(self) -> None:
        await asyncio.gather(*(server.kill() for server in self.servers))

    async def close(self) -> None:
        for server in self.servers:
            await server.close()

    async def client(self, session: aiohttp.ClientSession) -> None:
        """New keys, one after the other, to whichever server, until one is gone in mid-call."""
        for number in self._numbers:
            self.sent.add(number)
            answer = await self.send(session, number)
            if answer is None:
                return
            if answer["status"] == "done":
                self.done[number] = answer
                async with self._answered:
                    self._answered.notify_all()

    async def send(self, session: aiohttp.ClientSession, number: int) -> Answer | None:
        delivery = delivery_of(number)
        body = {"tool": delivery.tool, "arguments": {"item": delivery.item}, "key": delivery.key}
        try:
            url = random.choice(self.servers).url
            async with session.post(f"{url}/v1/calls", json=body) as response:
                answer: Answer = await response.json()
                return answer
        except (aiohttp.ClientError, OSError):
            return None

    async def reached(self, answers: int) -> None:
        async with self._answered:
            await self._answered.wait_for(lambda: len(self.done) >= answers)

    async def holdfast(self, *arguments: str) -> tuple[int, str, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "holdfast", *arguments, "--config", str(self.config), "--json"),
            env={**self._path(), **self._environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return process.returncode or 0, out.decode(), err.decode()

    def _path(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT)}


async def settled(day: Day, session: aiohttp.ClientSession, number: int) -> Answer:
    """Ask until somebody says something that stays."""
    while True:
        answer = await day.send(session, number)
        if (
            answer is not None
            and not answer["remedy"]["retryable"]
            and answer.get("code") != "RESOURCE_EXHAUSTED"
        ):
            plain = delivery_of(number).tool == PLAIN
            if answer["status"] != "unknown" or plain:
                return answer
        await asyncio.sleep(0.2)


@pytest.mark.soak
@pytest.mark.parametrize("store", STORES)
@requirement("PPL-5")
async def test_no_key_runs_twice_when_the_day_ends_with_a_restored_backup(tmp_path: Path, store: str) -> None:
    async with ledger_in(store, tmp_path, durable=True) as ledger, counting(tmp_path / "effects") as effects:
        day = Day(tmp_path, ledger.url, effects)
        try:
            await lived(day)
            await ended(day, tmp_path / "backup-1")
        finally:
            await day.close()
        counts = effects.counts()
        assert {key: times for key, times in counts.items() if times > 1} == {}
        assert {delivery_of(number).key for number in day.done} <= counts.keys()
        await check_log(day.config)


async def lived(day: Day) -> None:
    """A morning of calls with backups in between, and a blow that ends it in mid-call."""
    await day.open()
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as clients:
        for _ in range(CLIENTS):
            clients.create_task(day.client(session))
        for number in range(BACKUPS):
            await day.reached((number + 1) * BETWEEN)
            code, _, err = await day.holdfast("store", "backup", str(day.config.parent / f"backup-{number}"))
            assert code == 0, err
        await day.reached((BACKUPS + 1) * BETWEEN)
        await day.kill()


async def ended(day: Day, backup: Path) -> None:
    """The store is put back, nothing is written, then it learns what it missed."""
    while (tried := await day.holdfast("store", "restore", str(backup)))[0] != 0:
        assert "a moment ago" in tried[2], tried  # PostgreSQL: until nobody can be alive any more
        await asyncio.sleep(0.5)
    code, out, err = await day.holdfast("call", PLAIN, "--args", '{"item": 1}', "--key", "fresh")
    assert (code, json.loads(out)["code"]) == (3, "TOOL_UNAVAILABLE"), err
    code, out, err = await day.holdfast("store", "recover")
    assert code == 0, err
    recovered = json.loads(out)
    print(f"\n{recovered['operations']} operations merged, {recovered['unknown']} unknown")
    assert recovered["operations"] >= BETWEEN
    await day.open()
    async with aiohttp.ClientSession() as session:
        turns = asyncio.Semaphore(CLIENTS)

        async def ask(number: int) -> None:
            async with turns:
                again = await settled(day, session, number)
            if number in day.done:
                data = day.done[number]["data"]
                assert (again["status"], again["replayed"], again["data"]) == ("done", True, data)
            else:
                assert again["status"] in ("done", "unknown"), again

        await asyncio.gather(*(ask(number) for number in sorted(day.sent)))
