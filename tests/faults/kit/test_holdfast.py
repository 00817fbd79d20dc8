"""What does the fault kit find when it drives Holdfast, and does it find what there is elsewhere?"""

from pathlib import Path

import pytest
from holdfast_faults.adapter import Adapter
from holdfast_faults.figures import Figures, Row
from holdfast_faults.gateways import ADAPTERS
from holdfast_faults.gateways.holdfast import on_postgresql
from holdfast_faults.operation import Patience
from holdfast_faults.run import Plan, run
from holdfast_faults.scenarios import SCENARIOS, Scenario

from bench.faults import installed
from tests.requirements import requirement
from tests.soak.ledger import own_server

KEYS = 8
SHORT = Patience(attempt_s=4.0, unknowns=2)
NOT_CUT = {"no-elicitation"}
"""Scenarios without a moment at which a fault strikes."""
GROUPS = (
    ("duplicate", "lost-answer", "lost-upstream-answer", "no-elicitation"),
    ("kill", "store-restart"),
    ("stop", "clock-jump"),
)
"""One gateway is started for each: the start takes longer than most scenarios."""
MANY = 24


def short(*scenarios: Scenario) -> Plan:
    return Plan(scenarios=scenarios, keys=KEYS, patience=SHORT, stop_s=6.0)


async def driven(
    gateway: Adapter | str, plan: Plan, folder: Path, home: Path | None = None
) -> dict[str, Row]:
    adapter = ADAPTERS[gateway] if isinstance(gateway, str) else gateway

    def tell(row: Row) -> None:
        print(row)

    rows = await run(adapter, plan, folder, home=home, tell=tell)
    return {row.scenario: row for row in rows}


def figures(row: Row) -> Figures:
    assert row.figures is not None, row.why
    return row.figures


def check(row: Row) -> None:
    """What is promised of Holdfast whatever happens to it."""
    told = figures(row)
    assert told.wrong == 0, told
    assert (told.unanswered, told.failed) == (0, 0), (told, row.sample)
    assert row.scenario in NOT_CUT or told.struck > 0, "the fault did not strike in mid-call"


@requirement("TST-3", "IDM-5")
@pytest.mark.parametrize("names", GROUPS, ids=", ".join)
async def test_holdfast_comes_through_faults_without_a_second_effect_or_a_lost_one(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    rows = await driven("holdfast", short(*(one for one in SCENARIOS if one.name in names)), tmp_path)
    assert tuple(rows) == names
    for row in rows.values():
        check(row)
    if "no-elicitation" in rows:
        assert figures(rows["no-elicitation"]).refused == KEYS


def test_no_scenario_is_left_out_here() -> None:
    assert set().union(*GROUPS) == {scenario.name for scenario in SCENARIOS}


@requirement("TST-3")
async def test_the_kit_sees_every_second_effect_where_there_is_no_gateway(tmp_path: Path) -> None:
    rows = await driven("direct", short(*SCENARIOS), tmp_path)
    duplicate, lost = figures(rows["duplicate"]), figures(rows["lost-answer"])
    assert (duplicate.duplicated, lost.duplicated) == (KEYS, KEYS)
    assert (duplicate.effects, lost.effects) >= (4 * KEYS, 2 * KEYS)  # one for every delivery
    assert figures(rows["lost-upstream-answer"]).duplicated == KEYS
    assert figures(rows["no-elicitation"]).refused == KEYS
    assert {name for name, row in rows.items() if not row.applies} == {
        scenario.name for scenario in SCENARIOS if scenario.owns
    }


@pytest.mark.soak
@requirement("TST-3")
@pytest.mark.parametrize("gateway", ["holdfast", "fastmcp", "contextforge", "supergateway"])
async def test_every_gateway_can_be_driven_and_holdfast_makes_each_effect_once(
    gateway: str, tmp_path: Path
) -> None:
    plan = Plan(scenarios=SCENARIOS, keys=MANY, patience=Patience(whole_s=30.0))
    rows = await driven(gateway, plan, tmp_path, installed().get(gateway))
    if gateway == "holdfast":
        for row in rows.values():
            check(row)
    else:
        assert figures(rows["duplicate"]).deliveries >= 4 * MANY
        assert figures(rows["no-elicitation"]).unwanted == 0


@pytest.mark.soak
@requirement("TST-3")
async def test_holdfast_on_postgresql_makes_each_effect_once(tmp_path: Path) -> None:
    """Its store is restarted by itself, as if it were killed, while the gateways go on."""
    plan = Plan(scenarios=SCENARIOS, keys=MANY, patience=Patience(whole_s=30.0))
    async with own_server() as server:
        rows = await driven(on_postgresql(server.url, server.restart_immediate), plan, tmp_path)
    for row in rows.values():
        check(row)
