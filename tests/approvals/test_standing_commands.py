"""Can rules and plans be handled from the command line?"""

from pathlib import Path

import pytest

from tests.cli.conftest import CONFIG, Holdfast, desk, holdfast
from tests.cli.desk_tools import effects
from tests.requirements import requirement

__all__ = ["desk", "holdfast"]

CLOSE_ALL = ("call", "desk.close_all", "--args")
MORE = (
    CONFIG
    + """
    cat: {roles: [operator], scopes: ["tickets:**"]}
"""
)


@pytest.fixture(autouse=True)
def three_operators(desk: Path) -> None:
    (desk / "holdfast.yaml").write_text(MORE)


def close(holdfast: Holdfast, days: int, key: str) -> int:
    return holdfast(*CLOSE_ALL, f'{{"older_than_days": {days}}}', "--key", key, "--as", "ana").code


def approve(holdfast: Holdfast, id: str) -> None:
    for name in ("ben", "cat"):
        assert holdfast("approve", id, "--as", name, "--yes").code == 0


@requirement("APR-9", "NAM-1")
def test_a_rule_is_proposed_from_history_accepted_and_revoked(holdfast: Holdfast) -> None:
    for days in (30, 60, 90):
        said = holdfast(
            *CLOSE_ALL, f'{{"older_than_days": {days}}}', "--key", f"k{days}", "--as", "ana", "--json"
        )
        approve(holdfast, said.json["approval"]["id"])
    suggested = holdfast("rules", "propose", "--since", "1d", "--tool", "desk.close_all", "--as", "cat")
    assert (suggested.code, "at least 30 and at most 90" in suggested.out) == (0, True)
    assert "would have answered 3 that were approved" in suggested.out
    rule = holdfast("rules", "propose", "--ask", "1", "--as", "cat", "--json").json
    assert (rule["state"], rule["need"]) == ("proposed", {"operator": 2})
    for name in ("ben", "cat"):
        accepted = holdfast("rules", "accept", rule["id"], "--as", name, "--json").json
    assert accepted["state"] == "live"
    assert close(holdfast, 45, "k-new") == 0
    assert close(holdfast, 20, "k-other") == 4
    assert "1 of 6" in holdfast("rules", "list", "--as", "cat").out
    assert holdfast("rules", "revoke", rule["id"], "--as", "ben", "--json").json["state"] == "revoked"
    assert close(holdfast, 46, "k-late") == 4
    assert holdfast("rules", "show", rule["id"], "--as", "cat", "--json").json["ended_by"] == "ben"
    assert effects() == ["close all 45"]


@requirement("APR-9")
def test_a_rule_may_be_written_by_hand(holdfast: Holdfast, desk: Path) -> None:
    rule = (
        "{tool: desk.close_all, principals: 'ana/*', arguments: {older_than_days: {at_least: 365}}, most: 2}"
    )
    (desk / "rule.yaml").write_text(rule)
    asked = holdfast("rules", "add", "rule.yaml", "--as", "cat")
    assert (asked.code, "rules accept" in asked.out) == (0, True)
    (desk / "rule.yaml").write_text("{tool: desk.close_all, for: ana}")
    assert holdfast("rules", "add", "rule.yaml", "--as", "cat").code == 2
    assert holdfast("rules", "propose", "--since", "soon", "--as", "cat").code == 2


@requirement("APR-8", "NAM-1")
def test_a_plan_is_proposed_from_a_file_and_carried_out(holdfast: Holdfast, desk: Path) -> None:
    step = "{tool: desk.close_all, arguments: {older_than_days: %s}}"
    steps = ", ".join((step % 9, step % "{$any: {at_least: 30}}"))
    (desk / "plan.yaml").write_text(f"{{task: tidy, steps: [{steps}]}}")
    asked = holdfast("plan", "plan.yaml", "--as", "ana", "--json")
    assert (asked.code, asked.json["status"]) == (4, "asked")
    packet = holdfast("approvals", asked.json["approval"]["id"], "--as", "ben")
    assert ("a plan of 2 calls" in packet.out, "at least 30" in packet.out) == (True, True)
    approve(holdfast, asked.json["approval"]["id"])
    assert [close(holdfast, days, f"k{days}") for days in (9, 40, 41)] == [0, 0, 4]
    shown = holdfast("plans", "show", asked.json["plan"], "--as", "ana", "--json").json
    assert [step["used"] for step in shown["steps"]] == [True, True]
    assert "2 of 2" in holdfast("plans", "list", "--as", "ana").out
    assert holdfast("plans", "revoke", asked.json["plan"], "--as", "ana").code == 0
    (desk / "plan.yaml").write_text(f"{{steps: [{step % 'x'}]}}")
    refused = holdfast("plan", "plan.yaml", "--as", "ana")
    assert (refused.code, "TYPE_MISMATCH" in refused.out) == (3, True)
    (desk / "plan.yaml").write_text("{steps: [{tool: 1}]}")
    assert holdfast("plan", "plan.yaml", "--as", "ana").code == 2
