"""Does every answer reach the request it belongs to, and nobody else?

Fifty clients whose requests all have the same JSON-RPC ids. Half of them are one principal and say the same
thing all the time; only the server's number and the trace tell their calls apart.
"""

import asyncio
import itertools
import random
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from holdfast.identity.keys import mint
from tests.faults.mcp.client import Answered, Client
from tests.faults.mcp.front import READ, ROOT, WRITE, fronted
from tests.faults.mcp.protocol import Era, Json
from tests.faults.mcp.slow import slow_web
from tests.requirements import requirement

CLIENTS: Final = 50
AT_ONCE: Final = 2
"""Requests that each client has in flight."""
WRITES: Final = 0.25
PEOPLE: Final = {"ann": "red", "bob": "red", "cleo": "red", "dora": "blue", "emil": "blue", "finn": "blue"}
"""Everybody's tenant. Ann has half of the clients, the others share the rest."""
OVERLAY: Final = {"echo": READ, "tally": READ, "note": WRITE}


@dataclass(frozen=True)
class Sent:
    """One request and what came back."""

    by: "Who"
    tool: str
    token: str
    trace: str
    key: str | None
    answered: Answered

    @property
    def serial(self) -> str:
        serial: str = self.answered.data["serial"]
        return serial

    @property
    def operation(self) -> str:
        """What it was meant to do: itself, unless its key makes it one with others of its principal."""
        return self.trace if self.key is None else f"{self.by.person} {self.tool} {self.key}"


@dataclass
class Who:
    number: int
    person: str
    client: Client
    sent: list[Sent] = field(default_factory=list)
    waits: int = 0
    """How often another client's call under the same key was not over yet."""

    @property
    def equal(self) -> bool:
        return self.person == "ann"

    async def run(self, calls: int) -> None:
        numbers = itertools.count(1)
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._take(numbers, calls))

    async def _take(self, numbers: Iterator[int], calls: int) -> None:
        while (number := next(numbers)) <= calls:
            await self._ask(number)

    async def _ask(self, number: int) -> None:
        chance = random.Random(f"{self.number} {number}")
        writes = chance.random() < WRITES
        tool = f"{chance.choice(('pipe', 'web'))}__{'note' if writes else 'echo'}"
        token = "the same" if self.equal else f"{PEOPLE[self.person]} {self.person} {self.number} {number}"
        trace = f"{chance.getrandbits(128) | 1:032x}"
        meta: Json = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
        if chance.random() < 0.5:
            meta["progressToken"] = number  # which others use at the same time
        key = self._key(number) if writes and chance.random() < 0.5 else None
        if key is not None:
            meta["holdfast/key"] = key
        answered = await self.client.call(tool, {"token": token}, **meta)
        while answered.observation.get("code") == "KEY_IN_USE":  # Ann's other clients are at it just now
            self.waits += 1
            answered = await self.client.call(tool, {"token": token}, **meta)
        self.sent.append(Sent(self, tool, token, trace, key, answered))
        self._check(self.sent[-1], meta.get("progressToken"))

    def _key(self, number: int) -> str:
        """Everybody uses the same keys. Ann means the same by them in all her clients, others do not."""
        return f"k-{number}" if self.equal else f"k-{self.number // len(PEOPLE)}-{number}"

    def _check(self, sent: Sent, progress: int | None) -> None:
        answered = sent.answered
        assert answered.status == "done", answered.result["content"]
        assert answered.data["token"] == sent.token
        assert sent.serial.partition("-")[0] == sent.tool.partition("__")[0]
        assert answered.observation["trace_id"] == answered.data["trace"]
        if not answered.observation["replayed"]:  # a replay tells of the call that ran
            assert answered.data["trace"] == sent.trace
        assert all(said["method"] == "notifications/progress" for said in answered.before)
        told = [said["params"] for said in answered.before]
        assert {(said["progressToken"], said["message"]) for said in told} <= {(progress, sent.serial)}
        runs = progress is not None and not answered.observation["replayed"]
        assert [said["progress"] for said in told] == ([1, 2] if runs else [])


