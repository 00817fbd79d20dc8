"""Is every command there, documented and honest?"""

import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from holdfast.cli.app import app, run
from holdfast.cli.exits import BY_STATUS
from holdfast.cli.later import NOT_BUILT
from holdfast.config import load, parse
from holdfast.identity import build
from holdfast.identity.keys import matches
from holdfast.model.observation import Status
from tests.cli.conftest import ROOT, Holdfast, environment
from tests.cli.reference import page
from tests.requirements import requirement

NAMED = (
    "serve stdio wrap tools call approve deny approvals audit policy chain settle halt resume cancel "
    "store keys test doctor"
)


def commands() -> dict[str, Any]:
    return typer.main.get_command(app).commands  # type: ignore[attr-defined, no-any-return]


@requirement("NAM-1")
def test_every_command_that_outsiders_rely_on_exists() -> None:
    assert set(NAMED.split()) <= set(commands())


@requirement("NAM-1")
def test_what_can_be_read_can_be_read_by_programs() -> None:
    names = ("call", "approvals", "approve", "deny", "settle", "halts", "cancel", "doctor", "wrap")
    for command in (*(commands()[name] for name in names), *commands()["tools"].commands.values()):
        assert "--json" in [option for parameter in command.params for option in parameter.opts]


@requirement("PPL-1")
@pytest.mark.parametrize("name", NOT_BUILT)
def test_a_command_that_is_not_built_says_so_and_does_nothing(
    desk: Path, holdfast: Holdfast, name: str
) -> None:
    for more in ([], ["--help"], ["run", "x", "--config", "holdfast.yaml"]):
        ended = holdfast(name, *more)
        assert ended.code == 2
        assert ended.err.startswith(f"error: 'holdfast {name}' is not built yet; ")
        assert ended.out == ""
    assert sorted(path.name for path in desk.iterdir()) == ["holdfast.yaml"]


def test_help_lists_what_is_built_and_only_that(holdfast: Holdfast) -> None:
    listed = re.findall(r"^  (\w+)  +\w", holdfast("--help").out.partition("Commands:")[2], re.MULTILINE)
    assert set(listed) == set(commands()) - set(NOT_BUILT)


@requirement("NAM-1")
def test_every_status_has_its_exit_code() -> None:
    assert {status: int(code) for status, code in BY_STATUS.items()} == {
        Status.DONE: 0, Status.PREVIEW: 0, Status.PARTIAL: 1, Status.FAILED: 1,
        Status.REFUSED: 3, Status.HELD: 4, Status.UNKNOWN: 5,
    }  # fmt: skip
    assert set(BY_STATUS) == set(Status)


@requirement("NAM-1")
def test_the_reference_is_what_the_commands_say() -> None:
    assert (ROOT / "docs" / "reference" / "cli.md").read_text() == page(commands())


def test_the_configuration_shown_in_the_reference_is_a_good_one() -> None:
    text = (ROOT / "docs" / "reference" / "config.md").read_text()
    (shown,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert set(parse(yaml.safe_load(shown), environ={}).auth.people) == {"alice", "bob"}


@requirement("REG-6")
def test_usage_tells_who_called_what_and_to_others_only_their_own(holdfast: Holdfast) -> None:
    assert "nothing was called" in holdfast("tools", "usage").out
    holdfast("call", "desk.get_ticket", "--args", '{"number": 1}')
    [use] = holdfast("tools", "usage", "--json").json["uses"]
    assert (use["tool"].split("@")[0], use["calls"], use["status"]) == ("desk.get_ticket", 1, None)
    assert "nothing was called" in holdfast("tools", "usage", "--as", "eve").out


def test_tools_are_listed_for_whoever_asks(holdfast: Holdfast) -> None:
    everything = holdfast("tools")
    assert everything.code == 0
    assert re.search(r"desk\.close_all +1\.0\.0 +MEDIUM_RISK_WRITE +Close every old ticket", everything.out)
    seen = [tool["name"] for tool in holdfast("tools", "--as", "eve", "--json").json["tools"]]
    assert seen == ["desk.get_ticket"]
    assert holdfast("tools", "desk.close_all", "--as", "eve").code == 3
    one = holdfast("tools", "desk.get_ticket")
    assert '"number"' in one.out
    assert "tickets:read" not in one.out  # the system face stays inside


@requirement("PPL-1")
def test_a_healthy_desk_is_told_so(holdfast: Holdfast) -> None:
    ended = holdfast("doctor")
    assert ended.code == 0
    for said in (
        "config",
        "store",
        "mode 600",
        "wal",
        "4 admitted",
        "starter/",
        "none has an unknown outcome",
    ):
        assert said in ended.out
    assert "wrong" not in ended.out


@requirement("PPL-1")
def test_doctor_counts_what_is_unknown_and_shows_what_is_halted(holdfast: Holdfast) -> None:
    holdfast("call", "desk.lose_ticket", "--args", '{"number": 1}', "--key", "k1")
    holdfast("halt", "desk", "--as", "ana", "--note", "smoke")
    findings = {finding["about"]: finding for finding in holdfast("doctor", "--json").json["findings"]}
    assert findings["operations"]["text"].startswith("1 have an unknown outcome; ")
    assert "smoke" in findings["halted"]["text"]


@requirement("PPL-1")
@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda desk: (desk / "holdfast.yaml").write_text("zzz: 1"), "unknown key 'zzz'"),
        (lambda desk: (desk / "holdfast.yaml").unlink(), "there is no 'holdfast.yaml'"),
        (lambda desk: (desk / "holdfast.db.keys").chmod(0o644), "chmod 600"),
        (lambda desk: (desk / "holdfast.db.keys").write_text("{}"), "damaged"),
        (lambda desk: (desk / "holdfast.db").write_text("no database" * 1000), "database"),
    ],
)
def test_doctor_ends_with_one_when_something_is_wrong(
    desk: Path, holdfast: Holdfast, spoil: Any, told: str
) -> None:
    assert holdfast("doctor").code == 0
    spoil(desk)
    ended = holdfast("doctor")
    assert ended.code == 1
    assert told in ended.out
    assert holdfast("doctor", "--json").json["ok"] is False


