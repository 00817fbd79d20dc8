"""Is a store that is away for a moment no reason to take anything back?"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast.execution.runtime import Runtime
from holdfast.model.call import Call
from holdfast.model.errors import StoreError
from holdfast.model.observation import Observation, Status
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Denied, Ledger, Ports, Taken
from tests.chains.counter import INPUT, counter
from tests.chains.world import do
from tests.requirements import requirement

ORDER = {"chain": "order", "saga": True, "input": INPUT, "steps": [do("reserve"), do("look"), do("charge")]}


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
