"""Is a client's file changed with care, and is that taken back byte for byte?"""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.cli.wrap.applied import Trail
from holdfast.cli.wrap.clients import setups
from holdfast.cli.wrap.jsonc import parse
from holdfast.cli.wrap.paste import edited, entry
from holdfast.cli.wrap.upstreams import plan
from tests.cli.wrap.conftest import KINDS, Wrap
from tests.requirements import requirement


def trail(file: Path) -> Trail:
    return Trail(file)


@requirement("PRO-4")
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_applied_is_taken_back_byte_for_byte(here: Path, wrap: Wrap, kind: str) -> None:
    file = here / KINDS[kind]
    before, beside = file.read_bytes(), sorted(file.parent.iterdir())
    file.chmod(0o640)
    assert wrap(file, "--no-connect", "--apply").code == 0
    assert file.read_bytes() != before
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert stat.S_IMODE(trail(file).backup.stat().st_mode) == 0o600
    assert wrap(file, "--undo").code == 0
    assert file.read_bytes() == before
    assert sorted(file.parent.iterdir()) == beside
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@requirement("PRO-4")
@pytest.mark.parametrize("kind", KINDS)
def test_applying_again_changes_nothing(here: Path, wrap: Wrap, kind: str) -> None:
    file = here / KINDS[kind]
    wrap(file, "--no-connect", "--apply")
    beside = {path: path.read_bytes() for path in file.parent.iterdir() if path.is_file()}
    ours = {path: path.read_bytes() for path in Path.cwd().rglob("*") if path.is_file()}
    again = wrap(file, "--no-connect", "--apply")
    assert (again.code, "already applied" in again.out) == (0, True)
    assert {path: path.read_bytes() for path in file.parent.iterdir() if path.is_file()} == beside
    assert {path: path.read_bytes() for path in Path.cwd().rglob("*") if path.is_file()} == ours


@requirement("PRO-4")
def test_the_file_then_names_one_server_and_what_was_disabled(here: Path, wrap: Wrap) -> None:
    file = here / KINDS["Claude Desktop"]
    before = json.loads(file.read_text())
    wrap(file, "--no-connect", "--apply")
    after = json.loads(file.read_text())
    assert list(after) == list(before)
    assert after["preferences"] == before["preferences"]
    assert list(after["mcpServers"]) == ["holdfast", "old"]
    assert after["mcpServers"]["old"] == before["mcpServers"]["old"]
    ours = after["mcpServers"]["holdfast"]
    assert Path(ours["command"]).is_absolute()
    config = str(Path.cwd() / "holdfast.yaml")
    assert ours["args"][-5:] == ["stdio", "--config", config, "--agent", "claude-desktop"]
    assert ours["env"] == {
        "GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_SECRET0123456789abcdefABCDEF012345",
        "POSTGRES_URL": "postgresql://app:SECRETpw@db.internal/app",
        "SLACK_BOT_TOKEN": "xoxb-SECRET-12345678",
    }


def test_comments_and_indentation_around_the_servers_stay(here: Path, wrap: Wrap) -> None:
    file = here / KINDS["VS Code"]
    head, _, rest = file.read_text().partition('    "servers": {')
    tail = rest[rest.index("    // nothing of this is ours") :]
    wrap(file, "--no-connect", "--apply")
    after = file.read_text()
    assert after.startswith(head + '    "servers": {\n        "holdfast": {\n            "type": "stdio",\n')
    assert after.endswith(f"\n        }}\n    }},\n{tail}")
    assert parse(after).value["inputs"][0]["id"] == "perplexity-key"


def test_tabs_and_line_ends_are_the_files_own(here: Path, wrap: Wrap) -> None:
    file = here / KINDS["Claude Code, project"]
    wrap(file, "--no-connect", "--apply")
    after = file.read_bytes().decode()
    assert '\r\n\t"mcpServers": {\r\n\t\t"holdfast": {\r\n\t\t\t"type": "stdio",\r\n' in after
    assert "\n" not in after.replace("\r\n", "")
    assert parse(after).value["mcpServers"]["holdfast"]["env"]["TOKEN"] == "${TOKEN:-SECRETdefault}"


