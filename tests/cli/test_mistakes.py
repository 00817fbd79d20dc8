"""Is a slip at the terminal answered with what to do next, and never by something that broke inside?"""

from pathlib import Path

import pytest

from tests.cli.conftest import CONFIG, Holdfast
from tests.requirements import requirement

KEYED = CONFIG.replace("auth:\n", "auth:\n  mode: api_key\n")
POLICY = '@id("all") permit (principal, action, resource);\n'


def add(desk: Path, lines: str) -> None:
    with (desk / "holdfast.yaml").open("a") as file:
        file.write(lines)


@requirement("NAM-1")
@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("tool: desk.close_ticket\nprincipals: 5\n", "member 'principals' must be a string"),
        ("tool: desk.close_ticket\nprincipals: ana/*\nmots: 3\n", "did you mean 'most'"),
        ("tool: desk.close_ticket\n", "member 'principals' is required"),
        ("[1, 2", "is no YAML or JSON"),
    ],
)
def test_a_rule_that_cannot_be_read_is_a_usage_error(
    desk: Path, holdfast: Holdfast, rule: str, said: str
) -> None:
    (desk / "rule.yaml").write_text(rule)
    ended = holdfast("rules", "add", "rule.yaml", "--as", "ana")
    assert (ended.code, said in ended.err) == (2, True), ended


@requirement("NAM-1")
def test_looking_back_further_than_there_is_anything_looks_at_everything(
    desk: Path, holdfast: Holdfast
) -> None:
    (desk / "rules").mkdir()
    (desk / "rules" / "all.cedar").write_text(POLICY)
    for command in (("policy", "diff", "rules"), ("rules", "propose")):
        ended = holdfast(*command, "--since", "99999999999d", "--as", "ana")
        assert ended.code == 0, ended


@requirement("NAM-1", "AUT-1")
def test_who_holds_no_key_is_told_how_the_first_is_made(desk: Path, holdfast: Holdfast) -> None:
    (desk / "holdfast.yaml").write_text(KEYED)
    advice = "holdfast keys create --user NAME"
    assert advice in holdfast("keys", "list").err
    [found] = [one for one in holdfast("doctor", "--json").json["findings"] if one["about"] == "keys"]
    assert (found["state"], advice in found["text"]) == ("warning", True)
    too_long = holdfast("keys", "create", "--user", "ana", "--expires", "99999999999d")
    assert (too_long.code, "a hundred years" in too_long.err) == (2, True)
    assert holdfast("keys", "create", "--user", "ana").code == 0
    assert advice not in holdfast("keys", "list").err


@requirement("NAM-1", "AUT-1")
def test_an_entry_for_the_configuration_can_be_had_as_json(holdfast: Holdfast) -> None:
    made = holdfast("keys", "create", "--user", "eve", "--for-config", "--json").json
    assert made["key"].startswith(f"hf_{made['entry']['id']}_")
    assert made["entry"]["user"] == "eve"


@requirement("NAM-1", "POL-1")
def test_policies_in_force_can_be_had_as_json(desk: Path, holdfast: Holdfast) -> None:
    (desk / "rules").mkdir()
    (desk / "rules" / "all.cedar").write_text(POLICY)
    assert holdfast("policy", "promote", "rules", "--as", "ana").code == 0
    assert holdfast("policy", "show", "--json").json["files"] == {"all.cedar": POLICY}


@requirement("AUT-3")
def test_doctor_says_which_secret_cannot_be_had_and_shows_none(desk: Path, holdfast: Holdfast) -> None:
    add(desk, "secrets:\n  here: {file: here.key}\n  gone: {file: gone.key}\n")
    (desk / "here.key").write_text("k3y-0f-th3-crm")
    ended = holdfast("doctor")
    assert ended.code == 1
    assert "'gone' cannot be used: the file 'gone.key' cannot be read" in ended.out
    assert "1 of 2 can be read" in ended.out
    assert "k3y" not in ended.out


@requirement("POL-8")
def test_a_diff_that_looks_back_too_little_for_a_promotion_is_not_accepted(
    desk: Path, holdfast: Holdfast
) -> None:
    add(desk, "policy_review: {required: true, days: 7}\n")
    (desk / "rules").mkdir()
    (desk / "rules" / "all.cedar").write_text(POLICY)
    ended = holdfast("policy", "diff", "rules", "--since", "1d", "--accept", "--as", "ana")
    assert (ended.code, "over 7 days" in ended.err) == (1, True)
