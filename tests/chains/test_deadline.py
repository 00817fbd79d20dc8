"""A chain's deadline is divided among its steps, also where they stand in branches and loops."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.chains.calls import StepCall
from holdfast.chains.drive import drive
from holdfast.model.observation import Observation
from holdfast.model.run import RunState
from tests.chains.guessing import Guesser, choice
from tests.chains.world import GatewayCalls, do, shopping
from tests.requirements import requirement


class Timed(GatewayCalls):
    """Keeps how long each step was given."""

    def __init__(self, calls: GatewayCalls) -> None:
        super().__init__(calls._gateway)
        self.given: dict[str, float] = {}

    async def call(self, wanted: StepCall) -> Observation:
        assert wanted.deadline_s is not None
        self.given[wanted.step] = round(wanted.deadline_s, 3)
        return await super().call(wanted)


async def given(*steps: dict[str, Any], tools: Sequence[Any] = ()) -> dict[str, float]:
    """What each step may take of twelve seconds in which no time passes."""
    async with shopping(*tools) as shop:
        run = await shop.begin(*steps, deadline_ms=12_000)
        timed = Timed(shop.calls)
        going = asyncio.ensure_future(drive(run.run, await run.taken_up(), timed, shop.clock))
        await shop.clock.drive(going)
        assert await going is RunState.COMPLETED
        return timed.given


@requirement("CHN-2")
@pytest.mark.parametrize(
    ("node", "told"),
    [
        ({"branch": [{"otherwise": [do("pack"), do("ship")]}]}, {"pack": 4, "ship": 8}),
        ({"parallel": [[do("pack"), do("ship")], do("bill")]}, {"pack": 4, "ship": 8, "bill": 8}),
        ({"repeat": 2, "do": do("pack")}, {"pack#1": 4, "pack#2": 8}),
        ({"repeat": 2, "until": "pack.id != ''", "do": do("pack")}, {"pack#1": 8}),
    ],
)
async def test_what_stands_inside_shares_the_time_of_what_it_stands_in(
    node: dict[str, Any], told: dict[str, float]
) -> None:
    """All steps usually take as long as each other: three of them a third each."""
    assert await given(node, do("charge")) == {**told, "charge": 12}


@requirement("CHN-2")
async def test_who_is_asked_for_a_way_leaves_time_for_the_way() -> None:
    assert await given(choice(), tools=[Guesser().tool()]) == {"guess": 6, "charge": 12}
