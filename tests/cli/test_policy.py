"""Can policies be looked at, put in force and taken back from the command line?"""

from pathlib import Path

import pytest

from tests.cli.conftest import Holdfast
from tests.requirements import requirement

OPEN = '@id("open") @reason("all may do all") permit (principal, action, resource);\n'
CLOSE = '{"older_than_days": 3}'
READS = '@id("reads") permit (principal, action, resource) when { resource.effect == "READ_ONLY" };\n'


@pytest.fixture
def rules(desk: Path) -> Path:
    folder = desk / "rules"
    folder.mkdir()
    (folder / "desk.cedar").write_text(OPEN)
    return folder


def configure(desk: Path) -> None:
    with (desk / "holdfast.yaml").open("a") as file:
        file.write("policies: rules\n")


@requirement("NAM-1", "POL-1")
def test_a_good_folder_is_shown_with_its_policies(rules: Path, holdfast: Holdfast) -> None:
    ended = holdfast("policy", "check", "rules")
    assert ended.code == 0
    assert "desk.cedar:1:1" in ended.out
    assert "good  rules/" in ended.out
    told = holdfast("policy", "check", "rules", "--json").json
    assert (told["ok"], told["problems"]) == (True, [])
    assert told["policies"] == [
        {"id": "open", "effect": "permit", "approval": None, "place": "desk.cedar:1:1"}
    ]


@requirement("NAM-1", "POL-1")
def test_what_each_policy_changes_and_what_never_decides_anything_is_shown(
    rules: Path, holdfast: Holdfast
) -> None:
    (rules / "more.cedar").write_text(READS)
    ended = holdfast("policy", "check", "rules")
    assert ended.code == 0
    assert "refused \u2192 asks" in ended.out
    warned = "warning: more.cedar:1:1: 'reads' changes nothing: permit 'open' holds whenever it does"
    assert warned in ended.out
    assert "2 policies, 1 warning" in ended.out
    assert holdfast("policy", "check", "rules", "--strict").code == 1
    told = holdfast("policy", "check", "rules", "--json").json
    [finding] = told["findings"]
    assert (finding["kind"], finding["policy"], finding["with"], finding["line"]) == (
        "redundant",
        "reads",
        "open",
        1,
    )
    assert {one["policy"] for one in told["changes"]} == {"open"}


@requirement("REG-8", "POL-1")
def test_pins_are_printed_to_be_pasted_and_then_hold(rules: Path, holdfast: Holdfast) -> None:
    policy = '@id("close") permit (principal, action == Action::"desk.close_ticket", resource);\n'
    (rules / "desk.cedar").write_text(policy)
    _, pin = holdfast("policy", "check", "rules", "--pin").out.splitlines()
    assert pin.startswith('@contract("desk/desk.close_ticket sha256:')
    (rules / "desk.cedar").write_text(f"{pin}\n{policy}")
    ended = holdfast("policy", "check", "rules", "--strict")
    assert ended.code == 0
    assert "bound to them already" in holdfast("policy", "check", "rules", "--pin").out
    (rules / "desk.cedar").write_text(f'{pin.replace("sha256:", "sha256:" + "ab")[:-4]}")\n{policy}')
    said = holdfast("policy", "check", "rules").out
    assert "warning: desk.cedar:1:2: 'close' does not hold: no contract of 'desk.close_ticket' is" in said


@requirement("NAM-1", "POL-1")
def test_a_bad_folder_ends_with_one_and_every_place(rules: Path, holdfast: Holdfast) -> None:
    (rules / "more.cedar").write_text(
        '@id("a") permit (principal, action, resource) when { resource.x == 1 };'
    )
    ended = holdfast("policy", "check", "rules")
    assert ended.code == 1
    assert "error: more.cedar:1:63: attribute `x` on entity type `Tool` not found" in ended.err
    [problem] = holdfast("policy", "check", "rules", "--json").json["problems"]
    assert (problem["file"], problem["line"], problem["column"]) == ("more.cedar", 1, 63)
    refused = holdfast("policy", "promote", "rules", "--as", "ana")
    assert refused.code == 2
    assert "cannot be put in force" in refused.err
    assert holdfast("policy", "list").out == "nothing was ever promoted\n"


@requirement("NAM-1", "POL-1")
def test_policies_are_promoted_listed_shown_and_rolled_back(
    desk: Path, rules: Path, holdfast: Holdfast
) -> None:
    configure(desk)
    assert holdfast("call", "desk.get_ticket", "--args", '{"number": 1}').code == 0
    (rules / "desk.cedar").write_text(READS)
    doctor = holdfast("doctor")
    assert (doctor.code, "has changes that are not in force" in doctor.out) == (0, True)
    promoted = holdfast("policy", "promote", "--note", "less", "--as", "ana")
    assert promoted.code == 0
    assert "policy rollback --as ana" in promoted.out
    assert "already in force" in holdfast("policy", "promote", "--as", "ana").out
    states = [(p["by"], p["in_force"]) for p in holdfast("policy", "list", "--json").json["promotions"]]
    assert states == [("ana", True), ("holdfast", False)]
    assert '@id("reads")' in holdfast("policy", "show").out
    refused = holdfast("call", "desk.close_all", "--args", CLOSE, "--key", "k")
    assert (refused.code, "no policy permits it" in refused.out) == (3, True)
    assert "in force again" in holdfast("policy", "rollback", "--as", "ana").out
    assert holdfast("policy", "rollback", "--as", "ana").code == 1
    assert "rolled back" in holdfast("policy", "list").out


@requirement("NAM-1")
def test_only_an_operator_puts_policies_in_force(rules: Path, holdfast: Holdfast) -> None:
    assert holdfast("policy", "promote", "rules", "--as", "eve").code == 3
    assert holdfast("policy", "check", "nowhere").code == 2
    assert holdfast("policy", "check").code == 2  # none is configured
    assert holdfast("policy", "show").code == 3
    assert holdfast("policy", "diff").code == 2


@requirement("POL-7")
def test_why_names_what_is_missing(desk: Path, rules: Path, holdfast: Holdfast) -> None:
    hidden = holdfast("why", "desk.close_all", "--as", "eve")
    assert hidden.code == 3
    assert "grant 'eve'" in hidden.out
    (rules / "desk.cedar").write_text(READS)
    configure(desk)
    denied = holdfast("why", "desk.close_all", "--args", CLOSE)
    assert denied.code == 3
    assert "closest     permit 'reads' at desk.cedar:1:1" in denied.out
    assert 'not so    resource.effect == "READ_ONLY"' in denied.out
    assert "recorded as pd_" in denied.out
    allowed = holdfast("why", "desk.get_ticket", "--args", '{"number": 1}', "--json")
    assert (allowed.code, allowed.json["allowed"]) == (0, True)
