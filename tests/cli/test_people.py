"""Can people approve, settle, halt and cancel from the command line, and only those who may?"""

from pathlib import Path

import pytest

from tests.cli.conftest import CONFIG, Holdfast
from tests.cli.desk_tools import effects
from tests.requirements import requirement

CLOSE_ALL = ("call", "desk.close_all", "--args", '{"older_than_days": 9}', "--key", "k1")
LOSE = ("call", "desk.lose_ticket", "--args", '{"number": 1}', "--key", "k1")


def held(holdfast: Holdfast) -> str:
    ended = holdfast(*CLOSE_ALL, "--json")
    assert ended.code == 4
    return str(ended.json["approval"]["id"])


@requirement("NAM-1", "APR-2")
def test_two_other_people_approve_and_then_the_call_is_done(holdfast: Holdfast) -> None:
    id = held(holdfast)
    first = holdfast("approve", id, "--as", "ana")
    assert (first.code, "still waits for 1 x operator" in first.out) == (0, True)
    assert holdfast(*CLOSE_ALL).code == 4
    again = holdfast("approve", id, "--as", "ana")
    assert (again.code, effects()) == (1, [])
    second = holdfast("approve", id, "--as", "ben", "--note", "seen", "--json")
    assert (second.code, second.json["answer"]) == (0, "APPROVED")
    assert holdfast(*CLOSE_ALL).code == 0
    assert effects() == ["close all 9"]


@requirement("APR-2")
@pytest.mark.parametrize("who", [[], ["--as", "eve"]])
def test_nobody_without_the_role_approves(holdfast: Holdfast, who: list[str]) -> None:
    id = held(holdfast)
    ended = holdfast("approve", id, *who)
    assert ended.code == 3
    assert ended.err.startswith("error: ")
    assert "--as NAME" in ended.err
    assert holdfast(*CLOSE_ALL).code == 4


@requirement("NAM-1")
def test_a_denied_call_stays_denied(holdfast: Holdfast) -> None:
    id = held(holdfast)
    assert "denied" in holdfast("deny", id, "--as", "ben", "--note", "no").out
    ended = holdfast(*CLOSE_ALL, "--json")
    assert (ended.code, ended.json["code"]) == (3, "APPROVAL_DENIED")


@requirement("NAM-1")
def test_what_waits_is_listed_with_what_would_happen(holdfast: Holdfast) -> None:
    assert "nothing waits for you" in holdfast("approvals", "--as", "ana").out
    id = held(holdfast)
    ended = holdfast("approvals", "--as", "ana")
    for said in (id, "desk.close_all@1.0.0", "2 x operator", "UPDATE tickets", '"older_than_days": 9'):
        assert said in ended.out
    (listed,) = holdfast("approvals", "--as", "ana", "--json").json["approvals"]
    assert (listed["id"], listed["missing"]) == (id, {"operator": 2})


@requirement("APR-2")
def test_a_person_with_a_secret_decides_only_with_it(
    desk: Path, holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = CONFIG.replace("ana: {", 'ana: {approver_secret: "${ANA_SECRET}", ')
    (desk / "holdfast.yaml").write_text(secret)
    monkeypatch.setenv("ANA_SECRET", "hunter2")
    id = held(holdfast)
    without = holdfast("approve", id, "--as", "ana")
    assert (without.code, "set HOLDFAST_APPROVER_SECRET" in without.err) == (3, True)
    monkeypatch.setenv("HOLDFAST_APPROVER_SECRET", "hunter3")
    assert "not the approver secret" in holdfast("approve", id, "--as", "ana").err
    monkeypatch.setenv("HOLDFAST_APPROVER_SECRET", "hunter2")
    assert holdfast("approve", id, "--as", "ana").code == 0


@requirement("NAM-1", "PPL-4")
def test_a_lost_outcome_that_a_person_found_committed_is_done_and_stays_it(holdfast: Holdfast) -> None:
    lost = holdfast(*LOSE, "--json").json["call_id"]
    assert holdfast("settle", lost, "committed", "--note", "x", "--as", "eve").code == 3
    settled = holdfast("settle", lost, "committed", "--note", "it is there", "--as", "ana", "--json")
    assert (settled.code, settled.json["status"]) == (0, "done")
    assert holdfast(*LOSE).code == 0
    assert effects() == ["lose 1"]


@requirement("NAM-1", "PPL-4")
def test_a_lost_outcome_that_had_no_effect_frees_its_key(holdfast: Holdfast) -> None:
    lost = holdfast(*LOSE, "--json").json["call_id"]
    settled = holdfast("settle", lost, "no-effect", "--note", "it is not there", "--as", "ana")
    assert (settled.code, "the key may be used again" in settled.out) == (0, True)
    assert holdfast(*LOSE).code == 5
    assert effects() == ["lose 1", "lose 1"]


def test_only_what_is_unknown_is_settled_and_a_reason_is_given(holdfast: Holdfast) -> None:
    done = holdfast("call", "desk.close_ticket", "--args", '{"number": 1}', "--key", "k1", "--json").json
    assert holdfast("settle", done["call_id"], "no-effect", "--note", "x", "--as", "ana").code == 1
    assert holdfast("settle", done["call_id"], "no-effect", "--as", "ana").code == 2
    assert holdfast("settle", "call_0", "no-effect", "--note", "x", "--as", "ana").code == 3


@requirement("NAM-1", "PPL-4")
@pytest.mark.parametrize("target", ["all", "desk", "desk.get_ticket"])
def test_a_halt_stops_calls_until_it_is_lifted(holdfast: Holdfast, target: str) -> None:
    read = ("call", "desk.get_ticket", "--args", '{"number": 1}')
    assert holdfast("halt", target, "--as", "eve").code == 3
    assert holdfast(*read).code == 0
    assert holdfast("halt", target, "--as", "ana", "--note", "smoke").code == 0
    assert holdfast(*read).code == 3
    assert "smoke" in holdfast("halts").out
    assert target in holdfast("halts", "--json").json["halts"]
    assert holdfast("resume", target, "--as", "ana").code == 0
    assert holdfast(*read).code == 0
    assert holdfast("resume", target, "--as", "ana").code == 3
    assert "nothing is halted" in holdfast("halts").out


@requirement("NAM-1", "PPL-4")
def test_a_held_call_is_cancelled_and_a_done_one_is_not(holdfast: Holdfast) -> None:
    waiting = holdfast(*CLOSE_ALL, "--json").json["call_id"]
    assert holdfast("cancel", waiting, "--json").json == {"call_id": waiting, "result": "cancelled"}
    done = holdfast("call", "desk.close_ticket", "--args", '{"number": 1}', "--key", "k2", "--json").json
    late = holdfast("cancel", done["call_id"])
    assert (late.code, "too late" in late.out) == (3, True)
    assert holdfast("cancel", "call_0").code == 3
