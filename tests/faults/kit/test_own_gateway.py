"""Can a gateway that has no adapter be driven from the command line?"""

import json
import sys
from pathlib import Path

import pytest
from holdfast_faults.cli import main

from tests.requirements import requirement

PASSING = Path(__file__).with_name("passing.py")
SCENARIOS = ("duplicate", "no-elicitation", "kill", "store-restart")


@requirement("TST-3")
def test_a_gateway_without_an_adapter_is_started_by_a_command_and_counted_like_any_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, tables = tmp_path / "out.json", tmp_path / "out.md"
    chosen = [word for name in SCENARIOS for word in ("--scenario", name)]
    with pytest.raises(SystemExit) as ended:
        main(
            [
                *("run", "--name", "passing", "--keys", "4", *chosen),
                *("--command", f"{sys.executable} {PASSING} {{port}} {{upstream}}"),
                *("--url", "http://127.0.0.1:{port}/mcp", "--strict"),
                *("--json", str(kept), "--markdown", str(tables)),
            ]
        )
    rows = {row["scenario"]: row["figures"] for row in json.loads(kept.read_text())["rows"]}
    assert (rows["duplicate"]["duplicated"], rows["no-elicitation"]["duplicated"]) == (4, 0)
    assert rows["kill"]["duplicated"] > 0
    assert rows["store-restart"]["duplicated"] > 0
    assert [told["unanswered"] + told["failed"] for told in rows.values()] == [0, 0, 0, 0]
    assert ended.value.code == 1, "a second effect fails a strict run"
    assert "| duplicate | 4 of 4 |" in capsys.readouterr().out
    assert "| duplicate | 4 of 4 |" in tables.read_text()
