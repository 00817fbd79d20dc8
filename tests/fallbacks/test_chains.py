"""How do the fallbacks of a tool meet a chain that it is a step of? EXE-4, SAG-1."""

from pathlib import Path

import pytest

from holdfast import Status
from tests.chains.counter import INPUT, counter
from tests.chains.world import do
from tests.requirements import requirement

CHARGING = {
    "charging": {"tools": ["shop.charge", {"tool": "shop.bill", "arguments": {"item": "=args.item + '!'"}}]}
}
ORDER = {
    "chain": "order",
    "saga": True,
    "input": INPUT,
    "steps": [do("reserve"), do("charge"), do("ship")],
    "output": {"charge": "=charge.id"},
}


@requirement("EXE-4")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_step_falls_back_as_any_call_of_its_tool_does(kind: str, tmp_path: Path) -> None:
    async with counter(kind, tmp_path, ORDER, fallbacks=CHARGING) as here:
        here.world.failing["charge"] = 100
        seen = await here.call("chains.order", key="k")
        assert (seen.status, seen.data) == (Status.DONE, {"charge": "bill-tea!"})
        assert here.world.did == ["reserve", "bill", "ship"]


@requirement("EXE-4", "SAG-1")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_what_a_stand_in_did_is_taken_back_by_its_own_compensation(kind: str, tmp_path: Path) -> None:
    async with counter(kind, tmp_path, ORDER, fallbacks=CHARGING) as here:
        here.world.failing |= {"charge": 100, "ship": 100}
        seen = await here.call("chains.order", key="k")
        assert seen.status is Status.FAILED
        assert here.world.did == ["reserve", "bill", "unbill", "unreserve"]
        assert here.world.standing == []
