"""Does `holdfast call` do what it says, and end with the right number?"""

from pathlib import Path

import pytest

from tests.cli.conftest import Holdfast
from tests.cli.desk_tools import effects
from tests.requirements import requirement


@requirement("NAM-1")
def test_a_read_is_done(holdfast: Holdfast) -> None:
    ended = holdfast("call", "desk.get_ticket", "--args", '{"number": 1}')
    assert ended.code == 0
    assert ended.out.startswith("done  desk.get_ticket@1.0.0")
    assert '"number": 1' in ended.out
    assert ended.err == ""


@requirement("NAM-1")
def test_json_is_the_observation_and_nothing_else(holdfast: Holdfast) -> None:
    ended = holdfast("call", "desk.get_ticket", "--args", '{"number": 1}', "--json")
    assert ended.json["status"] == "done"
    assert ended.json["data"]["number"] == 1
    assert ended.json["tool"] == "desk.get_ticket"


@requirement("NAM-1")
def test_the_same_key_does_not_act_twice(holdfast: Holdfast) -> None:
    for replayed in (False, True):
        ended = holdfast("call", "desk.close_ticket", "--args", '{"number": 1}', "--key", "k1", "--json")
        assert (ended.code, ended.json["replayed"]) == (0, replayed)
    assert "replayed" in holdfast("call", "desk.close_ticket", "--args", '{"number": 1}', "--key", "k1").out
    assert effects() == ["close 1"]


@requirement("NAM-1")
def test_task_and_step_name_the_operation_where_no_key_is_given(holdfast: Holdfast) -> None:
    close = ("call", "desk.close_ticket", "--args", '{"number": 1}', "--task", "tidy", "--json")
    first, again, other = (holdfast(*close, "--step", step).json for step in ("1", "1", "2"))
    assert (first["key_source"], first["replayed"]) == ("derived", False)
    assert (again["key"], again["replayed"]) == (first["key"], True)
    assert (other["key"] == first["key"], other["replayed"]) == (False, False)
    assert effects() == ["close 1", "close 1"]


@requirement("NAM-1")
def test_a_preview_does_nothing(holdfast: Holdfast) -> None:
    ended = holdfast("call", "desk.close_all", "--args", '{"older_than_days": 9}', "--preview", "--json")
    assert (ended.code, ended.json["status"]) == (0, "preview")
    assert effects() == []


@requirement("NAM-1", "PPL-1")
@pytest.mark.parametrize(
    ("arguments", "code", "next_"),
    [
        (["desk.nothing"], "TOOL_NOT_FOUND", "next: search tools"),
        (["elsewhere.get_ticket"], "TOOL_NOT_FOUND", "next: search tools"),
        (
            ["desk.close_ticket", "--args", '{"number": 1}', "--as", "eve"],
            "TOOL_NOT_FOUND",
            "next: search tools",
        ),
        (["desk.get_ticket", "--args", '{"number": "1"}'], "TYPE_MISMATCH", "/number"),
        (["desk.get_ticket", "--args", "{}"], "STRUCTURAL_VIOLATION", "next: repair arguments"),
        (["desk.get_ticket", "--args", '{"number": 1, "number": 2}'], "SYNTACTIC_PARSE_FAIL", "next: repair"),
        (["desk.close_ticket", "--args", '{"number": 1}'], "KEY_REQUIRED", "next: add key"),
        (
            ["desk.get_ticket", "--args", '{"number": 1}', "--version", "^9.0.0"],
            "VERSION_INCOMPATIBLE",
            "next: choose",
        ),
    ],
)
def test_a_refusal_ends_with_three_and_says_what_to_do(
    holdfast: Holdfast, arguments: list[str], code: str, next_: str
) -> None:
    ended = holdfast("call", *arguments)
    assert ended.code == 3
    assert ended.out.startswith("refused")
    assert code in ended.out
    assert next_ in ended.out
    assert effects() == []


@requirement("NAM-1")
def test_a_tool_that_fails_without_effect_ends_with_one(holdfast: Holdfast) -> None:
    ended = holdfast("call", "desk.get_ticket", "--args", '{"number": 101}')
    assert ended.code == 1
    assert ended.out.startswith("failed")
    assert "there is no ticket 101" in ended.out


@requirement("NAM-1", "PPL-6")
def test_a_held_call_ends_with_four_and_prints_the_commands_to_approve_it(holdfast: Holdfast) -> None:
    ended = holdfast("call", "desk.close_all", "--args", '{"older_than_days": 9}', "--key", "k1")
    assert ended.code == 4
    (id,) = [approval["id"] for approval in holdfast("approvals", "--json").json["approvals"]]
    assert f"approve {id} --as ana\n" in ended.out
    assert f"approve {id} --as ben\n" in ended.out
    assert "then call again with --key k1" in ended.out


