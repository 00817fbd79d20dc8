"""Who are the two tenants of one served gateway, and how does each speak through every door?"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from yarl import URL

from holdfast import Gateway
from holdfast import config as configuration
from holdfast.identity import mint
from holdfast.servers.app import build
from tests.servers.house import HOUSES, House
from tests.servers.mcp.raw import ACCEPT, CLIENT, LEGACY, MODERN, Line
from tests.servers.serving import serving
from tests.stored import place, url_of

TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
NORTH = {"tenant": "north", "scopes": ["notes:*", "mail:*", "vault:*"], "trust": 80}
SOUTH = {"tenant": "south", "scopes": ["notes:*", "mail:*"], "trust": 80}
PEOPLE: dict[str, dict[str, Any]] = {
    "nora": NORTH,
    "norman": {**NORTH, "roles": ["operator"]},
    "sid": SOUTH,
    "sonja": {**SOUTH, "roles": ["operator"]},
}
KEYS = ("key", "key header", "key rpc", "key mcp", "key argument")
TOKENS = ("token", "token rpc", "token mcp")
TOPICS = ("topic", "topic rpc", "topic mcp")
MOST = 8
"""Calls in one task or session; those that name none share one."""
BUDGETS = [
    {"per": "task", "kind": "write", "calls": MOST},
    {"per": "session", "kind": "read", "calls": MOST},
]


@dataclass(frozen=True)
class Said:
    """What came back through a door: the status where it has one, and the bytes."""

    status: int
    body: bytes

    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass
class Caller:
    """One person's key, at every door."""

    http: aiohttp.ClientSession
    url: str
    key: str
    legacy: Line | None = None
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def fresh(self) -> str:
        """A name nobody has used yet."""
        return f"fresh-{next(self.numbers):06d}"

    async def rest(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Said:
        data = None if body is None else orjson.dumps(body)
        # Ids travel exactly as they were written: nothing is made neat on the way.
        where = URL(f"{self.url}{path}", encoded=True)
        async with self.http.request(
            method, where, data=data, headers={**self._own, **(headers or {})}
        ) as it:
            return Said(it.status, await it.read())

    async def call(self, tool: str, arguments: Any, **members: Any) -> Said:
        return await self.rest("POST", "/v1/calls", {"tool": tool, "arguments": arguments, **members})

    async def rpc(self, method: str, params: Any) -> Said:
        return await self.rest(
            "POST", "/rpc", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        )

    async def mcp(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> Said:
        """A modern request, which stands alone."""
        line = self._line(MODERN, TASKS)
        body, own = line.request(method, params)
        async with line.post(body, {**own, **(headers or {})}) as response:
            return Said(response.status, await response.read())

    async def old_mcp(self, method: str, params: Mapping[str, Any], session: str | None = None) -> Said:
        """A request of the older era, in this caller's own session or in another."""
        line = await self.session()
        body, own = line.request(method, params)
        async with line.post(
            {**body, "id": 1}, own | ({} if session is None else {"mcp-session-id": session})
        ) as it:
            return Said(it.status, await it.read())

    async def session(self) -> Line:
        if self.legacy is None:
            self.legacy = self._line(LEGACY, {})
            opening = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
            await self.legacy.ask("initialize", opening)
            await self.legacy.tell("notifications/initialized")
        return self.legacy

    def _line(self, era: str, capabilities: Mapping[str, Any]) -> Line:
        return Line(self.http, f"{self.url}/mcp", era, capabilities, headers={**ACCEPT, **self._own})

    @property
    def _own(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}


@dataclass
class Street:
    """The gateway, everybody, and what the north has of everything."""

    gateway: Gateway
    house: House
    callers: dict[str, Caller]
    ids: dict[str, str] = field(default_factory=dict)
    """By what it is: an id of the north's."""
    others: dict[str, str] = field(default_factory=dict)
    """An id of the same form that nobody has."""

    def of(self, name: str) -> Caller:
        return self.callers[name]

    def add(self, name: str, theirs: str, nobodys: str | None = None) -> str:
        self.ids[name] = theirs
        self.others[name] = _another(theirs) if nobodys is None else nobodys
        return theirs


def _another(id: str) -> str:
    """The same form, and nobody's: one letter or digit in the middle is another one."""
    middle = len(id) // 2
    return id[:middle] + ("1" if id[middle] != "1" else "2") + id[middle + 1 :]


@asynccontextmanager
async def street(kind: str, folder: Path, *, short: bool = True) -> AsyncIterator[Street]:
    minted = {name: mint(name) for name in PEOPLE}
    rules = folder / "rules"
    rules.mkdir()
    (rules / "open.cedar").write_text('@id("open")\npermit (principal, action, resource);\n')
    HOUSES.append(House())
    async with place(kind, folder):
        config = {
            "store": url_of(kind, folder),
            "upstreams": {"house": {"functions": "tests.servers.house:house"}},
            "auth": {"mode": "api_key", "people": PEOPLE, "keys": [entry for _, entry in minted.values()]},
            "policies": str(rules),
            "limits": {"budgets": BUDGETS, "body_bytes": 20_000, "string": 2_000},
        }
        async with Gateway.open(configuration.parse(config, folder=folder)) as gateway:
            app = build(gateway, short=short)
            async with app.state.mcp.running(), serving(app) as served, aiohttp.ClientSession() as http:
                callers = {name: Caller(http, served.url, key) for name, (key, _) in minted.items()}
                made = Street(gateway, HOUSES[-1], callers)
                async with furnished(made):
                    yield made
    HOUSES.pop()


@asynccontextmanager
async def furnished(street: Street) -> AsyncIterator[None]:
    """The north has something of everything while the block runs, one call under way among it."""
    nora = street.of("nora")
    await _names(street)
    await _operations(street)
    await _questions(street)
    await _log(street)
    await _limits(street)
    await street.of("sid").call("house.note", {"text": "hello"}, key="k-south")
    running = asyncio.create_task(nora.call("house.note_slowly", {"text": "aurora"}, key="k-slow"))
    await street.house.started.wait()
    [under_way] = [call.id for call in street.gateway._under_way]
    street.add("running call", under_way)
    try:
        yield
    finally:
        street.house.go_on.set()
        assert (await running).json()["data"] == {"by": "north", "text": "aurora"}


async def _names(street: Street) -> None:
    street.add("tool", "house.vault", "house.vaulx")
    street.add("mcp tool", "house__vault", "house__vaulx")
    street.add("mcp session", (await street.of("nora").session()).headers["mcp-session-id"])
    nora = street.gateway.identity.authenticate({"authorization": f"Bearer {street.of('nora').key}"})
    state = {"what": "house.note"}
    street.add("request state", street.gateway.seal(nora, "mcp-request-state", state, 600))


async def _operations(street: Street) -> None:
    nora, text = street.of("nora"), {"text": "aurora"}
    for number, name in enumerate(KEYS):
        key = street.add(name, f"k-north-{number}-key")
        done = await nora.call("house.note", text, key=key, task=nora.fresh())
        street.add("call", done.json()["call_id"])
    broken = await nora.call("house.note_and_break", text, key="k-broken")
    assert broken.json()["status"] == "unknown"
    street.add("unknown call", broken.json()["call_id"])


async def _questions(street: Street) -> None:
    nora, norman, mail = street.of("nora"), street.of("norman"), {"to": "x@example.com"}
    held = (await nora.call("house.send", mail, key="k-held")).json()
    street.add("approval", held["approval"]["id"])
    street.add("held call", held["call_id"])
    for number, name in enumerate(TOKENS):
        granted = (await nora.call("house.send", mail, key=f"k-granted-{number}")).json()["approval"]["id"]
        said = await norman.rest("POST", f"/v1/approvals/{granted}/decision", {"decision": "approve"})
        street.add(name, said.json()["token"])
    look = (await nora.call("house.send", mail, key="k-plan", preview=True)).json()
    street.add("plan token", look["preview"]["plan_token"])


async def _log(street: Street) -> None:
    found = await street.of("norman").rest("GET", f"/v1/audit?call={street.ids['call']}")
    first = found.json()["records"][0]
    street.add("leaf", f"{first['leaf']:06d}", f"{first['leaf'] + 100_000:06d}")
    writer, _, number = str(first["record"]).rpartition(":")
    street.add("record", f"{writer}:{number}", f"{writer}:{int(number) + 100_000}")


async def _limits(street: Street) -> None:
    nora, text = street.of("nora"), {"text": "aurora"}
    for name, letter in zip(TOPICS, "abc", strict=True):
        topic = street.add(name, f"aurora-topic-{letter}")
        await nora.call("house.look", {"topic": topic}, session=nora.fresh())
    task, session = street.add("task", "t-north-task"), street.add("session", "s-north-session")
    for _ in range(MOST):
        await nora.call("house.note", text, task=task, key=nora.fresh())
        await nora.call("house.look", {"topic": nora.fresh()}, session=session)
    spent = await nora.call("house.note", text, task=task, key=nora.fresh())
    assert spent.json()["code"] == "BUDGET_EXHAUSTED"
