"""Does every effect happen at most once while servers are killed and stopped in the middle of it?"""

from pathlib import Path

import pytest

from holdfast.model import defaults
from tests.requirements import requirement
from tests.soak.effects import counting
from tests.soak.figures import Figures
from tests.soak.storm import PLAIN, PROBED, Plan, Storm

SHORT = Plan(processes=2, keys=60, deliveries=3, in_flight=4, kills=4, stops=1, stop_s=1.0)
LONG = Plan(processes=4, keys=2000, deliveries=5, kills=60, stops=3, stop_s=defaults.LEASE_MIN_S + 2.0)


async def storm(plan: Plan, folder: Path) -> Figures:
    async with counting(folder / "effects") as effects:
        figures = await Storm(plan, folder, effects).run()
    print(f"\n{figures.table()}")
    return figures


def check(figures: Figures) -> None:
    assert figures.twice == []
    assert figures.done_without_effect == []
    assert figures.effect_denied == []
    assert figures.unequal_answers == []
    assert figures.unrecorded == []
    assert figures.surprises == []
    assert figures.stuck == 0
    assert figures.uncertain(PROBED) == 0
    assert figures.uncertain(PLAIN) <= figures.calls_killed + figures.calls_stopped
    assert figures.states[PROBED].keys() == {"committed"}
    assert figures.states[PLAIN].keys() <= {"committed", "unknown"}
    assert sum(states.total() for states in figures.states.values()) == figures.keys


@requirement("IDM-4", "IDM-5", "AUD-5", "PPL-6")
async def test_no_effect_happens_twice_or_is_made_up_in_a_short_storm_of_kills(tmp_path: Path) -> None:
    figures = await storm(SHORT, tmp_path)
    check(figures)
    assert figures.kills == SHORT.kills


@pytest.mark.soak
@requirement("IDM-4", "IDM-5", "IDM-8", "AUD-5", "PPL-6")
async def test_no_effect_happens_twice_or_is_made_up_in_a_long_storm_of_kills(tmp_path: Path) -> None:
    figures = await storm(LONG, tmp_path)
    check(figures)
    assert figures.keys >= 2000
    assert figures.kills >= 60
    assert figures.kills_in_flight >= 0.3 * figures.kills