def test_a_file_on_one_line_stays_on_one_line(here: Path, wrap: Wrap) -> None:
    file = here / KINDS["Cursor"]
    wrap(file, "--no-connect", "--apply")
    assert file.read_text().count("\n") == 1


def test_over_http_the_entry_is_an_address_and_values_are_to_be_set(here: Path, wrap: Wrap) -> None:
    file = here / KINDS["Windsurf"]
    ended = wrap(file, "--no-connect", "--apply", "--serve", "http")
    entry = json.loads(file.read_text())["mcpServers"]["holdfast"]
    named = {"X-Holdfast-Agent": "windsurf"}
    assert entry == {"serverUrl": "http://127.0.0.1:8080/mcp", "headers": named}
    assert "variables to set before 'holdfast serve'" in ended.out
    assert "TALK_TOKEN" in ended.out
    code = here / KINDS["Claude Code, project"]
    said = wrap(code, "--no-connect", "--serve", "http", "--json", "--out", "code").json
    assert said["paste"]["mcpServers"]["holdfast"] == {
        "type": "http",
        "url": "http://127.0.0.1:8080/mcp",
        "headers": {"X-Holdfast-Agent": "claude-code"},
    }


def test_claude_desktop_is_not_given_an_address_it_cannot_use(here: Path, wrap: Wrap) -> None:
    ended = wrap(here / KINDS["Claude Desktop"], "--no-connect", "--serve", "http")
    assert (ended.code, "use --serve stdio" in ended.err) == (2, True)


# --- what others did in between ----------------------------------------------------------------------------


def test_other_settings_that_changed_since_stay(here: Path, wrap: Wrap) -> None:
    file = here / KINDS["Claude Code, user"]
    before = file.read_text()
    wrap(file, "--no-connect", "--apply")
    file.write_text(file.read_text().replace('"numStartups": 12', '"numStartups": 13'))
    assert "already applied" in wrap(file, "--no-connect", "--apply").out
    undone = wrap(file, "--undo")
    assert (undone.code, "other settings changed since and stay" in undone.out) == (0, True)
    assert file.read_text() == before.replace('"numStartups": 12', '"numStartups": 13')


def test_undo_refuses_to_lose_a_change_to_the_servers(here: Path, wrap: Wrap) -> None:
    file = here / KINDS["Claude Desktop"]
    wrap(file, "--no-connect", "--apply")
    backup = trail(file).backup.read_bytes()
    changed = file.read_text().replace('"holdfast": {', '"new": {"command": "x"},\n    "holdfast": {')
    file.write_text(changed)
    refused = wrap(file, "--undo")
    assert (refused.code, "put the servers back by hand" in refused.err) == (1, True)
    assert (file.read_text(), trail(file).backup.read_bytes()) == (changed, backup)
    again = wrap(file, "--no-connect", "--apply", "--out", "again")
    assert (again.code, "take what was added out" in again.err) == (2, True)
    assert file.read_text() == changed


def test_a_backup_is_never_overwritten(here: Path, wrap: Wrap) -> None:
    file = here / KINDS["Claude Desktop"]
    trail(file).backup.write_text("somebody's own")
    refused = wrap(file, "--no-connect", "--apply")
    assert (refused.code, "from an earlier --apply" in refused.err) == (1, True)
    assert trail(file).backup.read_text() == "somebody's own"


def test_undo_after_a_crash_between_backup_and_change(here: Path, wrap: Wrap) -> None:
    file = here / KINDS["Claude Desktop"]
    before = file.read_bytes()
    trail(file).backup.write_bytes(before)
    assert wrap(file, "--undo").code == 0
    assert file.read_bytes() == before
    assert wrap(file, "--undo").code == 2  # nothing was applied


