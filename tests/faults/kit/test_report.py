"""Are the figures of a scenario counted and shown as they are?"""

import json
from collections import Counter
from pathlib import Path

import pytest
from holdfast_faults import report
from holdfast_faults.adapter import Told
from holdfast_faults.cli import listing, main
from holdfast_faults.figures import Row, count
from holdfast_faults.gateways import ADAPTERS
from holdfast_faults.operation import Operation
from holdfast_faults.scenarios import SCENARIOS

from tests.requirements import requirement

OPERATIONS = [
    Operation(key="well", tool="t", deliveries=1, told=[Told.DONE]),
    Operation(key="twice", tool="t", deliveries=2, told=[Told.DONE, Told.DONE]),
    Operation(key="lost", tool="t", deliveries=1, told=[Told.DONE]),
    Operation(key="open", tool="t", deliveries=3, lost=2, told=[Told.UNKNOWN]),
    Operation(key="silent", tool="t", deliveries=4, lost=4),
    Operation(key="wrong", tool="t", deliveries=6, errors=6, told=[Told.ERROR]),
    Operation(key="learned", tool="t", deliveries=2, told=[Told.UNKNOWN, Told.DONE]),
]
EFFECTS = Counter({"well": 1, "twice": 3, "open": 1, "learned": 1})


@requirement("TST-3")
def test_every_key_is_counted_by_its_effects_and_by_what_its_client_was_left_with() -> None:
    told = count(OPERATIONS, EFFECTS, struck=5, seconds=1.25, forbidden=False)
    assert (told.keys, told.deliveries, told.effects, told.struck) == (7, 19, 6, 5)
    assert (told.duplicated, told.most, told.lost_acknowledgements) == (1, 3, 1)
    assert (told.unknown, told.unanswered, told.failed, told.refused) == (1, 1, 1, 0)
    assert (told.errors, told.lost, told.unwanted) == (6, 6, 0)


@requirement("TST-3")
def test_where_nothing_may_happen_every_effect_is_unwanted_and_an_error_is_a_clear_no() -> None:
    told = count(OPERATIONS, EFFECTS, struck=0, seconds=0.0, forbidden=True)
    assert (told.unwanted, told.refused, told.failed) == (4, 1, 0)


def rows() -> list[Row]:
    counted = count(OPERATIONS, EFFECTS, struck=5, seconds=1.25, forbidden=False)
    return [
        Row(gateway="one", scenario="kill", figures=counted),
        Row(gateway="two", scenario="kill", why="it has no store", applies=False),
        Row(gateway="three", scenario="kill", why="not over after 150 s"),
    ]


@requirement("TST-3")
def test_a_row_without_figures_says_why_wherever_it_is_shown() -> None:
    for text in (report.terminal(rows()), report.markdown(rows())):
        assert "n/a: it has no store" in text
        assert "broken: not over after 150 s" in text
    assert (
        report.summary(rows()).splitlines()[2]
        == "| kill | 1 of 7 (5 in mid-call, 2 without an answer) | n/a | broken |"
    )


@requirement("TST-3")
def test_what_is_kept_as_json_has_every_figure(tmp_path: Path) -> None:
    report.keep(tmp_path / "out.json", rows(), {"keys": 7})
    kept = json.loads((tmp_path / "out.json").read_text())
    assert kept["keys"] == 7
    assert kept["rows"][0]["figures"]["duplicated"] == 1
    assert kept["rows"][1]["figures"] is None


@requirement("TST-3")
def test_the_list_names_every_scenario_and_every_gateway(capsys: pytest.CaptureFixture[str]) -> None:
    main(["list"])
    said = capsys.readouterr().out
    assert said.strip() == listing()
    for name in (*ADAPTERS, *(scenario.name for scenario in SCENARIOS)):
        assert f"  {name} " in said
