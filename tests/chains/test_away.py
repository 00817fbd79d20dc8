"""Is a store that is away for a moment no reason to take anything back?"""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast.chains.engines.local import LocalEngine
from holdfast.execution.runtime import Runtime
from holdfast.gateway.run_calls import UNSENT
from holdfast.model.call import Call
from holdfast.model.errors import StoreError
from holdfast.model.observation import Observation, Status
from holdfast.model.run import RunState
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Clock, Denied, Ledger, Ports, Taken
from tests.chains.counter import ANNOUNCE, INPUT, counter
from tests.chains.world import do
from tests.polling import pause
from tests.requirements import requirement

LITTLE_S = 0.01
ORDER: dict[str, Any] = {
    "chain": "order",
    "saga": True,
    "input": INPUT,
    "steps": [do("reserve"), do("look"), do("charge")],
}


class Flickering:
    """A ledger that cannot be used for one moment of the call of one step."""

    def __init__(self, ledger: Ledger, moment: str, step: str) -> None:
        self._ledger = ledger
        self._moment = moment
        self._step = step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def _away(self, moment: str, call: Call) -> None:
        if (moment, call.proposal.step) == (self._moment, self._step):
            self._moment = ""
            raise StoreError("away")

    async def begin(self, call: Call) -> Begun | Taken | Denied:
        self._away("begin", call)
        return await self._ledger.begin(call)

    async def finish(self, call: Call, observation: Observation, state: State | None) -> bool:
        self._away("finish", call)
        return await self._ledger.finish(call, observation, state)


def flickering(moment: str, step: str) -> Callable[[Ports, Runtime], tuple[Ports, Runtime]]:
    def adapt(ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
        return replace(ports, ledger=cast(Ledger, Flickering(ports.ledger, moment, step))), runtime

    return adapt


@requirement("CHN-7", "SAG-1")
@pytest.mark.parametrize(("moment", "step"), [("begin", "charge"), ("finish", "look")])
async def test_a_step_that_the_store_could_not_take_is_taken_again_and_fails_nothing(
    moment: str, step: str, tmp_path: Path
) -> None:
    async with counter("sqlite", tmp_path, ORDER, adapt=flickering(moment, step)) as here:
        done = await here.call("chains.order", key="k-1")
        [run] = await here.gateway.chains.list(here.caller("ada"))
    assert (done.status, here.world.standing.count("charge")) == (Status.DONE, 1)
    assert [one for one in here.world.did if one != "look"] == ["reserve", "charge"]
    assert run.round == 2


class Slow:
    """A ledger that takes a claim of one step only when the time of the call is over, for some times."""

    def __init__(self, ledger: Ledger, step: str, times: int, clock: Clock | None) -> None:
        """`clock`: that time really passes."""
        self._ledger = ledger
        self._step = step
        self._times = times
        self._clock = clock
        self.asked: list[int | None] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def begin(self, call: Call) -> Begun | Taken | Denied:
        begun = await self._ledger.begin(call)
        if call.proposal.step == self._step:
            self.asked.append(call.proposal.deadline_ms)
            if len(self.asked) <= self._times:
                await self._take_long(call)
        return begun

    async def _take_long(self, call: Call) -> None:
        if self._clock is None:
            call.deadline = call.started
        while self._clock is not None and self._clock.monotonic() < call.deadline + LITTLE_S:
            await pause()


def slow(
    kept: list[Slow], times: int, *, really: bool = False
) -> Callable[[Ports, Runtime], tuple[Ports, Runtime]]:
    def adapt(ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
        kept.append(Slow(ports.ledger, "charge", times, ports.clock if really else None))
        return replace(ports, ledger=cast(Ledger, kept[-1])), runtime

    return adapt


@requirement("CHN-7", "SAG-1")
async def test_a_step_whose_time_was_over_before_anything_was_sent_is_proposed_again_and_fails_nothing(
    tmp_path: Path,
) -> None:
    kept: list[Slow] = []
    async with counter("sqlite", tmp_path, ORDER, adapt=slow(kept, UNSENT)) as here:
        done = await here.call("chains.order", key="k-1")
    assert (done.status, here.world.standing.count("charge")) == (Status.DONE, 1)
    assert [one for one in here.world.did if one != "look"] == ["reserve", "charge"]
    assert kept[-1].asked == [None] * (UNSENT + 1)


@requirement("CHN-7", "SAG-1")
async def test_a_step_that_never_gets_to_be_sent_is_given_up_after_some_times(tmp_path: Path) -> None:
    kept: list[Slow] = []
    async with counter("sqlite", tmp_path, ORDER, adapt=slow(kept, UNSENT + 1)) as here:
        await here.call("chains.order", key="k-1")
        [run] = await here.gateway.chains.list(here.caller("ada"))
    assert (run.state, here.world.standing) == (RunState.COMPENSATED, ["look"])
    assert len(kept[-1].asked) == UNSENT + 1


@requirement("CHN-2", "SAG-1")
async def test_a_step_is_not_proposed_again_when_its_share_of_the_time_is_over(tmp_path: Path) -> None:
    kept: list[Slow] = []
    hurried = [*ORDER["steps"][:-1], {**do("charge"), "share": 0.02}]
    order = {**ORDER, "deadline_ms": 50_000, "steps": hurried}
    async with counter("sqlite", tmp_path, order, adapt=slow(kept, UNSENT, really=True)) as here:
        await here.call("chains.order", key="k-1")
        [run] = await here.gateway.chains.list(here.caller("ada"))
    assert (run.state, kept[-1].asked) == (RunState.COMPENSATED, [1_000])


class Unwell(LocalEngine):
    async def tend(self) -> None:
        raise StoreError("the engine does not answer")


@requirement("CHN-7")
async def test_an_engine_that_cannot_be_tended_keeps_no_run_from_going_on_and_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with counter("sqlite", tmp_path, ANNOUNCE, engine=Unwell) as here:
        await here.call("chains.announce", key="k-1")
        await here.decided()
        await here.settled("announce")
        await here.gateway.tidy()
        [run] = await here.gateway.chains.list(here.caller("ada"))
    assert (run.state, here.world.did) == (RunState.COMPLETED, ["reserve", "send"])
    told = [one for one in caplog.records if "are not taken over" in one.message]
    assert [one.levelno for one in told] == [logging.ERROR]