def test_a_link_stays_a_link(here: Path, wrap: Wrap) -> None:
    real = here / KINDS["Claude Desktop"]
    link = here / "claude_desktop_config.json"
    link.symlink_to(os.path.relpath(real, here))
    before = real.read_bytes()
    wrap(link, "--no-connect", "--apply")
    assert link.is_symlink()
    assert real.read_bytes() != before
    wrap(link, "--undo")
    assert (link.is_symlink(), real.read_bytes()) == (True, before)


def test_a_file_that_is_holdfast_already_needs_nothing(here: Path, wrap: Wrap) -> None:
    file = here / "claude_desktop_config.json"
    file.write_text('{"mcpServers": {"gate": {"command": "/opt/holdfast", "args": ["stdio"]}}}')
    ended = wrap(file, "--apply")
    assert (ended.code, "'gate' is Holdfast already" in ended.out) == (0, True)


def test_a_folder_that_cannot_be_written_is_told_as_such(here: Path, wrap: Wrap) -> None:
    (here / "taken").write_text("a file")
    ended = wrap(here / KINDS["Zed"], "--no-connect", "--out", here / "taken")
    assert (ended.code, "cannot read or write" in ended.err) == (1, True)


# --- whatever the file looks like --------------------------------------------------------------------------

WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
SPACE = st.sampled_from(["", " ", "\n", "\r\n\t", '  // note, with "quotes" {\n', "/* , } */", "\n    "])
ENTRY = st.fixed_dictionaries(
    {"command": st.text(min_size=1, max_size=8, alphabet="abc/\\$ ")},
    optional={
        "args": st.lists(WORD, max_size=3),
        "env": st.dictionaries(st.sampled_from(["A_KEY", "TOKEN", "B", "PATH", "x y"]), WORD, max_size=3),
        "disabled": st.booleans(),
    },
) | st.fixed_dictionaries(
    {"url": st.sampled_from(["https://a.example/mcp?key=1", "http://u:p@b/", "http://c"])}
)
SERVERS = st.dictionaries(WORD, ENTRY, min_size=1, max_size=4)


@st.composite
def jsonc(draw: st.DrawFn, value: Any) -> str:
    """The value as somebody may have written it."""

    def gap() -> str:
        return draw(SPACE)

    def more() -> bool:
        return draw(st.booleans())

    def written(node: Any) -> str:
        match node:
            case dict():
                inside = [f"{gap()}{json.dumps(k)}{gap()}:{written(v)}" for k, v in node.items()]
            case list():
                inside = [written(v) for v in node]
            case _:
                return json.dumps(node, ensure_ascii=more())
        inside = [f"{gap()}{one}{gap()}" for one in inside]
        comma = "," if inside and more() else ""
        brackets = "{}" if isinstance(node, dict) else "[]"
        return f"{brackets[0]}{','.join(inside)}{comma}{gap()}{brackets[1]}"

    mark = "\ufeff" if more() else ""
    return f"{mark}{gap()}{written(value)}{gap()}"


@requirement("PRO-4")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), servers=SERVERS, place=st.sampled_from(["mcpServers", "servers", "context_servers"]))
def test_apply_and_undo_are_the_identity_on_bytes(
    tmp_path: Path, data: st.DataObject, servers: dict[str, Any], place: str
) -> None:
    whole: dict[str, Any] = {"before": [1, {"x": None}], place: servers, "after": "}, {"}
    text = data.draw(jsonc(whole))
    assert parse(text).value == whole
    file = tmp_path / "client.json"
    file.write_bytes(text.encode())
    [setup] = setups(file, parse(text))
    planned = plan(setup, tmp_path, {})
    made = entry(planned, tmp_path / "holdfast.yaml", "stdio")
    after = edited(text, planned, "holdfast", made)
    kept = {name: said for name, said in servers.items() if name in planned.left}
    assert parse(after).value == {**whole, place: {"holdfast": made, **kept}}
    Trail(file).apply(text.encode(), after.encode(), setup.path)
    assert Trail(file).applied()
    Trail(file).undo()
    assert file.read_bytes() == text.encode()
    assert [path.name for path in tmp_path.iterdir()] == ["client.json"]
