"""What does a test of the command line start with?"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.app import run

ROOT = Path(__file__).parent.parent.parent
CONFIG = """
upstreams:
  desk: {functions: "tests.cli.desk_tools:TOOLS"}
auth:
  people:
    ana: {roles: [operator], scopes: ["tickets:**"], trust: 60}
    ben: {roles: [operator], scopes: ["tickets:read"]}
    eve: {scopes: ["tickets:read"]}
"""


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Holdfast = Callable[..., Ended]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration, which is the working folder; nothing of the machine's environment."""
    (tmp_path / "holdfast.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DESK_EFFECTS", str(tmp_path / "effects"))
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("HOLDFAST_CONFIG", "HOLDFAST_DEBUG", "HOLDFAST_API_KEY", "HOLDFAST_APPROVER_SECRET"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def holdfast(desk: Path, capsys: pytest.CaptureFixture[str]) -> Holdfast:
    """Runs a command in this process."""

    def command(*arguments: str) -> Ended:
        capsys.readouterr()
        code = run(arguments)
        said = capsys.readouterr()
        return Ended(int(code), said.out, said.err)

    return command


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def process(desk: Path) -> Holdfast:
    """Runs a command in a process of its own."""

    def command(*arguments: str, stdin: str = "") -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=environment(),
            timeout=60,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return command
