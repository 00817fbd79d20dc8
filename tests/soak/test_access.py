"""Do halts, promotions, revocations and grants take effect in every process within a second, under load?

Several server processes on one database, callers that never stop, and a process of its own that decides.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import aiohttp
import pytest

from holdfast import Gateway, Principal
from holdfast.policy import Bundle
from tests.requirements import requirement
from tests.soak.ledger import STORES, ledger_in
from tests.soak.server import Server

SOON_S = 1.0
"""How long a change may take to be felt everywhere."""
WATCHED_S = 2.0
"""How long callers go on after a change."""
CALLERS = 4
OLGA = Principal(user="olga", agent="person", roles=frozenset({"operator"}))
OPEN = '@id("open") permit (principal, action, resource);'
SHUT = '@id("shut") permit (principal, action, resource) when { principal.user == "nobody" };'
CONFIG = {
    "upstreams": {"shop": {"functions": "tests.soak.orders:TOOLS"}},
    "auth": {"mode": "api_key", "people": {"ana": {"trust": 60}, "olga": {"roles": ["operator"]}}},
}


class Seen(NamedTuple):
    sent_at: float
    answered_at: float
    code: str | None
    """None: it was done."""


class Decided(NamedTuple):
    began_at: float
    at: float


class Shop:
    def __init__(self, servers: list[Server], gateway: Gateway, key: str) -> None:
        self.servers, self.gateway, self.key = servers, gateway, key
        self.seen: list[Seen] = []
        self._numbers = count()

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """Callers at every server; each request comes by a connection of its own, to whichever worker."""
        self.seen = []
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            calling = [
                asyncio.create_task(self._call(session, server))
                for server in self.servers
                for _ in range(CALLERS)
            ]
            try:
                yield
            finally:
                for task in calling:
                    task.cancel()
                await asyncio.gather(*calling, return_exceptions=True)

    async def _call(self, session: aiohttp.ClientSession, server: Server) -> None:
        while True:
            name, sent_at = f"o-{next(self._numbers)}", monotonic()
            body = {"tool": "shop.refund", "arguments": {"order": name}, "key": name}
            headers = {"authorization": f"Bearer {self.key}"}
            async with session.post(f"{server.url}/v1/calls", json=body, headers=headers) as response:
                said = await response.json()
            code = said.get("code") if "status" in said else "UNAUTHENTICATED"
            self.seen.append(Seen(sent_at, monotonic(), code))

    async def change(self, decide: Callable[[], Awaitable[object]]) -> Decided:
        """Let somebody decide while callers call."""
        async with self.busy():
            await asyncio.sleep(SOON_S)
            began_at = monotonic()
            await decide()
            decided = Decided(began_at, monotonic())
            await asyncio.sleep(WATCHED_S)
        return decided


@asynccontextmanager
async def shop(store: str, folder: Path) -> AsyncIterator[Shop]:
    async with ledger_in(store, folder) as ledger:
        path = folder / "holdfast.yaml"
        path.write_text(json.dumps({**CONFIG, "store": ledger.url}))
        servers = [Server("one", path, {}, options=("--workers", "2")), Server("other", path, {})]
        async with Gateway.open(path) as gateway:
            await gateway.policies.promote(OLGA, Bundle("rules", {"a.cedar": OPEN}))
            plain, _ = await gateway.keys.create(OLGA, "ana")
            try:
                await asyncio.gather(*(server.begin() for server in servers))
                yield Shop(servers, gateway, plain)
            finally:
                for server in servers:
                    await server.close()


@pytest.mark.soak
@requirement("PPL-4", "PPL-6", "AUT-4", "LIF-6")
@pytest.mark.parametrize("store", STORES)
async def test_what_is_decided_is_felt_everywhere_within_a_second(store: str, tmp_path: Path) -> None:
    async with shop(store, tmp_path) as it:
        gateway, id = it.gateway, it.key.split("_")[1]
        await allowed(it)
        await denied(it, lambda: gateway.halt(OLGA, "shop.refund"), {"TOOL_UNAVAILABLE"})
        await gateway.resume(OLGA, "shop.refund")
        shut = Bundle("rules", {"a.cedar": SHUT})
        await denied(it, lambda: gateway.policies.promote(OLGA, shut), {"POLICY_VIOLATION"})
        await gateway.policies.rollback(OLGA)
        [grant] = await gateway.grants.list(OLGA)
        taken = {"PERMISSION_DENIED", "TOOL_NOT_FOUND"}
        await denied(it, lambda: gateway.grants.revoke(OLGA, grant.id), taken)
        await allowed(it)
        await denied(it, lambda: gateway.keys.revoke(OLGA, id), {"PERMISSION_DENIED", "UNAUTHENTICATED"})


async def allowed(it: Shop) -> None:
    """A grant is felt within a second, in whichever process a call arrives."""
    decided = await it.change(lambda: it.gateway.grants.give(OLGA, "ana", "orders:refund"))
    before = {one.code for one in it.seen if one.answered_at < decided.began_at}
    assert before <= {"TOOL_NOT_FOUND", "PERMISSION_DENIED"}
    assert {one.code for one in it.seen if one.sent_at > decided.at + SOON_S} == {None}


async def denied(it: Shop, decide: Callable[[], Awaitable[object]], codes: set[str]) -> None:
    """Nothing that is sent after a decision against it acts, in whichever process it arrives."""
    decided = await it.change(decide)
    assert None in {one.code for one in it.seen if one.answered_at < decided.began_at}
    after = [one for one in it.seen if one.sent_at > decided.at]
    assert len(after) > CALLERS
    assert {one.code for one in after} <= codes
