"""Does a store tell of processes that are gone, each to one other, and forget none of them?"""

from pathlib import Path

import pytest

from holdfast.model import defaults
from holdfast.stores.sql.slots import SqlSlots
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.stored import DURABLE, durable, place

PAST = defaults.CHAIN_LEASE_S + 1.0


@requirement("CHN-7")
@pytest.mark.parametrize("kind", DURABLE)
async def test_a_silent_process_is_told_to_one_other_until_its_runs_are_taken_over(
    kind: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with place(kind, tmp_path), durable(kind, tmp_path, clock) as store:
        writer = store.slots._writer
        gone, left, right = (SqlSlots(writer, clock, name) for name in ("w_gone", "w_left", "w_right"))
        assert await gone.take() == "w_gone"
        await left.take()
        await right.take()
        assert await left.dead() == []
        await clock.advance(PAST)
        assert await left.keep()
        assert await right.keep()
        assert await left.dead() == ["w_gone"]
        assert await right.dead() == []
        await clock.advance(PAST)  # and that one is gone too, in the middle of it
        assert await right.keep()
        assert await right.dead() == ["w_gone", "w_left"]
        assert await right.all() == {"w_gone", "w_left", "w_right"}
        await right.taken_over("w_gone")
        await right.taken_over("w_left")
        assert await right.all() == {"w_right"}


@requirement("CHN-7")
@pytest.mark.parametrize("kind", DURABLE)
async def test_a_process_that_only_slept_has_its_name_again_and_one_that_leaves_is_over_at_once(
    kind: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with place(kind, tmp_path), durable(kind, tmp_path, clock) as store:
        writer = store.slots._writer
        sleeper, other = (SqlSlots(writer, clock, name) for name in ("w_sleeper", "w_other"))
        await sleeper.take()
        await other.take()
        await clock.advance(PAST)
        assert await other.keep()
        assert await other.dead() == ["w_sleeper"]
        assert not await sleeper.keep()
        await other.taken_over("w_sleeper")
        assert await sleeper.keep()
        assert await other.all() == {"w_sleeper", "w_other"}
        await sleeper.leave()
        assert await other.dead() == ["w_sleeper"]
