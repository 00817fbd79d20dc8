"""Every test of keys, grants and revocation runs on every store, with two gateways on it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.access.office import CONFIG, Allow, Office, Orders
from tests.approvals.opening import House
from tests.lifecycle.conftest import store

__all__ = ["store"]


@pytest.fixture
def house(store: str, tmp_path: Path) -> House:
    return House(store, tmp_path)


@pytest.fixture
async def office(house: House) -> AsyncIterator[Office]:
    orders = Orders()
    async with AsyncExitStack() as stack:
        one, other = [
            await stack.enter_async_context(house.gateway(orders, config=CONFIG, policy=Allow()))
            for _ in range(2)
        ]
        for gateway in (one, other):
            await gateway.prepare()
        yield Office(house, orders, one, other)
