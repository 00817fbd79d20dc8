"""Does a server that misbehaves cost anybody but itself?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as t

from holdfast import Gateway
from holdfast.config import parse
from holdfast.gateway.wiring import connected
from holdfast.model.errors import Code
from holdfast.model.observation import Observation, Status
from holdfast.stores.memory import MemoryStore
from holdfast.testing import CountingIds, ManualClock
from tests.gateway.depot import OVERLAY, Depot, config
from tests.gateway.test_discovery import ME
from tests.requirements import requirement
from tests.upstreams.mcp.places import serving

HASTY = OVERLAY.replace("READ_ONLY", "READ_ONLY, timeout_ms: 1000")
"""A breaker looks at the last half minute: answers must be awaited for less."""


@dataclass
class Moody(Depot):
    """Hangs while it is told to."""

    hanging: bool = True
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: int = 0

    async def _call(self, ctx: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
        if self.hanging:
            self.begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.stopped += 1
        return await super()._call(ctx, params)


@asynccontextmanager
async def two(bad: Depot, good: Depot, folder: Path, clock: ManualClock) -> AsyncIterator[Gateway]:
    """One gateway before two servers, with time in the test's hands."""
    async with serving(bad.app()) as first, serving(good.app()) as second:
        tree = config(folder, f"{first}/mcp", overlay=HASTY)
        tree["upstreams"]["annex"] = {**tree["upstreams"]["depot"], "mcp": {"url": f"{second}/mcp"}}
        upstreams = connected(parse(tree))
        gateway = Gateway.assemble(tree, MemoryStore(clock), upstreams, clock=clock, ids=CountingIds())
        try:
            await gateway.prepare()
            yield gateway
        finally:
            await gateway.close()


async def hung(gateway: Gateway, bad: Moody, clock: ManualClock, tool: str, **details: Any) -> Observation:
    """A call that is let run into its deadline once the server has it."""
    bad.begun.clear()
    call = asyncio.ensure_future(gateway.call(tool, {"item": "nail"}, principal=ME, **details))
    async with asyncio.timeout(20):
        await asyncio.wait(
            (call, asyncio.ensure_future(bad.begun.wait())), return_when=asyncio.FIRST_COMPLETED
        )
        await clock.drive(call)
    return await call


@requirement("EXE-1", "EXE-3", "EXE-9")
async def test_a_server_that_hangs_keeps_the_deadline_opens_its_breaker_and_recovers(tmp_path: Path) -> None:
    bad, good, clock = Moody(), Depot(), ManualClock()
    async with two(bad, good, tmp_path, clock) as gateway:
        first = await hung(gateway, bad, clock, "depot.stock")
        while (seen := await hung(gateway, bad, clock, "depot.stock")).attempts:
            assert seen.code is Code.TIMEOUT
        other = [await gateway.call("annex.stock", {"item": "nail"}, principal=ME) for _ in range(50)]
        bad.hanging = False
        await clock.advance(31)
        after = await gateway.call("depot.stock", {"item": "nail"}, principal=ME)
    assert first.code is Code.TIMEOUT
    assert (seen.code, seen.attempts) == (Code.DEPENDENCY_UNAVAILABLE, 0)  # given a rest: nothing was sent
    assert {one.status for one in other} == {Status.DONE}
    assert after.status is Status.DONE
    assert bad.stopped >= 5  # the server was told to stop each time


@requirement("IDM-5", "EXE-1")
async def test_a_write_that_hangs_is_unknown_and_is_not_tried_again(tmp_path: Path) -> None:
    bad, good, clock = Moody(), Depot(), ManualClock()
    async with two(bad, good, tmp_path, clock) as gateway:
        lost = await hung(gateway, bad, clock, "depot.take", key="k-1")
        bad.hanging = False
        again = await gateway.call("depot.take", {"item": "nail"}, principal=ME, key="k-1")
    assert (lost.status, again.status) == (Status.UNKNOWN, Status.UNKNOWN)
    assert bad.taken == []
