"""Does every effect happen at most once while servers are killed and stopped in the middle of it?"""

from pathlib import Path

import pytest

from holdfast.model import defaults
from tests.requirements import requirement
from tests.soak.audit import check_log
from tests.soak.effects import counting
from tests.soak.figures import Figures
from tests.soak.ledger import STORES, ledger_in
from tests.soak.storm import PLAIN, PROBED, Plan, Storm

SHORT = Plan(processes=2, keys=60, deliveries=3, in_flight=4, kills=3, stops=1, stop_s=1.0)
LONG = {
    store: Plan(processes=4, keys=2000, deliveries=5, kills=kills, stops=3, stop_s=defaults.LEASE_MIN_S + 2.0)
    for store, kills in (("sqlite", 60), ("postgres", 100))
}


async def storm(plan: Plan, folder: Path, store: str, *, durable: bool = False) -> Figures:
    """A storm, what came of it, and one tree over the records of everybody who was killed in it."""
    async with ledger_in(store, folder, durable=durable) as ledger, counting(folder / "effects") as effects:
        it = Storm(plan, folder, effects, ledger)
        figures = await it.run()
        print(f"\n{figures.table()}")
        figures.writers = await check_log(it.config)
    return figures


def check(figures: Figures) -> None:
    assert figures.wrong() == {}
    assert len(figures.writers) > figures.kills  # every life left records
    assert figures.uncertain(PROBED) == 0
    assert figures.uncertain(PLAIN) <= figures.calls_killed + figures.calls_stopped
    assert figures.states[PROBED].keys() == {"committed"}
    assert figures.states[PLAIN].keys() <= {"committed", "unknown"}
    assert sum(states.total() for states in figures.states.values()) == figures.keys


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
@requirement("IDM-4", "IDM-5", "AUD-1", "AUD-5", "PPL-6")
async def test_no_effect_happens_twice_or_is_made_up_in_a_short_storm_of_kills(
    tmp_path: Path, store: str
) -> None:
    figures = await storm(SHORT, tmp_path, store)
    check(figures)
    assert figures.kills == SHORT.kills


@pytest.mark.soak
@pytest.mark.parametrize("store", STORES)
@requirement("IDM-4", "IDM-5", "IDM-8", "AUD-1", "AUD-5", "PPL-6")
async def test_no_effect_happens_twice_or_is_made_up_in_a_long_storm_of_kills(
    tmp_path: Path, store: str
) -> None:
    figures = await storm(LONG[store], tmp_path, store, durable=True)
    check(figures)
    assert figures.keys >= 2000
    assert figures.kills >= LONG[store].kills
    assert figures.kills_in_flight >= 0.3 * figures.kills
