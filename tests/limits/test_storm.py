"""Are there never more effects than the budget allows, while workers are killed in the middle of them?"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from holdfast import Code, Gateway, Status
from holdfast.model import defaults
from holdfast.model.function import toolset
from holdfast.model.limits import Kind
from holdfast.system import RandomIds
from holdfast.testing import ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.lifecycle.test_rare import Dying
from tests.limits.shop import ANA, NONE, Shop, account, budget
from tests.requirements import requirement
from tests.stored import DURABLE, durable

CALLS, MOST, WORKERS = 1000, 100, 4
DYING = 2
"""Of the workers, so many die with everything they have in flight."""


class Fragile(Shop):
    """A shop in which the calls of some workers act, or not, and are never heard of again."""

    def __init__(self, dies: bool) -> None:
        super().__init__()
        self.dies = dies
        self.acted: Counter[str] = Counter()

    async def _act(self, thing: str) -> str:
        if self.dies and int(thing[1:]) % 3 == 0:  # killed before it acted
            await asyncio.Event().wait()
        self.acted[thing] += 1
        self.done[thing] += 1
        if self.dies:  # killed after it acted
            await asyncio.Event().wait()
        return thing


@requirement("POL-4", "IDM-4", "IDM-5")
@pytest.mark.parametrize("store", DURABLE, indirect=True)
async def test_no_more_effects_than_the_budget_and_an_exact_rest_after_workers_died(
    store: str, tmp_path: Path
) -> None:
    clock, dead, acted, seen = ManualClock(), set[str](), Counter[str](), Counter[str]()
    names = [f"w{n}" for n in range(WORKERS)]
    shops = [Fragile(dies=n < DYING) for n in range(WORKERS)]
    for shop in shops:
        shop.acted, shop.done = acted, seen  # one world: every probe sees what really happened
    stores = AsyncExitStack()
    gateways: list[Gateway] = []
    try:
        for name, shop in zip(names, shops, strict=True):
            opened = durable(store, tmp_path, clock, workers=Among(name, names, dead))
            kept = await stores.enter_async_context(opened)
            upstreams = {"test": FunctionUpstream(toolset(shop), concurrency=CALLS)}
            gateways.append(
                Gateway.assemble(
                    budget(per="tenant", kind="write", calls=MOST),
                    kept,
                    upstreams,
                    clock=clock,
                    ids=RandomIds(),
                )
            )
        calls = [
            asyncio.create_task(
                gateways[n % WORKERS].call("test.write", {"thing": f"t{n}"}, key=f"k{n}", principal=ANA)
            )
            for n in range(CALLS)
        ]
        dying = [task for n, task in enumerate(calls) if n % WORKERS < DYING]
        await asyncio.wait([task for task in calls if task not in dying])
        await clock.quiet()  # what is left hangs for ever
        dead |= set(names[:DYING])
        last = gateways[-1]
        before = await account(last)
        assert before.taken.calls == MOST
        assert sum(acted.values()) <= MOST
        await clock.advance(defaults.STANDARD_S + 2.0)
        for _ in range(4):
            await last.tidy()
        after = await account(last)
        assert (after.used.calls, after.reserved.calls) == (sum(acted.values()), 0)
        assert max(acted.values()) == 1
        rest = MOST - after.used.calls
        assert rest > 0  # some were killed before they acted
        more = [
            await last.call("test.write", {"thing": f"m{n}"}, key=f"m{n}", principal=ANA)
            for n in range(rest + 3)
        ]
        assert [m.status for m in more] == [Status.DONE] * rest + [Status.REFUSED] * 3
        assert more[-1].code is Code.BUDGET_EXHAUSTED
        final = await account(last, kind=Kind.WRITE)
        assert (final.used.calls, final.reserved) == (MOST, NONE)
        assert sum(acted.values()) == MOST
        for task in calls:
            task.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    finally:
        for gateway in gateways[DYING:]:
            await gateway.close()
        for gateway in gateways[:DYING]:
            for life in gateway._under_way.tasks:
                life.cancel()
        await stores.aclose()


class Among(Dying):
    """One of several workers on one database, who know which of them live."""

    def __init__(self, name: str, names: list[str], dead: set[str]) -> None:
        super().__init__(name, dead)
        self._names = names

    def leads(self) -> bool:
        return True

    def alive(self, worker: str) -> bool:
        return worker in self._names and worker not in self._dead


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