@asynccontextmanager
async def clients(folder: Path) -> AsyncIterator[tuple[list[Who], str, aiohttp.ClientSession]]:
    minted = {person: mint(person) for person in PEOPLE}
    people = {person: {"tenant": tenant, "scopes": ["**"], "trust": 80} for person, tenant in PEOPLE.items()}
    keys = [entry for _, entry in minted.values()]
    (folder / "policies").mkdir()
    (folder / "policies" / "open.cedar").write_text('@id("open") permit (principal, action, resource);\n')
    pipe = {
        "command": sys.executable,
        "args": ["-m", "tests.faults.mcp.slow", "stdio"],
        "cwd": str(ROOT),
    }
    async with (
        slow_web() as address,
        fronted(
            folder,
            {"pipe": pipe, "web": {"url": address}},
            OVERLAY,
            auth={"mode": "api_key", "people": people, "keys": keys},
            policies="policies",
        ) as (url, http),
    ):
        others = [person for person in PEOPLE if person != "ann"]
        made: list[Who] = []
        for number in range(CLIENTS):
            person = "ann" if number % 2 else others[number // 2 % len(others)]
            era: Era = "modern" if number % 4 < 2 else "legacy"
            headers = {"Authorization": f"Bearer {minted[person][0]}"}
            made.append(Who(number, person, await Client(http, url, era, headers).open()))
        yield made, url, http


async def everybody_calls(folder: Path, calls: int) -> None:
    async with clients(folder) as (everybody, url, http):
        async with asyncio.TaskGroup() as group:
            for who in everybody:
                group.create_task(who.run(calls // CLIENTS))
        sent = [one for who in everybody for one in who.sent]
        assert len(sent) == calls
        check_serials(sent)
        await check_tally(everybody[0].client, sent)
        check_calls(sent)
        await check_tenants(everybody, url, http)
        print(told(sent))


def check_serials(sent: list[Sent]) -> None:
    """One answer of the server belongs to one operation: no two requests share it."""
    by_serial: dict[str, set[str]] = {}
    by_operation: dict[str, set[str]] = {}
    for one in sent:
        by_serial.setdefault(one.serial, set()).add(one.operation)
        by_operation.setdefault(one.operation, set()).add(one.serial)
    assert [shared for shared in by_serial.values() if len(shared) > 1] == []
    assert [several for several in by_operation.values() if len(several) > 1] == []


async def check_tally(client: Client, sent: list[Sent]) -> None:
    """Every write was made once, and none that nobody asked for."""
    for upstream in ("pipe", "web"):
        answered = await client.call(f"{upstream}__tally", {"token": ""})
        made = {one.operation for one in sent if one.tool == f"{upstream}__note"}
        assert answered.data == {"notes": len(made)}


def check_calls(sent: list[Sent]) -> None:
    """A call of the gateway's is one operation too, and of one tenant."""
    owners: dict[str, set[tuple[str, str]]] = {}
    for one in sent:
        tenant = PEOPLE[one.by.person]
        owners.setdefault(one.answered.observation["call_id"], set()).add((one.operation, tenant))
    assert [several for several in owners.values() if len(several) > 1] == []


async def check_tenants(everybody: list[Who], url: str, http: aiohttp.ClientSession) -> None:
    """What one tenant did cannot be looked up by the other."""
    for who in everybody[:10]:
        call = who.sent[-1].answered.observation["call_id"]
        for other in everybody[:10]:
            same = PEOPLE[other.person] == PEOPLE[who.person]
            async with http.get(
                url.replace("/mcp", f"/v1/calls/{call}"), headers=other.client.headers
            ) as said:
                assert said.status in ((200, 404) if same else (404,))


def told(sent: list[Sent]) -> str:
    eras = {era: sum(one.by.client.era == era for one in sent) for era in ("modern", "legacy")}
    writes = sum(one.tool.endswith("note") for one in sent)
    progress = sum(len(one.answered.before) for one in sent)
    replays = sum(one.answered.observation["replayed"] for one in sent)
    waits = sum(who.waits for who in {id(one.by): one.by for one in sent}.values())
    return (
        f"\n{len(sent)} calls {eras}, {writes} writes, {replays} replays, {waits} waits for a key, "
        f"{progress} progress notifications"
    )


@requirement("AUT-6", "PRO-1")
async def test_no_answer_reaches_another_request_though_all_ids_are_the_same(tmp_path: Path) -> None:
    await everybody_calls(tmp_path, 1500)


@pytest.mark.soak
@requirement("AUT-6", "PRO-1")
async def test_no_answer_of_ten_thousand_reaches_another_request(tmp_path: Path) -> None:
    await everybody_calls(tmp_path, 10_000)
