"""What does a test of wrapping start with?"""

import base64
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.cli.app import run
from tests.cli.conftest import Ended

FILES = Path(__file__).parent / "files"
KINDS = {
    "Claude Desktop": "desktop/claude_desktop_config.json",
    "Claude Code, project": "code-project/.mcp.json",
    "Claude Code, user": "code-user/.claude.json",
    "Cursor": "cursor/.cursor/mcp.json",
    "VS Code": "vscode/.vscode/mcp.json",
    "VS Code, settings": "vscode-settings/settings.json",
    "Windsurf": "windsurf/mcp_config.json",
    "Zed": "zed/settings.json",
    "plain": "plain/servers.json",
}
"""A file of each kind. Every secret in them has SECRET in it."""
MARKS = ("SECRET", base64.b64encode(b"user:SECRETpass").decode())

ENV_FILE = '# for the memory server\nMEMORY_KEY="SECRET-in-env-file"\nexport PLAIN=1\n'

Wrap = Callable[..., Ended]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the files; the working folder is an empty one beside them."""
    shutil.copytree(FILES, tmp_path / "files")
    (tmp_path / "files" / "vscode" / ".env").write_text(ENV_FILE)
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name in ("HOLDFAST_CONFIG", "HOLDFAST_DEBUG", "SENTRY_TOKEN", "TOKEN", "DATA_DIR", "PERPLEXITY_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "files"


@pytest.fixture
def wrap(here: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Wrap]:
    """Runs the command in this process; whatever it says holds no secret."""

    def command(*arguments: str | Path) -> Ended:
        capsys.readouterr()
        code = run(["wrap", *map(str, arguments)])
        said = capsys.readouterr()
        assert not any(mark in said.out + said.err for mark in MARKS)
        return Ended(int(code), said.out, said.err)

    yield command
    for path in Path.cwd().rglob("*"):
        assert not path.is_file() or not any(mark.encode() in path.read_bytes() for mark in MARKS), path
