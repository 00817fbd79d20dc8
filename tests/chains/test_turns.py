"""Does a step whose turn has not come wait for it, here for a moment and then without a process?"""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest
from pydantic import Field

from holdfast import Effect, Floor, Gateway, Principal, Undo, tool
from holdfast.chains.reading import read
from holdfast.model.run import Run, RunState
from holdfast.stores.memory import MemoryStore
from holdfast.testing import CountingIds, ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.chains.world import Outside, do
from tests.requirements import requirement

CONFIG: dict[str, Any] = {
    "auth": {"people": {"ann": {"scopes": ["**"], "trust": 90}, "olga": {"roles": ["operator"]}}}
}
WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "idempotency": "none",
}
MOST = 200
"""Looks at a run that never becomes as it should."""
Item = Annotated[str, Field(json_schema_extra={"x-resource": "items"})]


class Yard:
    """Tools that take their time: by a rate, by people, and by each other."""

    def __init__(self, gateway_of: Any, clock: ManualClock) -> None:
        self.world = Outside()
        self.clock = clock
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.gateway: Gateway = gateway_of(self.tools())

    def tools(self) -> list[Any]:
        def made(name: str, **said: Any) -> Any:
            async def work(item: str) -> str:
                self.world.do(name)
                return item

            work.__name__ = name
            work.__doc__ = f"Do {name}.\n\nArgs:\n    item: what it is about\n"
            return tool(**{**WRITE, "manifest": [(name, "CREATE", "one")], **said})(work)

        @tool(**WRITE, manifest=[("items", "UPDATE", "one")])
        async def hold(item: Item) -> str:
            """Have an item.

            Args:
                item: which
            """
            self.world.do("hold")
            if item == "taken":
                self.begun.set()
                await self.go_on.wait()
            return item

        back = {"compensation": {"tool": "unsell", "arguments": {"item": "=args.item"}}}
        often = {"rate_limit": {"calls": 2, "per_s": 3.0}}
        seldom = {"rate_limit": {"calls": 1, "per_s": 3600.0}}
        return [
            made("often", **often),
            made("seldom", **seldom),
            made("sell", **back),
            made("unsell", **seldom),
            made("spare", **back),
            made("sign", floor=Floor.OPERATOR),
            hold,
        ]

    def at(self, user: str) -> Principal:
        return self.gateway.identity.at_terminal(user)

    async def start(self, *steps: dict[str, Any], key: str = "k-1", **said: Any) -> Run:
        chain = read({"chain": "order", "steps": list(steps), **said})
        return await self.gateway.chains.start(self.at("ann"), chain, {"item": "tea"}, key)

    async def looked(self, run: Run, done: Any) -> Run:
        """The run once it is as wanted; time passes meanwhile."""
        for _ in range(MOST):
            [found] = [one for one in await self.gateway.chains.list(self.at("ann")) if one.id == run.id]
            if done(found):
                return found
            await self.clock.advance(0.25)
        raise AssertionError(f"it is not as wanted, however long it takes: {found}")

    async def tidied(self) -> None:
        tidying = asyncio.ensure_future(self.gateway.tidy())
        await self.clock.drive(tidying)
        await tidying


@pytest.fixture
async def yard() -> AsyncIterator[Yard]:
    clock = ManualClock()

    def gateway_of(tools: list[Any]) -> Gateway:
        ports: dict[str, Any] = {"clock": clock, "ids": CountingIds()}
        return Gateway.assemble(CONFIG, MemoryStore(clock), {"shop": FunctionUpstream(tools)}, **ports)

    yard = Yard(gateway_of, clock)
    try:
        await yard.gateway.prepare()
        yield yard
    finally:
        yard.go_on.set()
        await yard.gateway.close()


def over(run: Run) -> bool:
    return run.state.over


def waits(run: Run) -> bool:
    return bool(run.waits_for)


@requirement("CHN-5", "CHN-7")
async def test_a_step_whose_rate_is_used_up_for_a_moment_is_called_when_it_has_room(yard: Yard) -> None:
    begun = yard.clock.monotonic()
    run = await yard.start(*[do("often", id=f"s{n}") for n in range(4)])
    ended = await yard.looked(run, over)
    assert (ended.state, yard.world.did) == (RunState.COMPLETED, ["often"] * 4), ended.why
    assert yard.clock.monotonic() - begun >= 3.0, "two had to wait for a turn each"


