"""Does `holdfast show` tell at the terminal what happened to a call?"""

import pytest

from holdfast.model.steps import ORDER
from tests.cli.conftest import Holdfast
from tests.requirements import requirement

GET = ("call", "desk.get_ticket", "--args", '{"number": 1}', "--json")


@requirement("PPL-1", "PPL-2")
def test_a_call_is_shown_gate_by_gate_with_what_happened_to_it(holdfast: Holdfast) -> None:
    call = holdfast(*GET, "--task", "spring").json["call_id"]
    shown = holdfast("show", call)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("done  desk.get_ticket@")
    for name in (*ORDER, "spring", "is there budget and rate left", "proposed by", "ended done"):
        assert name in shown.out
    told = holdfast("show", call, "--json").json
    assert (told["call_id"], told["status"], told["task"]) == (call, "done", "spring")
    assert [gate["name"] for gate in told["decided"]["gates"]] == list(ORDER)
    assert [record["kind"] for record in told["records"]] == ["intent", "outcome"]


@requirement("PPL-1", "PPL-2")
def test_a_refusal_is_shown_with_the_gate_that_decided(holdfast: Holdfast) -> None:
    refused = holdfast("call", "desk.get_ticket", "--args", '{"number": "one"}', "--json").json
    shown = holdfast("show", refused["call_id"])
    assert "refused" in shown.out.splitlines()[0]
    assert "decided by  gate 'arguments'" in shown.out
    assert "not asked" in shown.out


@requirement("PPL-1")
@pytest.mark.parametrize("call", ["call_none", "policy:none"])
def test_a_call_that_is_not_there_is_said_not_to_be(holdfast: Holdfast, call: str) -> None:
    ended = holdfast("show", call)
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith(f"error: there is no call '{call}' of yours here")
