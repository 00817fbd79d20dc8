"""Does a run that waits go on when it may, however long that took, and is none forgotten by everybody?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast import Effect, Floor, Gateway, Principal, Undo, tool
from holdfast.chains.reading import read
from holdfast.model import defaults
from holdfast.model.run import Run, RunState
from holdfast.stores.memory import MemoryStore
from holdfast.testing import CountingIds, ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.chains.world import Killed, Outside, do, shop, shopping
from tests.requirements import requirement

DAY_S = 86_400.0
CONFIG: dict[str, Any] = {
    "auth": {"people": {"ann": {"scopes": ["**"], "trust": 90}, "olga": {"roles": ["operator"]}}},
    "approvals": {"expire_s": 30 * DAY_S},
}


class Office:
    """A gateway in memory whose `sign` wants an operator, and whose `haul` takes as long as it is held up."""

    def __init__(self) -> None:
        self.world = Outside()
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock, approval_s=30 * DAY_S)
        upstreams = {
            "shop": FunctionUpstream([*shop(self.world), self._sign(), self._haul(), self._unhaul()])
        }
        ports: dict[str, Any] = {"clock": self.clock, "ids": CountingIds()}
        self.gateway = Gateway.assemble(CONFIG, self.store, upstreams, **ports)

    @property
    def ann(self) -> Principal:
        return self.gateway.identity.at_terminal("ann")

    @property
    def olga(self) -> Principal:
        return self.gateway.identity.at_terminal("olga")

    async def start(self, *steps: dict[str, Any], **said: Any) -> Run:
        chain = read({"chain": "order", "steps": list(steps), **said})
        return await self.gateway.chains.start(self.ann, chain, {"item": "tea"}, "k-1")

    async def settled(self, run: Run, beyond: int = -1) -> Run:
        """The run when it is over, or waits; time passes as it must."""
        waiting = asyncio.ensure_future(self.gateway.chains.wait(self.ann, run.id, 60.0, beyond))
        await self.clock.drive(waiting)
        return await waiting

    async def tidied(self) -> None:
        tidying = asyncio.ensure_future(self.gateway.tidy(forget=True))
        await self.clock.drive(tidying)
        await tidying

    def _sign(self) -> Any:
        @tool(
            effect=Effect.LOW_RISK_INTERNAL,
            floor=Floor.OPERATOR,
            undo=Undo.EXACT,
            manifest=[("contract", "UPDATE", "one")],
            idempotency="none",
            compensation={"tool": "unhaul", "arguments": {"item": "=args.item"}},
        )
        async def sign(item: str) -> str:
            """Sign for it.

            Args:
                item: what for
            """
            self.world.do("sign")
            return item

        return sign

    def _haul(self) -> Any:
        @tool(
            effect=Effect.LOW_RISK_INTERNAL,
            undo=Undo.EXACT,
            manifest=[("load", "CREATE", "one")],
            idempotency="none",
            compensation={"tool": "unhaul", "arguments": {"item": "=args.item"}},
        )
        async def haul(item: str) -> str:
            """Haul it.

            Args:
                item: what
            """
            self.world.do("haul")
            await asyncio.Event().wait()
            return item

        return haul

    def _unhaul(self) -> Any:
        @tool(
            effect=Effect.LOW_RISK_INTERNAL,
            undo=Undo.EXACT,
            manifest=[("load", "DELETE", "one")],
            idempotency="none",
        )
        async def unhaul(item: str) -> str:
            """Take it back.

            Args:
                item: what
            """
            self.world.do("unhaul")
            return item

        return unhaul


@asynccontextmanager
async def office() -> AsyncIterator[Office]:
    it = Office()
    try:
        await it.gateway.prepare()
        yield it
    finally:
        await it.gateway.close()


@requirement("CHN-7")
async def test_a_run_held_for_longer_than_every_window_goes_on_and_repeats_nothing() -> None:
    async with office() as here:
        run = await here.settled(await here.start(do("reserve"), do("charge"), do("sign"), do("ship")))
        assert run.waits_for.startswith("approval ")
        for _ in range(3):
            await here.clock.advance(DAY_S)  # longer than keys are remembered, grants last, calls are leased
            await here.tidied()
        [asked] = await here.gateway.approvals(here.olga)
        await here.gateway.decide(here.olga, asked.id, True)
        await here.tidied()
        ended = await here.settled(run)
        assert (ended.state, here.world.did) == (
            RunState.COMPLETED,
            ["reserve", "charge", "sign", "ship"],
        ), ended.waits_for


@requirement("CHN-7", "SAG-1")
async def test_a_run_whose_approval_is_denied_is_undone_by_housekeeping() -> None:
    async with office() as here:
        steps = (do("reserve"), do("sign"), do("ship"))
        run = await here.settled(await here.start(*steps, saga=True))
        [asked] = await here.gateway.approvals(here.olga)
        await here.gateway.decide(here.olga, asked.id, False)
        await here.tidied()
        ended = await here.settled(run)
        assert (ended.state, here.world.did) == (RunState.COMPENSATED, ["reserve", "unreserve"])


@requirement("CHN-3")
@pytest.mark.parametrize(
    ("found", "did"),
    [
        ("committed", ["charge", "haul", "ship", "unhaul"]),
        ("no-effect", ["charge", "haul", "ship"]),
    ],
)
async def test_a_write_under_way_in_a_branch_that_is_given_up_is_settled_and_taken_back(
    found: Any, did: list[str]
) -> None:
    async with office() as here:
        await here.gateway.chains.open()
        either = {"parallel": [do("haul"), [do("look"), do("charge")]], "join": "first"}
        run = await here.settled(await here.start(either, do("ship"), output={"charged": "=charge.id"}))
        assert sorted(here.world.did) == sorted(["charge", "haul", "look", "ship"])
        assert (run.state, "of step 'haul', which was given up" in run.waits_for) == (RunState.RUNNING, True)
        await here.gateway.settle(here.olga, run.waits_on, found, "looked at the yard")
        await here.tidied()
        ended = await here.settled(run)
        assert (ended.state, ended.output) == (RunState.COMPLETED, {"charged": "charge-tea"}), ended.waits_for
        assert sorted(one for one in here.world.did if one != "look") == did


@requirement("CHN-7", "SAG-1")
@pytest.mark.parametrize("found", ["committed", "no-effect"])
async def test_a_run_that_is_cancelled_while_an_outcome_is_unknown_takes_back_what_it_turns_out_to_be(
    found: Any,
) -> None:
    async with office() as here:
        await here.gateway.chains.open()
        run = await here.settled(await here.start(do("reserve"), do("haul"), do("ship"), saga=True))
        assert await here.gateway.chains.cancel(here.ann, run.id)
        still = await here.settled(run, beyond=run.round)
        assert (still.state, still.waits_for, still.waits_on) == (run.state, run.waits_for, run.waits_on)
        await here.gateway.settle(here.olga, run.waits_on, found, "looked at the yard")
        await here.tidied()
        ended = await here.settled(run)
        assert (ended.state, ended.why) == (RunState.COMPENSATED, "stopped by ann"), ended.waits_for
        hauled = ["unhaul"] if found == "committed" else []
        assert here.world.did == ["reserve", "haul", *hauled, "unreserve"]


@requirement("CHN-3", "SAG-1")
async def test_a_failure_beside_an_outcome_that_is_unknown_goes_on_once_that_is_known() -> None:
    async with office() as here:
        await here.gateway.chains.open()
        here.world.failing["charge"] = 2
        both = {"parallel": [do("haul"), do("charge")]}
        run = await here.settled(await here.start(do("reserve"), both, saga=True))
        assert (run.state, "the outcome of call" in run.waits_for) == (RunState.RUNNING, True), run.why
        await here.gateway.settle(here.olga, run.waits_on, "committed", "looked at the yard")
        await here.tidied()
        ended = await here.settled(run)
        assert (ended.state, "charge is away" in ended.why) == (RunState.COMPENSATED, True), ended.waits_for
        assert here.world.did == ["reserve", "haul", "unhaul", "unreserve"]


@requirement("CHN-3")
async def test_what_may_have_been_done_in_a_join_of_a_branch_that_was_given_up_is_taken_back() -> None:
    async with office() as here:
        await here.gateway.chains.open()
        inner = {"parallel": [do("haul"), do("bill")]}
        either = {"parallel": [[inner], [do("look"), do("charge")]], "join": "first"}
        run = await here.settled(await here.start(either, do("ship")))
        assert (run.state, "'haul', which was given up" in run.waits_for) == (RunState.RUNNING, True), run
        await here.gateway.settle(here.olga, run.waits_on, "committed", "looked at the yard")
        await here.tidied()
        assert (await here.settled(run)).state is RunState.COMPLETED
        assert here.world.standing == ["charge", "look", "ship"]


@requirement("CHN-7")
async def test_a_run_that_nobody_drives_is_taken_up_after_the_lease() -> None:
    """As after a crash between beginning a run and enqueueing it, or a driver that broke."""
    async with office() as here:
        run = await here.start(do("reserve"), do("ship"))
        ended = await here.settled(run)
        forgotten = Run(
            tenant=ended.tenant,
            id="run_forgotten",
            chain=ended.chain,
            version=ended.version,
            declared=ended.declared,
            input=ended.input,
            principal=ended.principal,
            wanted_by=ended.wanted_by,
            key="k-2",
        )
        await here.store.runs.begin(forgotten)
        await here.tidied()
        assert here.world.did == ["reserve", "ship"]
        await here.clock.advance(defaults.CHAIN_LEASE_S)
        await here.tidied()
        assert (await here.settled(forgotten)).state is RunState.COMPLETED
        assert here.world.did == ["reserve", "ship"] * 2


@requirement("CHN-7", "IDM-4")
async def test_a_step_that_acted_and_was_forgotten_before_it_was_written_down_is_left_to_a_person() -> None:
    async with shopping() as here:
        run = await here.begin(do("reserve"), do("ship"), saga=True)
        run.at, run.after = 0, False
        with pytest.raises(Killed):
            await here.drive(run)
        run.at = None
        await here.clock.advance(3 * DAY_S)
        await here.gateway.tidy(forget=True)
        assert await here.drive(run) is RunState.RUNNING
        assert run.run.waits_for.startswith("a person: step 'reserve'")
        assert here.world.did == ["reserve"]
