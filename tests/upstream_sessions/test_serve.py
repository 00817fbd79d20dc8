"""Does `holdfast serve` say what its workers cannot share, and does a worker leave others' sessions alone?"""

from pathlib import Path

import pytest

from tests.cli.crew import crew
from tests.requirements import requirement

CONFIG = """
upstreams:
  till: {functions: "tests.upstream_sessions.served:TOOLS"}
telemetry: {level: info, logs: text}
"""
WARNING = "session 'till' of 'till': its upstream lives in the gateway's process"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "holdfast.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@requirement("EXE-8")
def test_several_workers_are_warned_of_sessions_that_live_in_one_and_say_so_themselves(place: Path) -> None:
    with crew(workers=2) as several:
        assert several.log.count(WARNING) == 1
        _, begun = several.ask("POST", "/v1/calls", {"tool": "till.begin", "arguments": {}, "key": "k"})
        tx, answers = begun["data"]["tx"], set()
        for number in range(12):  # whichever worker takes the connection
            entry = {"tx": tx, "name": f"entry-{number}", "amount": number}
            body = {"tool": "till.add", "arguments": entry, "key": f"k-{number}"}
            status, said = several.ask("POST", "/v1/calls", body)
            answers.add((status, said.get("code")))
        assert answers <= {(200, None), (409, "CONFLICT")}


@requirement("EXE-8")
def test_one_worker_is_not_warned(place: Path) -> None:
    with crew(workers=1) as one:
        assert WARNING not in one.log
