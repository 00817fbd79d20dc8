"""Can policies be tried on past calls from the command line, and sessions be let go of what they saw?"""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Holdfast
from tests.requirements import requirement

OPEN = '@id("open") @reason("all may do all") permit (principal, action, resource);\n'
READS = '@id("reads") permit (principal, action, resource) when { resource.effect == "READ_ONLY" };\n'
TOOLS = '''
from holdfast import Effect, tool
from holdfast.model.vocabulary import DataClass


@tool(effect=Effect.READ_ONLY, data_class=DataClass.SECRET)
def passwords(of: str) -> dict[str, str]:
    """Read passwords.

    Args:
        of: whose
    """
    return {}


TOOLS = [passwords]
'''


@pytest.fixture
def rules(desk: Path) -> Path:
    folder = desk / "rules"
    folder.mkdir()
    (folder / "desk.cedar").write_text(OPEN)
    with (desk / "holdfast.yaml").open("a") as file:
        file.write("policies: rules\n")
    return folder


def close(holdfast: Holdfast, key: str) -> str:
    done = holdfast(
        "call", "desk.close_ticket", "--args", '{"number": 1}', "--key", key, "--as", "ana", "--json"
    )
    assert done.code == 0, done
    return str(done.json["call_id"])


@requirement("NAM-1", "POL-8")
def test_a_diff_prints_every_call_that_would_flip_with_the_policy_and_its_place(
    rules: Path, holdfast: Holdfast
) -> None:
    first, second = close(holdfast, "k-1"), close(holdfast, "k-2")
    assert holdfast("call", "desk.get_ticket", "--args", '{"number": 1}', "--as", "ana").code == 0
    (rules / "desk.cedar").write_text(OPEN + '@id("no") @reason("not now")\n' + _forbid("desk.close_ticket"))
    told = holdfast("policy", "diff", "--as", "ana")
    assert told.code == 0, told
    assert "2 of 3 decisions flip" in told.out
    assert "allow->deny" in told.out
    assert first in told.out
    assert second in told.out
    assert "by no (desk.cedar:2:1): not now" in told.out
    one = holdfast("policy", "diff", "--as", "ana", "--examples", "1", "--json").json
    assert (one["flips"], one["groups"][0]["count"], len(one["groups"][0]["examples"])) == (2, 2, 1)
    assert one["groups"][0]["examples"][0]["after"]["places"] == ["desk.cedar:2:1"]
    none = holdfast("policy", "diff", "--as", "ana", "--tool", "desk.get*", "--since", "1h", "--json").json
    assert (none["decisions"], none["flips"]) == (1, 0)
    assert holdfast("policy", "diff", "--as", "ana", "--since", "soon").code == 2
    assert holdfast("policy", "diff", "--as", "eve").code != 0


@requirement("NAM-1", "POL-8")
def test_a_version_that_was_promoted_can_be_tried_again(rules: Path, holdfast: Holdfast) -> None:
    close(holdfast, "k-1")
    (rules / "desk.cedar").write_text(READS)
    assert holdfast("policy", "promote", "--as", "ana").code == 0
    [first] = [
        p["version"] for p in holdfast("policy", "list", "--json").json["promotions"] if not p["in_force"]
    ]
    back = holdfast("policy", "diff", first, "--against", "active", "--as", "ana", "--json").json
    assert [(g["tool"], g["change"]) for g in back["groups"]] == [("desk.close_ticket", "deny->allow")]
    assert holdfast("policy", "diff", "rules/0123456789ab", "--as", "ana").code != 0
    assert holdfast("policy", "diff", "--against", "nobody", "--as", "ana").code == 2


@requirement("NAM-1", "POL-8")
def test_where_a_review_is_required_promote_refuses_until_the_diff_was_accepted(
    desk: Path, rules: Path, holdfast: Holdfast
) -> None:
    with (desk / "holdfast.yaml").open("a") as file:
        file.write("policy_review: {required: true, days: 2}\n")
    close(holdfast, "k-1")  # the folder of the first start is put in force: there was nothing to try it on
    (rules / "desk.cedar").write_text(READS)
    refused = holdfast("policy", "promote", "--as", "ana")
    assert refused.code != 0
    assert "--since 2d --accept" in refused.err
    assert holdfast("policy", "diff", "--accept", "--tool", "desk.*", "--as", "ana").code != 0
    accepted = holdfast("policy", "diff", "--accept", "--note", "fine", "--as", "ana")
    assert (accepted.code, "accepted  rules/" in accepted.out) == (0, True)
    assert holdfast("policy", "promote", "--as", "ana").code == 0
    (rules / "desk.cedar").write_text(OPEN + READS.replace("reads", "more"))
    shown = holdfast("policy", "promote", "--with-diff", "--yes", "--as", "ana")
    assert shown.code == 0, shown
    assert "decisions flip" in shown.out
    assert "promoted" in shown.out


@requirement("NAM-1", "OBS-6")
def test_labels_are_shown_and_lifted(desk: Path, holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk / "vault.py").write_text(TOOLS)
    monkeypatch.syspath_prepend(str(desk))
    said = (
        (desk / "holdfast.yaml")
        .read_text()
        .replace("upstreams:", 'upstreams:\n  vault: {functions: "vault:TOOLS"}')
    )
    (desk / "holdfast.yaml").write_text(said)
    assert holdfast("labels", "show", "--as", "ana").out == "no labels are held\n"
    asked = ("call", "vault.passwords", "--args", json.dumps({"of": "x"}), "--task", "t-1", "--as", "ana")
    assert holdfast(*asked).code == 0
    [held] = holdfast("labels", "show", "--as", "ana", "--json").json["labels"]
    assert (held["label"], held["holder"]) == ("secret", "task:ana/t-1")
    assert "task:ana/t-1" in holdfast("labels", "show", "task:ana/t-1", "--as", "ana").out
    assert "holds no labels" in holdfast("labels", "show", "s-1", "--as", "ana").out
    assert holdfast("labels", "lift", "task:ana/t-1", "secret", "--as", "ana").code != 0  # says not why
    assert holdfast("labels", "lift", "task:ana/t-1", "secret", "--note", "x", "--as", "eve").code != 0
    lifted = holdfast("labels", "lift", "task:ana/t-1", "secret", "--note", "a drill", "--as", "ana")
    assert (lifted.code, lifted.out) == (0, "lifted  secret from task:ana/t-1\n")
    assert holdfast("labels", "show", "--as", "ana", "--json").json == {"labels": []}


def _forbid(tool: str) -> str:
    return f'forbid (principal, action == Action::"{tool}", resource);\n'
