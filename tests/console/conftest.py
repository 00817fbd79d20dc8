"""Whose console do the tests look at?"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.gateway import Gateway
from holdfast.identity.keys import hash_chosen
from holdfast.servers.app import build
from holdfast.stores.memory import MemoryStore
from holdfast.testing import CountingIds, ManualClock
from tests.console.visitor import Visitor
from tests.stored import ALL, Store, place, stored

PETRAS_SECRET = "correct horse"
PEOPLE = {
    "ana": {"roles": ["operator"], "scopes": ["notes:*"]},
    "ben": {"roles": ["operator"]},
    "petra": {"roles": ["operator"], "approver_secret": hash_chosen(PETRAS_SECRET)},
    "xena": {"roles": ["operator"], "tenant": "acme"},
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def opened(store: Store, clock: ManualClock, config: dict[str, Any]) -> Gateway:
    return Gateway.assemble(config, store, {}, clock=clock, ids=CountingIds())


@asynccontextmanager
async def console(clock: ManualClock, config: dict[str, Any] | None = None) -> AsyncIterator[Gateway]:
    """A gateway in memory, whose time is the test's."""
    gateway = opened(MemoryStore(clock), clock, config or {"auth": {"people": PEOPLE}})
    await gateway.prepare(connect=False)
    try:
        yield gateway
    finally:
        await gateway.close()


@pytest.fixture
async def gateway(clock: ManualClock) -> AsyncIterator[Gateway]:
    async with console(clock) as one:
        yield one


@pytest.fixture
def visitor(gateway: Gateway) -> Visitor:
    return Visitor(build(gateway))


@pytest.fixture(params=ALL)
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    async with place(request.param, tmp_path), stored(request.param, tmp_path, clock) as one:
        yield one


@pytest.fixture
def open_gateway(store: Store, clock: ManualClock) -> Callable[[dict[str, Any]], Gateway]:
    """Gateways around one store, as several processes have it."""
    return lambda config: opened(store, clock, config)
