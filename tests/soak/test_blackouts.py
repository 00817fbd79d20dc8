"""Is nothing lost and nothing done twice while PostgreSQL stops without warning, in its recovery too?"""

from pathlib import Path

import pytest

from holdfast.model import defaults
from tests.requirements import requirement
from tests.soak.audit import check_log
from tests.soak.blackouts import Blackouts
from tests.soak.effects import counting
from tests.soak.figures import Figures
from tests.soak.ledger import own_server, reading
from tests.soak.storm import PLAIN, PROBED, Plan

SHORT = Plan(processes=2, keys=60, deliveries=2, in_flight=4, kills=3, stops=0, stop_s=0)
LONG = Plan(processes=4, keys=5000, deliveries=2, kills=10, stops=2, stop_s=defaults.LEASE_MIN_S + 2.0)


async def blackouts(plan: Plan, folder: Path, every_s: float, *, durable: bool) -> Figures:
    """`durable`: on power cuts as well, which costs seconds at every start."""
    async with (
        own_server(durable=durable) as server,
        reading(server.url) as ledger,
        counting(folder / "effects") as effects,
    ):
        it = Blackouts(plan, folder, effects, ledger, server, every_s)
        figures = await it.run()
        print(f"\n{figures.table()}")
        figures.writers = await check_log(it.config)
    return figures


def check(figures: Figures) -> None:
    assert figures.wrong() == {}
    assert figures.uncertain(PROBED) == 0
    # No gateway died: what it saw is written once the database is back. What it did not see stays unknown: a
    # claim that waited for the database may leave the tool too little of its deadline.
    assert figures.given_up <= figures.calls_stopped
    assert figures.states[PROBED].keys() == {"committed"}
    assert figures.states[PLAIN].keys() <= {"committed", "unknown"}
    assert sum(states.total() for states in figures.states.values()) == figures.keys


@requirement("IDM-4", "IDM-5", "AUD-1", "AUD-5", "PPL-6")
async def test_a_database_that_stops_a_few_times_loses_and_repeats_nothing(tmp_path: Path) -> None:
    figures = await blackouts(SHORT, tmp_path, every_s=0.7, durable=False)
    check(figures)
    assert figures.blackouts >= SHORT.kills


@pytest.mark.soak
@requirement("IDM-4", "IDM-5", "AUD-1", "AUD-5", "PPL-6")
async def test_ten_thousand_calls_while_the_database_stops_every_four_seconds(tmp_path: Path) -> None:
    figures = await blackouts(LONG, tmp_path, every_s=4.0, durable=True)
    check(figures)
    assert figures.deliveries >= 10_000
    assert figures.blackouts >= LONG.kills
    assert figures.recoveries_cut > 0
