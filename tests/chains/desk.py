"""A gateway in memory whose runs end as a test wants them to, with two people in front of it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from holdfast.chains.reading import read
from holdfast.gateway import Gateway
from holdfast.model.call import Principal
from holdfast.model.people import Alert
from holdfast.model.run import Run
from holdfast.testing import ManualClock
from holdfast.testing import gateway as opened
from tests.chains.world import Outside, shop

T = TypeVar("T")
PEOPLE = {
    "ada": {"scopes": ["shop:*"], "trust": 90},
    "ola": {"roles": ["operator"], "scopes": ["shop:*"]},
    "eve": {"scopes": ["shop:*"]},
}


class Office:
    def __init__(self, gateway: Gateway, world: Outside, clock: ManualClock) -> None:
        self.gateway = gateway
        self.world = world
        self._clock = clock
        self.ada, self.ola = (gateway.identity.at_terminal(name) for name in ("ada", "ola"))

    async def driven(self, work: Coroutine[Any, Any, T]) -> T:
        """With time passing as it is waited for."""
        going = asyncio.ensure_future(work)
        await self._clock.drive(going)
        return await going

    async def run(self, *steps: dict[str, Any], saga: bool = True, key: str = "k-1") -> Run:
        schema = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
        chain = read({"chain": "order", "saga": saga, "input": schema, "steps": list(steps)})
        begun = await self.gateway.chains.start(self.ada, chain, {"item": "tea"}, key)
        return await self.waited(self.ada, begun.id)

    async def waited(self, by: Principal, run_id: str) -> Run:
        return await self.driven(self.gateway.chains.wait(by, run_id, 600.0))

    async def wrong(self) -> list[Alert]:
        await self.gateway.alerts.tend(("default",), now=True)
        return list(await self.gateway.alerts.open(self.ola))


@asynccontextmanager
async def office(*more: Any, **said: Any) -> AsyncIterator[Office]:
    """`more`: further tools of the shop; `said`: more of its configuration."""
    world, clock = Outside(), ManualClock()
    config = {"auth": {"mode": "local", "people": PEOPLE}, **said}
    async with opened(*shop(world), *more, namespace="shop", clock=clock, config=config) as gateway:
        yield Office(gateway, world, clock)
