"""Is what the suite found read as it was meant?"""

import json
from pathlib import Path

from tests.conformance.runner import Report, read, required

REVISION = "2025-11-25"


def found(results: Path, folder: str, *statuses: str) -> None:
    place = results / f"{folder}-2026-11-16T00-46-32-155Z"
    place.mkdir(parents=True)
    checks = [{"id": f"c{n}", "status": status, "description": "d"} for n, status in enumerate(statuses)]
    (place / "checks.json").write_text(json.dumps(checks))


def test_a_scenario_passes_when_something_was_checked_and_nothing_failed(tmp_path: Path) -> None:
    found(tmp_path, "server-ping", "SUCCESS", "WARNING", "INFO")
    found(tmp_path, "server-tools-list", "SUCCESS", "FAILURE")
    found(tmp_path, "server-prompts-list", "INFO")
    outcomes = read("server", tmp_path)
    assert {name for name, outcome in outcomes.items() if outcome.is_pass} == {"ping"}
    unmet = Report(outcomes, "").unmet(REVISION, "server")
    assert unmet["tools-list"] == ("c1: d",)
    assert unmet["prompts-list"] == ("no check passed",)
    assert unmet["resources-list"] == ("no result",)
    assert unmet.keys() == set(required(REVISION, "server")) - {"ping"}


def test_a_scenario_keeps_the_name_the_suite_gives_it(tmp_path: Path) -> None:
    found(tmp_path, "auth/scope-step-up", "SUCCESS")
    assert list(read("client", tmp_path)) == ["auth/scope-step-up"]
