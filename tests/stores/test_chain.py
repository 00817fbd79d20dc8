"""Does a touched record show?"""

import json
from collections.abc import Callable

import pytest

from holdfast.model.call import Decision
from holdfast.model.errors import Code
from holdfast.model.observation import Status
from holdfast.model.stage import UseGrant
from holdfast.model.vocabulary import State
from holdfast.records.body import intent_body, outcome_body
from holdfast.records.chain import Chain, Record, first_fault
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.stores.calls import make_call, observed
from tests.stores.world import World

FIFTEEN = {
    "timestamp",
    "trace_id",
    "caller",
    "agent",
    "tool",
    "operation",
    "input_commitment",
    "output_summary",
    "mutation_class",
    "side_effects",
    "auth_decision",
    "approval_id",
    "latency_ms",
    "status",
    "error_code",
}


def chained(count: int) -> list[Record]:
    chain = Chain("w_1")
    return [chain.append("t", f"call_{n}", "intent", 1.0 + n, f'{{"n":{n}}}') for n in range(count)]


@requirement("AUD-1")
async def test_every_act_of_a_store_is_in_an_unbroken_chain(world: World) -> None:
    await world.run(make_call(world.clock, "a"), State.COMMITTED)
    await world.run(make_call(world.clock, "b"), State.UNKNOWN)
    await world.refused(make_call(world.clock, "c", stage=[("approval", UseGrant("none"))]))
    await world.grant(make_call(world.clock, "d"))
    await world.controls.halt("all", "olga", "")
    records = world.records()
    assert [record.seq for record in records] == list(range(1, 8))
    assert first_fault(records) is None


@requirement("AUD-1")
@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda r, n: [*r[:n], r[n]._replace(body="{}"), *r[n + 1 :]], "was changed"),
        (lambda r, n: [*r[:n], r[n]._replace(at=9.0), *r[n + 1 :]], "was changed"),
        (lambda r, n: [*r[:n], r[n]._replace(tenant="u"), *r[n + 1 :]], "was changed"),
        (lambda r, n: [*r[:n], r[n]._replace(call_id="call_9"), *r[n + 1 :]], "was changed"),
        (lambda r, n: r[:n] + r[n + 1 :], "is missing"),
        (lambda r, n: [*r[:n], r[n + 1], r[n], *r[n + 2 :]], "is missing"),
    ],
)
def test_a_changed_removed_or_moved_record_is_found(
    place: int, change: Callable[[list[Record], int], list[Record]], fault: str
) -> None:
    said = first_fault(change(chained(7), place))
    assert said is not None
    assert said == f"record {place + 1} of writer 'w_1' {fault}"


@requirement("AUD-1")
def test_a_record_made_anew_does_not_fit_the_chain() -> None:
    records = chained(5)
    forged = Chain("w_1")
    forged.append("t", "call_0", "intent", 1.0, "{}")
    records[1] = forged.append("t", "call_1", "intent", 2.0, "{}")
    assert first_fault(records) == "record 2 of writer 'w_1' does not follow the one before it"


@requirement("AUD-1")
def test_intent_and_outcome_have_the_fifteen_fields() -> None:
    call = make_call(ManualClock(), stage=[("approval", UseGrant("apr_1"))])
    intent = json.loads(intent_body(call, 1_800_000_000.25))
    assert intent.keys() >= FIFTEEN
    assert intent["timestamp"] == "2027-01-15T08:00:00.250+00:00"
    assert (intent["caller"], intent["agent"], intent["tool"]) == ("alice", "bot", "bank.pay@1.0.0")
    assert (intent["mutation_class"], intent["approval_id"]) == ("write_reversible", "apr_1")
    assert intent["side_effects"] == [{"resource": "payment", "operation": "CREATE", "scope": "one"}]
    told = observed(call, data={"a": 1, "b": 2}, mutations=({"resource": "payment", "value": "x"},))
    outcome = json.loads(outcome_body(call, 1.0, told, None, "committed-to", State.COMMITTED))
    assert outcome.keys() >= FIFTEEN
    assert outcome["output_summary"] == {"kind": "object", "size": 2}
    assert outcome["side_effects"] == [{"resource": "payment"}]
    assert (outcome["status"], outcome["auth_decision"]) == ("done", "ALLOW")


@requirement("AUD-1")
@pytest.mark.parametrize(
    ("status", "code", "allow", "expected"),
    [
        (Status.HELD, None, True, "REQUIRES_APPROVAL"),
        (Status.REFUSED, Code.POLICY_VIOLATION, None, "DENY"),
        (Status.REFUSED, Code.RATE_LIMITED, True, "ALLOW"),
        (Status.REFUSED, Code.TOOL_NOT_FOUND, None, "DENY"),
        (Status.DONE, None, None, "ALLOW"),
        (Status.FAILED, Code.TIMEOUT, False, "DENY"),
    ],
)
def test_a_record_says_how_access_was_decided(
    status: Status, code: Code | None, allow: bool | None, expected: str
) -> None:
    call = make_call(ManualClock())
    if allow is not None:
        call.decision = Decision(id="d-1", allow=allow)
    body = json.loads(outcome_body(call, 1.0, observed(call, status, code), code, None))
    assert body["auth_decision"] == expected
