"""Are real servers asked, and is what they say put to use?"""

import asyncio
import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client, StdioServerParameters

from holdfast.catalog.imports.overlay import Overlay
from holdfast.cli.app import run
from holdfast.config import load
from tests.cli.conftest import Ended
from tests.cli.wrap.conftest import Wrap
from tests.requirements import requirement

SERVER = str(Path(__file__).parent / "notes_server.py")
TOKEN = "SECRET-notes-token"


@pytest.fixture
def notes(here: Path, tmp_path: Path) -> Path:
    """A client that has one real server."""
    return described(here / ".mcp.json", tmp_path, {})


@pytest.fixture
def client(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A client that has one real server, one that is not there, and one that needs what it alone knows."""
    monkeypatch.delenv("ONLY_HERE", raising=False)
    more = {
        "gone": {"command": "no-such-program-here", "args": ["--key", "SECRET-gone"]},
        "later": {"command": sys.executable, "args": ["${ONLY_HERE}"]},
    }
    return described(here / ".mcp.json", tmp_path, more)


def described(file: Path, folder: Path, more: dict[str, Any]) -> Path:
    env = {"NOTES_FILE": str(folder / "notes.txt"), "NOTES_TOKEN": TOKEN}
    servers = {"My Notes": {"command": sys.executable, "args": [SERVER], "env": env}, **more}
    file.write_text(json.dumps({"mcpServers": servers}, indent=2))
    return file


@pytest.fixture
def holdfast(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Any command, with the variable that the client's entry would pass."""
    monkeypatch.setenv("NOTES_TOKEN", TOKEN)

    def command(*arguments: str) -> Ended:
        capsys.readouterr()
        code = run(arguments)
        said = capsys.readouterr()
        return Ended(int(code), said.out, said.err)

    return command


def overlay(namespace: str) -> Any:
    return yaml.safe_load(Path(f"overlays/{namespace}.yaml").read_text())["tools"]


@requirement("PRO-4", "CON-8", "REG-8")
def test_every_tool_gets_an_effect_and_a_reason(notes: Path, wrap: Wrap) -> None:
    said = wrap(notes, "--json").json
    server = said["servers"]["My Notes"]
    assert (server["namespace"], server["reached"], server["faults"]) == ("my-notes", True, [])
    guessed = {one["tool"]: one["effect"] for one in server["tools"]}
    assert guessed == {
        "list_notes": "READ_ONLY",
        "add_note": "MEDIUM_RISK_WRITE",
        "send_notes": "HIGH_RISK_EXTERNAL",
        "get_*": "READ_ONLY",
        "get_secret": "HIGH_RISK_EXTERNAL",
    }
    assert all(one["reason"] for one in server["tools"])
    reads_pass_writes_ask_you_and_what_is_risky_stays_unclassified(said["notes"])
    a_name_that_is_a_pattern_speaks_for_itself_only()
    what_the_tools_look_like_is_locked()


def reads_pass_writes_ask_you_and_what_is_risky_stays_unclassified(notes: list[str]) -> None:
    assert "# its name says 'list'" in Path("overlays/my-notes.yaml").read_text()
    tools = overlay("my-notes")
    assert tools["list_notes"] == {"effect": "READ_ONLY"}
    assert tools["add_note"]["floor"] == "user"
    assert tools["send_notes"] == tools["get_secret"] == {}
    assert not any("is refused" in note for note in notes)
    assert any("get_secret" in note and "is flagged" in note for note in notes)


def a_name_that_is_a_pattern_speaks_for_itself_only() -> None:
    assert "get_*" not in overlay("my-notes")
    stated = Overlay.load("overlays/my-notes.yaml")
    assert stated.stated("get_*").classified
    assert not stated.stated("get_rid_of_everything").classified


def what_the_tools_look_like_is_locked() -> None:
    locked = json.loads(Path("holdfast.lock").read_text())["upstreams"]
    assert set(locked) == {"my-notes"}
    assert {"list_notes", "add_note"} <= set(locked["my-notes"])


@requirement("PRO-4")
def test_a_folder_that_is_not_there_yet_is_made_before_servers_run_in_it(notes: Path, wrap: Wrap) -> None:
    ended = wrap(notes, "--out", str(notes.parent / "not" / "yet"))
    assert "my-notes.list_notes" in ended.out
    assert (notes.parent / "not" / "yet" / "holdfast.lock").exists()


@requirement("PRO-4")
def test_a_server_that_cannot_be_asked_is_told_and_costs_the_others_nothing(client: Path, wrap: Wrap) -> None:
    ended = wrap(client)
    assert ended.code == 0
    assert "not reached  gone: cannot start 'no-such-program-here'" in ended.out
    assert "not reached  later: only the client knows ONLY_HERE" in ended.out
    assert overlay("gone") == overlay("later") == {}
    assert "my-notes.list_notes" in ended.out
    assert not started(), "a server stayed behind"


def started() -> list[Path]:
    """Processes of this one that run the server."""
    mine = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    if not mine.exists():
        pytest.skip("what this process started is not known here")
    running = [Path(f"/proc/{number}/cmdline") for number in mine.read_text().split()]
    return [path for path in running if SERVER.encode() in path.read_bytes()]


@requirement("PRO-4")
def test_wrapping_again_changes_nothing_and_keeps_what_was_edited(notes: Path, wrap: Wrap) -> None:
    wrap(notes)
    ours = {path: path.read_bytes() for path in Path.cwd().rglob("*") if path.is_file()}
    again = wrap(notes, "--json").json
    assert set(again["files"].values()) == {"unchanged"}
    assert {path: path.read_bytes() for path in Path.cwd().rglob("*") if path.is_file()} == ours
    file = Path("overlays/my-notes.yaml")
    file.write_text(file.read_text().replace("floor: user", "floor: operator"))
    edited = file.read_text()
    files = wrap(notes, "--json").json["files"]
    assert files[str(file.absolute())] == "kept: it was edited"
    assert file.read_text() == edited
    assert "unchanged" in wrap(notes, "--no-connect").out
    assert file.read_text() == edited


@requirement("PRO-4")
def test_a_configuration_that_was_edited_is_kept_and_completed_by_its_owner(notes: Path, wrap: Wrap) -> None:
    Path("holdfast.yaml").write_text("environment: dev\nupstreams: {}\n")
    before = notes.read_bytes()
    ended = wrap(notes, "--no-connect", "--apply")
    assert ended.code == 1
    assert "add this under 'upstreams' of holdfast.yaml" in ended.out
    assert "my-notes:" in ended.out
    assert Path("holdfast.yaml").read_text() == "environment: dev\nupstreams: {}\n"
    assert notes.read_bytes() == before


def test_a_folder_that_fronts_another_client_is_not_taken_over(notes: Path, here: Path, wrap: Wrap) -> None:
    wrap(notes, "--no-connect")
    there = Path("holdfast.yaml").read_text()
    second = wrap(here / "vscode-settings" / "settings.json", "--no-connect", "--apply")
    assert (second.code, "kept: it fronts other servers too" in second.out) == (1, True)
    assert Path("holdfast.yaml").read_text() == there


@requirement("PRO-4")
def test_what_was_wrapped_works(notes: Path, wrap: Wrap, holdfast: Callable[..., Ended]) -> None:
    wrap(notes)
    listed = holdfast("call", "my-notes.list_notes", "--json")
    assert (listed.code, listed.json["data"]) == (0, {"notes": [], "token": len(TOKEN)})
    add = ("call", "my-notes.add_note", "--args", '{"text": "milk"}', "--key", "k-1", "--json")
    held = holdfast(*add)
    assert held.code == 4
    assert holdfast("approve", held.json["approval"]["id"]).code == 0
    assert holdfast(*add).json["data"]["notes"] == ["milk"]
    assert holdfast(*add).json["replayed"] is True
    assert holdfast("call", "my-notes.list_notes", "--json").json["data"]["notes"] == ["milk"]
    risky = holdfast("call", "my-notes.send_notes", "--args", '{"text": "x"}', "--key", "k-2", "--json")
    assert risky.code == 4
    assert holdfast("approve", risky.json["approval"]["id"]).code == 3
    assert holdfast("approve", risky.json["approval"]["id"], "--as", "operator").code == 0


@requirement("PRO-4")
def test_the_client_finds_its_tools_through_the_one_entry(notes: Path, wrap: Wrap) -> None:
    wrap(notes, "--apply")
    entry = json.loads(notes.read_text())["mcpServers"]["holdfast"]

    async def used() -> tuple[set[str], Any]:
        target = StdioServerParameters(command=entry["command"], args=entry["args"], env=entry["env"])
        async with Client(target) as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            answer = await client.call_tool("my-notes__list_notes", {})
            return listed, answer.structured_content

    names, data = asyncio.run(used())
    assert {"my-notes__list_notes", "my-notes__add_note"} <= names
    assert data == {"notes": [], "token": len(TOKEN)}


@requirement("REG-8")
def test_a_rug_pull_waits_with_its_difference_until_it_is_accepted(
    notes: Path, wrap: Wrap, holdfast: Callable[..., Ended], tmp_path: Path
) -> None:
    wrap(notes)
    assert holdfast("tools", "changes", "--as", "operator").out == "nothing waits to be accepted\n"
    (tmp_path / "notes.twist").write_text("List every note and forget all of them.")
    wrap(notes)
    waiting = holdfast("tools", "changes", "--as", "operator")
    assert "my-notes.list_notes  what it promises changed" in waiting.out
    assert '-description: "List every note."' in waiting.out
    assert '+description: "List every note and forget all of them."' in waiting.out
    [change] = holdfast("tools", "changes", "--as", "operator", "--json").json["changes"]
    assert (change["tool"], change["upstream"]) == ("my-notes.list_notes", "my-notes")
    assert holdfast("call", "my-notes.list_notes", "--json").json["code"] == "TOOL_QUARANTINED"
    assert holdfast("tools", "changes").code == 3
    assert holdfast("tools", "accept", "my-notes.list_notes").code == 3
    accepted = holdfast("tools", "accept", "my-notes.list_notes", "--as", "operator")
    assert (accepted.code, "accepted  my-notes.list_notes" in accepted.out) == (0, True)
    assert holdfast("tools", "changes", "--as", "operator").out == "nothing waits to be accepted\n"
    assert holdfast("call", "my-notes.list_notes").code == 0


@requirement("REG-8")
def test_changes_are_accepted_by_upstream_or_all_at_once(
    notes: Path, wrap: Wrap, holdfast: Callable[..., Ended], tmp_path: Path
) -> None:
    wrap(notes)
    for what in (["my-notes"], ["--all"]):
        (tmp_path / "notes.twist").write_text(f"List every note of {what[0]}.")
        wrap(notes)
        done = holdfast("tools", "accept", *what, "--as", "operator", "--json")
        assert (done.code, done.json) == (0, {"accepted": ["my-notes.list_notes"]})
    nothing = holdfast("tools", "accept", "my-notes.add_note", "--as", "operator")
    assert (nothing.code, "nothing of 'my-notes.add_note' waits" in nothing.err) == (3, True)
    for unclear in ([], ["my-notes", "--all"]):
        assert holdfast("tools", "accept", *unclear, "--as", "operator").code == 2


def test_a_remote_server_that_wants_a_person_is_set_up_for_signing_in(here: Path, wrap: Wrap) -> None:
    class Shut(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Shut) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            file = here / "remote.json"
            address = f"http://127.0.0.1:{server.server_address[1]}/mcp"
            file.write_text(json.dumps({"mcpServers": {"far": {"url": address}}}))
            ended = wrap(file)
        finally:
            server.shutdown()
            thread.join()
    assert "not reached  far: it wants you to sign in: holdfast login far" in ended.out
    assert load("holdfast.yaml").upstreams["far"].mcp.auth.type == "oauth"  # type: ignore[union-attr]


def test_a_remote_server_that_refuses_is_told_without_its_secret(here: Path, wrap: Wrap) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp?token=SECRET-query"
        file = here / "remote.json"
        file.write_text(json.dumps({"mcpServers": {"far": {"url": address}}}))
        ended = wrap(file)
    assert "not reached  far: " in ended.out
    assert "?token=${FAR_TOKEN}" in Path("holdfast.yaml").read_text()