def test_a_key_for_the_configuration_opens_the_door(
    desk: Path, holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = holdfast("keys", "create", "--user", "ana", "--for-config")
    plain, entry = made.out.split("\n\n")
    assert "shown once" in made.err
    tree = yaml.safe_load((desk / "holdfast.yaml").read_text())
    tree["auth"] |= {"mode": "api_key", "keys": yaml.safe_load(entry)}
    (desk / "holdfast.yaml").write_text(yaml.safe_dump(tree))
    caller = build(load("holdfast.yaml").auth.model_dump()).authenticate({"authorization": f"Bearer {plain}"})
    assert caller.user == "ana"
    without = holdfast("tools")
    assert (without.code, "set HOLDFAST_API_KEY" in without.err) == (3, True)
    monkeypatch.setenv("HOLDFAST_API_KEY", plain)
    assert "desk.close_all" in holdfast("tools").out
    refused = holdfast("call", "desk.get_ticket", "--args", '{"number": 1}')
    assert (refused.code, "POLICY_VIOLATION" in refused.out) == (3, True)  # no starter policy with keys


def test_a_key_for_nobody_is_made_with_a_warning(holdfast: Holdfast) -> None:
    made = holdfast("keys", "create", "--user", "zoe", "--agent", "bot", "--for-config")
    assert made.code == 0
    assert "there is no person 'zoe'" in made.err
    assert "there is no agent 'bot'" in made.err


def test_a_secret_is_hashed_without_being_shown(process: Holdfast) -> None:
    ended = process("keys", "hash", stdin="hunter2\nhunter2\n")
    assert ended.code == 0
    assert "hunter2" not in ended.out
    assert matches(ended.out.strip(), "hunter2")


@requirement("PPL-1")
def test_an_error_shows_no_traceback_unless_asked(
    desk: Path, holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk / "holdfast.yaml").write_text("upstreams: {desk: {functions: 'tests.cli.broken:TOOLS'}}")
    ended = holdfast("tools")
    assert ended.code == 2
    assert ended.err.startswith("error: cannot import 'tests.cli.broken'")
    monkeypatch.setenv("HOLDFAST_DEBUG", "1")
    with pytest.raises(Exception, match="cannot import"):
        run(["tools"])


def test_a_reader_that_leaves_early_is_no_fault(desk: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "tools", "--json"]
    buffered = environment() | {"PYTHONUNBUFFERED": ""}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=buffered
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""


def test_files_of_the_store_are_for_their_owner_only(desk: Path, holdfast: Holdfast) -> None:
    holdfast("doctor")
    assert stat.S_IMODE((desk / "holdfast.db.keys").stat().st_mode) == 0o600


@requirement("NAM-1")
def test_help_cuts_nothing_of_what_it_says_of_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command in ((), ("chain",), ("sessions",), ("tools",)):
        assert run([*command, "--help"]) == 0
        told = capsys.readouterr().out.partition("Commands:")[2]
        assert told
        assert "..." not in told
        assert max(map(len, told.splitlines())) <= 80
