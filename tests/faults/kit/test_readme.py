"""Does the kit's readme say what the kit does?"""

import re
from pathlib import Path
from typing import Any

import pytest
from holdfast_faults.adapter import Site, Told
from holdfast_faults.cli import main
from holdfast_faults.gateways import ADAPTERS
from holdfast_faults.report import COLUMNS
from holdfast_faults.scenarios import SCENARIOS

from tests.requirements import requirement

THEIRS = {"--listen", "--config", "--upstream"}
"""Options of the reader's own gateway."""
README = (Path(__file__).parents[3] / "faults" / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@requirement("TST-3")
def test_every_scenario_and_every_figure_is_explained() -> None:
    for scenario in SCENARIOS:
        assert f"| `{scenario.name}` |" in README
    for shown in COLUMNS.values():
        assert shown in ("keys", "effects", "s") or f"`{shown}`" in README


@requirement("TST-3")
def test_the_table_of_figures_has_every_gateway_and_every_scenario() -> None:
    head, *lines = re.findall(r"^\|.*\|$", README.partition("## As measured")[2], re.MULTILINE)
    assert [cell.strip() for cell in head.split("|")[2:-1]] == list(ADAPTERS)
    told = [line.split("|")[1].strip() for line in lines[1 : len(SCENARIOS) + 1]]
    assert told == [scenario.name for scenario in SCENARIOS]
    holdfast = [line.split("|")[2].strip() for line in lines[1 : len(SCENARIOS) + 1]]
    assert all(cell.startswith("0 of ") for cell in holdfast)


@requirement("TST-3")
def test_the_adapter_shown_is_one(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(blocks("python")[0], names)
    site = Site(folder=tmp_path, upstream_url="http://127.0.0.1:1/mcp", upstream_command=(), tools={})
    launch = names["MINE"].prepare(site)
    assert launch.command[0] == "mygateway"
    assert launch.url.endswith(f":{launch.command[-1]}/mcp")
    assert names["MINE"].read({"content": []}) is Told.DONE
    assert names["MINE"].read({"isError": True, "content": "it may have happened"}) is Told.UNKNOWN


@requirement("TST-3")
@pytest.mark.parametrize("option", sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README)) - THEIRS))
def test_every_option_that_is_shown_is_there(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert f"{option} " in capsys.readouterr().out
