"""Does what is begun twice run once, and what is delivered twice act once?"""

from collections import Counter
from pathlib import Path

import pytest

from holdfast.model.run import RunState
from holdfast.stores.memory.runs import MemoryRuns
from tests.chains.crashed import program
from tests.chains.orders import FIVE
from tests.chains.world import Killed, Shop, do, shopping
from tests.requirements import requirement
from tests.stored import url_of

KEYS = 3


@requirement("CHN-7", "IDM-1")
async def test_a_chain_begun_by_three_processes_at_once_with_one_key_runs_once(tmp_path: Path) -> None:
    told = await program("tests.chains.together", url_of("sqlite", tmp_path), tmp_path, str(KEYS))
    runs = {(one["key"], one["run"]) for one in told}
    assert (len(told), len(runs)) == (3 * KEYS, KEYS)
    assert {tuple(one["did"]) for one in told} == {FIVE}
    assert Counter(one["rounds"] > 1 for one in told)[True] > 0, "nobody was overtaken"


@requirement("CHN-7", "IDM-1")
@pytest.mark.parametrize("failing", [False, True], ids=["done", "undone"])
async def test_steps_that_are_delivered_twice_because_nobody_wrote_them_down_act_once(failing: bool) -> None:
    async with shopping() as shop:
        if failing:
            shop.world.failing["bill"] = 100
        run = await shop.begin(*map(do, FIVE), saga=True)
        back = [f"un{name}" for name in reversed(FIVE[:-1])]
        wanted = [*FIVE[:-1], *back] if failing else [*FIVE]
        ways = [(line, False) for line in range(len(FIVE))]
        ways += [(line, True) for line in range(len(back))] if failing else []
        for line, undone in ways:
            run.at, run.after = line, True
            with pytest.raises(Killed):
                await shop.drive(run)
            forget(shop, undone=undone)
        run.at = None
        assert await shop.drive(run) is (RunState.COMPENSATED if failing else RunState.COMPLETED)
        assert shop.world.did == wanted


def forget(shop: Shop, *, undone: bool) -> None:
    """The journal loses what it was told of the way forward, or of the way back."""
    assert isinstance(shop.runs, MemoryRuns)
    lines = shop.runs._lines["default", "run_1"]
    for name in [name for name in lines if not undone or "~undo" in name]:
        del lines[name]