@requirement("CHN-7")
async def test_a_turn_that_is_far_away_is_waited_for_without_a_process(yard: Yard) -> None:
    run = await yard.start(do("seldom", id="first"), do("seldom", id="second"))
    parked = await yard.looked(run, waits)
    assert parked.state is RunState.RUNNING
    waited = await yard.gateway.chains.wait(yard.at("ann"), run.id, 60.0)
    assert waited == parked, "nobody is kept for what takes an hour"
    assert "the turn of step 'second', at 20" in parked.waits_for
    assert not parked.stuck, "nobody has to do anything"
    await yard.tidied()
    assert (await yard.gateway.chains.look(yard.at("ann"), run.id)).run.round == parked.round
    await yard.clock.advance(3600.0)
    await yard.tidied()
    ended = await yard.looked(run, over)
    assert (ended.state, yard.world.did) == (RunState.COMPLETED, ["seldom"] * 2), ended.why


@requirement("CHN-2", "CHN-5")
async def test_a_turn_that_comes_after_the_deadline_is_a_failure_and_another_tool_is_asked_first(
    yard: Yard,
) -> None:
    steps = (do("seldom", id="first"), do("seldom", id="second"))
    ended = await yard.looked(await yard.start(*steps, deadline_ms=10_000), over)
    assert (ended.state, yard.world.did) == (RunState.ABORTED, ["seldom"])
    assert "wait" in ended.why
    other = do("seldom", id="third", fallbacks=["shop.spare"])
    ended = await yard.looked(await yard.start(other, key="k-2"), over)
    assert (ended.state, yard.world.did) == (RunState.COMPLETED, ["seldom", "spare"])


@requirement("SAG-2", "CHN-7")
async def test_what_takes_back_waits_for_its_turn_too_and_no_person_is_needed(yard: Yard) -> None:
    yard.world.failing["spare"] = 9
    first = await yard.gateway.call("shop.unsell", {"item": "x"}, key="once", principal=yard.at("ann"))
    assert first.code is None
    run = await yard.start(do("sell"), do("spare"), saga=True)
    parked = await yard.looked(run, waits)
    assert parked.state is RunState.COMPENSATING
    assert parked.waits_for.startswith("the turn of step 'sell~undo'")
    await yard.clock.advance(3600.0)
    await yard.tidied()
    ended = await yard.looked(run, over)
    assert (ended.state, yard.world.did) == (RunState.COMPENSATED, ["unsell", "sell", "unsell"])


@requirement("EXE-7", "CHN-5")
async def test_a_step_that_another_call_is_in_the_way_of_is_called_when_that_is_done(yard: Yard) -> None:
    gateway, ann = yard.gateway, yard.at("ann")
    held = gateway.call("shop.hold", {"item": "taken"}, key="held", principal=ann)
    holder = asyncio.create_task(held)
    await yard.begun.wait()
    run = await yard.start(do("hold", **{"with": {"item": "taken"}}))
    before = await gateway.chains.look(ann, run.id)
    assert not before.run.state.over
    yard.go_on.set()
    await yard.clock.drive(holder)
    ended = await yard.looked(run, over)
    assert (ended.state, yard.world.did) == (RunState.COMPLETED, ["hold", "hold"]), ended.why


@requirement("CHN-7", "CHN-3")
@pytest.mark.parametrize("first", [0, 1])
async def test_a_run_that_waits_for_several_answers_goes_on_at_each_of_them(yard: Yard, first: int) -> None:
    left = [do("sign", id="left"), do("spare", id="after_left")]
    right = [do("sign", id="right", **{"with": {"item": "right"}}), do("sell", id="after_right")]
    run = await yard.start({"parallel": [left, right]})
    parked = await yard.looked(run, waits)
    olga = yard.at("olga")
    asked = sorted(await yard.gateway.approvals(olga), key=lambda one: parked.waits_on.index(one.id))
    assert parked.waits_on.split() == [one.id for one in asked]
    assert len(asked) == 2
    await yard.gateway.decide(olga, asked[first].id, True)
    await yard.tidied()
    again = await yard.looked(run, lambda one: waits(one) and one.round > parked.round)
    assert again.waits_on == asked[1 - first].id
    assert yard.world.did == ["sign", ("spare", "sell")[first]], "that branch went on, the other one waits"
    await yard.gateway.decide(olga, asked[1 - first].id, True)
    await yard.tidied()
    ended = await yard.looked(run, over)
    assert (ended.state, sorted(yard.world.did)) == (RunState.COMPLETED, ["sell", "sign", "sign", "spare"])


@requirement("CHN-5", "CHN-7")
async def test_a_run_that_is_cancelled_just_before_it_comes_to_wait_does_not_wait(yard: Yard) -> None:
    held = {"id": "hold", "tool": "shop.hold", "with": {"item": "taken"}}
    run = await yard.start({"parallel": [[held], [do("sign")]]})
    await yard.begun.wait()
    assert await yard.gateway.chains.cancel(yard.at("ann"), run.id)
    yard.go_on.set()
    ended = await yard.looked(run, over)
    assert (ended.state, ended.why) == (RunState.ABORTED, "stopped by ann")
    assert yard.world.did == ["hold"]
