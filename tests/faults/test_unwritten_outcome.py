"""What is told when the effect happened and the store cannot take the outcome?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from holdfast import Code, Gateway, Status
from holdfast.execution.late import WRITE_LATER_S
from holdfast.execution.runtime import Runtime
from holdfast.model import defaults
from holdfast.model.errors import StoreError
from holdfast.ports import Ledger, Ports
from holdfast.stores.memory.store import MemoryStore
from holdfast.system import RandomIds
from holdfast.testing import ManualClock, settle_loop
from holdfast.upstreams.function import FunctionUpstream
from tests.faults.wayward import Register
from tests.requirements import requirement


class FullDisk:
    """A ledger that takes claims and no outcomes, until there is room again."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.full = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def finish(self, *arguments: Any) -> bool:
        if self.full:
            raise StoreError("the store did not take the write: disk full")
        return await self._ledger.finish(*arguments)


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.register = Register()
        self.disks: list[FullDisk] = []

    @asynccontextmanager
    async def gateway(self) -> AsyncIterator[Gateway]:
        def adapt(ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
            self.disks.append(FullDisk(ports.ledger))
            return replace(ports, ledger=cast(Ledger, self.disks[0])), runtime

        upstreams = {"faults": FunctionUpstream(self.register.tools())}
        gateway = Gateway.assemble(
            {}, MemoryStore(self.clock), upstreams, clock=self.clock, ids=RandomIds(), adapt=adapt
        )
        yield gateway
        await gateway.close()


@requirement("AUD-5", "IDM-4")
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_an_outcome_that_cannot_be_written_is_unknown_and_never_done(kind: str) -> None:
    world = World()
    async with world.gateway() as gateway:
        told = await gateway.call(f"faults.plain_{kind}", {"way": "well"}, key="k")
    assert (told.status, told.code, told.data) == (Status.UNKNOWN, Code.OUTCOME_UNKNOWN, None)
    assert world.register.effects["k"] == 1


@requirement("AUD-5", "IDM-4", "IDM-5")
async def test_a_retry_after_an_unwritten_outcome_never_acts_again() -> None:
    world = World()
    async with world.gateway() as gateway:
        await gateway.call("faults.plain_async", {"way": "well"}, key="k")
        again = asyncio.create_task(gateway.call("faults.plain_async", {"way": "well"}, key="k"))
        await settle_loop()
        await world.clock.advance(defaults.DUPLICATE_WAIT_S)
        assert (await again).code is Code.KEY_IN_USE
        await world.clock.advance(sum(WRITE_LATER_S))
        world.disks[0].full = False
        later = await gateway.call("faults.plain_async", {"way": "well"}, key="k")
    assert later.code is Code.OUTCOME_UNKNOWN
    assert world.register.effects["k"] == 1


@requirement("AUD-5", "IDM-5")
async def test_an_outcome_is_written_as_soon_as_the_store_takes_it() -> None:
    world = World()
    async with world.gateway() as gateway:
        told = await gateway.call("faults.plain_async", {"way": "well"}, key="k")
        world.disks[0].full = False
        await world.clock.advance(WRITE_LATER_S[0])
        again = await gateway.call("faults.plain_async", {"way": "well"}, key="k")
    assert told.status is Status.UNKNOWN
    assert (again.status, again.replayed, again.data) == (Status.DONE, True, {"line": 1})
    assert world.register.effects["k"] == 1


@requirement("AUD-5", "IDM-5")
async def test_a_probe_finds_what_could_not_be_written() -> None:
    world = World()
    async with world.gateway() as gateway:
        told = await gateway.call("faults.probed_async", {"way": "well"}, key="k")
        await world.clock.advance(sum(WRITE_LATER_S))
        world.disks[0].full = False
        assert await gateway.tidy() == 1
        later = await gateway.call("faults.probed_async", {"way": "well"}, key="k")
    assert told.status is Status.UNKNOWN
    assert (later.status, later.data) == (Status.DONE, {"line": 1})
    assert world.register.effects["k"] == 1
