"""A shop, and a till whose entries count once they are committed; on a store of any kind."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from holdfast import Gateway
from holdfast.chains.engines.local import LocalEngine
from holdfast.chains.reading import read
from holdfast.gateway.chains import Shown
from holdfast.model.run import Run
from holdfast.system import RandomIds
from holdfast.testing import ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.chains.world import Outside, Shop, shop
from tests.stored import place, stored
from tests.upstream_sessions.till import Till, tools

T = TypeVar("T")
PEOPLE = {
    "ada": {"scopes": ["**"], "trust": 90},
    "eve": {"scopes": ["shop:*"], "trust": 90},
    "olga": {"roles": ["operator"], "scopes": ["**"]},
}
INPUT = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
BEGIN = {"id": "book", "tool": "till.begin"}


class Books:
    """What is in the till, and what was done in the shop."""

    def __init__(self, gateway: Gateway, till: Till, world: Outside, clock: ManualClock, store: Any) -> None:
        self.gateway, self.till, self.world, self.clock = gateway, till, world, clock
        self.ada, self.olga = (gateway.identity.at_terminal(name) for name in ("ada", "olga"))
        self.shop = Shop(gateway, world, clock, store.runs)

    async def driven(self, work: Coroutine[Any, Any, T]) -> T:
        """With time passing as it is waited for."""
        going = asyncio.ensure_future(work)
        await self.clock.drive(going)
        return await going

    async def run(self, *steps: dict[str, Any], key: str = "k-1", **said: Any) -> Run:
        chain = read({"chain": "order", "saga": True, "input": INPUT, "steps": list(steps), **said})
        begun = await self.gateway.chains.start(self.ada, chain, {"item": "tea"}, key)
        return await self.waited(begun.id)

    async def waited(self, run_id: str, beyond: int = -1) -> Run:
        return await self.driven(self.gateway.chains.wait(self.olga, run_id, 600.0, beyond))

    async def look(self, run: Run) -> Shown:
        return await self.gateway.chains.look(self.olga, run.id)

    def handles(self, tool: str) -> list[str]:
        """The sessions in which the till heard this, by its own names."""
        return sorted({handle for heard, handle in self.till.heard if heard == tool})

    def asked(self, tool: str) -> int:
        """How often the till heard this."""
        return sum(heard == tool for heard, _ in self.till.heard)


@asynccontextmanager
async def books(kind: str, folder: Path, **config: Any) -> AsyncIterator[Books]:
    till, world, clock = Till(), Outside(), ManualClock()
    upstreams = {"till": FunctionUpstream(tools(till)), "shop": FunctionUpstream(shop(world))}
    said = {"auth": {"mode": "local", "people": PEOPLE}, **config}
    async with place(kind, folder), stored(kind, folder, clock) as store:
        gateway = Gateway.assemble(said, store, upstreams, clock=clock, ids=RandomIds(), engine=LocalEngine)
        try:
            await gateway.prepare()
            yield Books(gateway, till, world, clock, store)
        finally:
            await gateway.close()


def transaction(*steps: dict[str, Any], begin: dict[str, Any] = BEGIN) -> dict[str, Any]:
    return {"transaction": {"begin": begin, "steps": list(steps)}}


def add(id: str, amount: int = 1, **said: Any) -> dict[str, Any]:
    return {"id": id, "tool": "till.add", "with": {"name": id, "amount": amount}, **said}


def real() -> list[Any]:
    """A till by name, as a configuration has it."""
    return tools(Till())


def twin() -> list[Any]:
    """Another one, where nothing counts."""
    return tools(Till())
