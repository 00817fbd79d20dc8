"""`holdfast health`, `alerts` and `costs`: do they tell what is, to people and to programs?"""

from pathlib import Path

from tests.cli.conftest import Holdfast
from tests.requirements import requirement


@requirement("TEL-4")
def test_health_is_told_of_what_was_called(desk: Path, holdfast: Holdfast) -> None:
    assert "nothing is known against any tool" in holdfast("health", "--as", "ana").out
    holdfast("call", "desk.get_ticket", "--args", '{"number": 1}', "--as", "eve")
    shown = holdfast("health", "--as", "eve")
    assert (shown.code, shown.out.count("desk.get_ticket")) == (0, 1)
    told = holdfast("health", "--as", "eve", "--json").json
    tools = {one["name"]: one for one in told["tools"]}
    assert (tools["desk.get_ticket"]["calls"], tools["desk.get_ticket"]["errors"]) == (1, 0)
    assert [one["name"] for one in told["upstreams"]] == ["desk"]


@requirement("TEL-3")
def test_alerts_are_told_to_operators(desk: Path, holdfast: Holdfast) -> None:
    assert holdfast("alerts", "--as", "ana").out == "nothing is wrong\n"
    assert "in 7 days" in holdfast("alerts", "--days", "7", "--as", "ana").out
    assert holdfast("alerts", "--as", "ana", "--json").json == {"alerts": []}
    refused = holdfast("alerts", "--as", "eve")
    assert (refused.code, "'operator'" in refused.err) == (3, True)


@requirement("TEL-5")
def test_costs_are_told_by_what_is_asked_for(desk: Path, holdfast: Holdfast) -> None:
    assert "runtime.cost" in holdfast("costs", "--as", "ana").out
    assert holdfast("costs", "--by", "day", "--as", "ana", "--json").json == {"by": "day", "costs": []}
    assert holdfast("costs", "--by", "colour", "--as", "ana").code == 2
