"""A twin of an MCP server: the same program in another environment, where nothing counts."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import orjson
import pytest
import yaml

from holdfast.cli.app import run
from tests.docs.pages import ROOT
from tests.requirements import requirement

CHAIN = """
chain: close
saga: true
steps:
  - id: close
    tool: desk.close_ticket
    with: {ticket_id: t-17}
    prove: {read: {tool: desk.get_ticket, with: {ticket_id: t-17}}}
"""


def states(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as db:
        return dict(db.execute("SELECT ticket_id, state FROM tickets").fetchall())


@requirement("SAG-4")
def test_what_a_server_does_and_undoes_is_shown_without_touching_the_real_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("desk.py", "desk.yaml"):
        shutil.copy(ROOT / "examples" / "demo" / name, tmp_path / name)
    (tmp_path / "close.yaml").write_text(CHAIN)
    real, scratch = tmp_path / "real.db", tmp_path / "scratch.db"
    desk = {
        "mcp": {"command": "python", "args": ["desk.py"], "env": {"DESK_DB": str(real)}},
        "contracts": "desk.yaml",
        "twin": {"env": {"DESK_DB": str(scratch)}},
    }
    people = {"ola": {"roles": ["operator"], "scopes": ["**"]}}
    config = {"upstreams": {"desk": desk}, "auth": {"people": people}}
    (tmp_path / "holdfast.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.chdir(tmp_path)
    run(["call", "desk.list_tickets", "--as", "ola"])
    before, lock = states(real), (tmp_path / "holdfast.lock").read_bytes()
    capsys.readouterr()
    run(["chain", "prove", "close.yaml", "--as", "ola", "--json"])
    said = capsys.readouterr()
    told = orjson.loads(said.out)
    assert [one["found"] for one in told["steps"]] == ["shown"], told
    assert states(real) == before
    assert "closed" in states(scratch).values()
    assert (tmp_path / "holdfast.lock").read_bytes() == lock