@requirement("NAM-1", "PPL-4")
def test_a_lost_outcome_ends_with_five_and_prints_the_command_to_settle_it(holdfast: Holdfast) -> None:
    ended = holdfast("call", "desk.lose_ticket", "--args", '{"number": 1}', "--key", "k1")
    assert ended.code == 5
    assert ended.out.startswith("unknown")
    assert "settle call_" in ended.out
    assert "ConnectionError" not in ended.out
    assert effects() == ["lose 1"]


@requirement("NAM-1")
def test_arguments_come_from_a_file_or_from_standard_input(desk: Path, process: Holdfast) -> None:
    (desk / "args.json").write_text('{"number": 5}')
    assert process("call", "desk.get_ticket", "--args", "@args.json", "--json").json["data"]["number"] == 5
    piped = process("call", "desk.get_ticket", "--args", "-", "--json", stdin='{"number": 6}')
    assert piped.json["data"]["number"] == 6


@requirement("NAM-1", "PPL-1")
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{number: 1}", "this is not JSON"),
        ("[1]", "arguments are a JSON object"),
        ("@absent.json", "cannot read 'absent.json': No such file"),
        ("@.", "cannot read '.'"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_arguments_that_are_no_json_object_are_a_usage_error(
    holdfast: Holdfast, given: str, told: str
) -> None:
    ended = holdfast("call", "desk.get_ticket", "--args", given)
    assert ended.code == 2
    assert told in " ".join(ended.err.split())
    assert "Traceback" not in ended.err


@requirement("NAM-1")
@pytest.mark.parametrize(
    "arguments",
    [
        ["call"],
        ["call", "a.b", "--nope"],
        ["nope"],
        ["call", "a.b", "--deadline-ms", "0"],
        ["settle", "c", "maybe", "--note", "x"],
    ],
)
def test_wrong_usage_ends_with_two(holdfast: Holdfast, arguments: list[str]) -> None:
    ended = holdfast(*arguments)
    assert ended.code == 2
    assert "Usage: holdfast" in ended.err


def test_what_a_tool_returns_cannot_move_the_cursor(holdfast: Holdfast) -> None:
    ended = holdfast("call", "desk.get_ticket", "--args", '{"number": 1}')
    assert "\x1b" not in ended.out
    assert "\\u001b[31mred" in ended.out


def test_no_name_or_message_can_move_the_cursor(holdfast: Holdfast) -> None:
    for odd in ("desk.\x1b[2J", "desk.\u202egnp", "desk.\x07"):
        ended = holdfast("call", odd)
        assert ended.code == 3
        assert not set("\x1b\u202e\x07") & set(ended.out + ended.err)


@requirement("PPL-1")
@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("upstreams: [", "holdfast.yaml is not valid YAML"),
        ("upstreams: {desk: {mpc: {}}}", "unknown key 'mpc'; did you mean 'mcp'?"),
        ("auth: {issuer: here}", "write 'https://host/path'"),
        ("policies: here", "there is no folder"),
        ("store: sqlite:///${NOT_THERE}.db", "environment variable 'NOT_THERE' is not set"),
        ("upstreams: {desk: {functions: 'nowhere:TOOLS'}}", "cannot import 'nowhere'"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_told_and_ends_with_two(
    desk: Path, holdfast: Holdfast, config: str, told: str
) -> None:
    (desk / "holdfast.yaml").write_text(config)
    ended = holdfast("call", "desk.get_ticket")
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert told in ended.err
    assert "Traceback" not in ended.err


@requirement("NAM-1")
def test_the_configuration_is_found_by_option_and_by_variable(
    desk: Path, holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk / "holdfast.yaml").rename(desk / "other.yaml")
    missing = holdfast("tools")
    assert (missing.code, "there is no 'holdfast.yaml'" in missing.err) == (2, True)
    assert holdfast("tools", "--config", "other.yaml").code == 0
    monkeypatch.setenv("HOLDFAST_CONFIG", "other.yaml")
    assert holdfast("tools").code == 0


def test_nobody_can_be_somebody_who_is_not_configured(holdfast: Holdfast) -> None:
    ended = holdfast("call", "desk.get_ticket", "--args", '{"number": 1}', "--as", "mallory")
    assert ended.code == 3
    assert ended.err.startswith("error: there is no person 'mallory' here")
