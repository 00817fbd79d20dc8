"""Does a record say, byte for byte, what the plain way to write it says?"""

from base64 import b64decode
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.call import Call, Decision, Principal
from holdfast.model.contract import EffectEntry
from holdfast.model.errors import Code
from holdfast.model.observation import ApprovalRef, Observation, Status
from holdfast.model.operation import Operation
from holdfast.model.stage import PolicyVersion, Stage, UseGrant
from holdfast.model.steps import GATES
from holdfast.model.tool import Tool
from holdfast.model.verdict import PASS, Pass, Refusal, Verdict
from holdfast.model.vocabulary import Effect, Floor, KeySource, State, Undo
from holdfast.model.vocabulary import Operation as Deed
from holdfast.records import body
from holdfast.stores.keyring import Keyring
from holdfast.testing import ManualClock
from tests.records import reference
from tests.requirements import requirement
from tests.stores.calls import LOOK, PAY, make_call

CLOCK, KEYS = ManualClock(), Keyring()
MANY = settings(max_examples=100)

texts = st.text(max_size=12)
anything = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | texts | st.lists(texts)
objects = st.dictionaries(texts, anything, max_size=3)
principals = st.builds(
    Principal,
    tenant=st.sampled_from(["default", "acme"]),
    user=texts,
    agent=texts,
    act=st.lists(texts, max_size=2).map(tuple),
    rests_on=st.lists(st.sampled_from(["key:k", "token:hf-1", "token:hf-2", "grant:g"]), max_size=3).map(
        tuple
    ),
)
decisions = st.builds(
    Decision,
    id=texts,
    allow=st.booleans(),
    floor=st.sampled_from(Floor),
    need=st.dictionaries(texts, st.integers(1, 3), max_size=2),
    risk=texts,
    version=texts,
    policies=st.lists(texts, max_size=2).map(tuple),
    facts=st.none() | objects,
)
stages: st.SearchStrategy[tuple[str, Stage]] = st.tuples(
    texts, st.builds(UseGrant, texts) | st.builds(PolicyVersion, texts)
)
moments = st.floats(0, 4e9)


def tools() -> list[Tool]:
    """A read, a write, and contracts that say more of their effects."""
    entries = [
        EffectEntry(resource=resource, operation=Deed.DELETE, scope='the "whole" \N{SNOWMAN}')
        for resource in ("ledger", "archive")
    ]
    effects = PAY.contract.transactional.model_copy(
        update={"manifest": tuple(entries), "undo": Undo.NONE, "effect": Effect.CRITICAL_MUTATION}
    )
    return [LOOK, PAY, Tool.compile(PAY.contract.model_copy(update={"transactional": effects}))]


TOOLS = tools()


LAST: list[Verdict] = [PASS, Pass(), Refusal(Code.CONFLICT, "no")]


@st.composite
def verdicts(draw: st.DrawFn) -> list[tuple[str, Verdict]]:
    """Some gates in their order, the last of which may have refused."""
    skipped = draw(st.sets(st.sampled_from(["replay", "limits", "approval", "claim"])))
    names = [gate.name for gate in GATES if gate.name not in skipped][: draw(st.integers(0, len(GATES)))]
    last = draw(st.sampled_from(LAST))
    passed: list[tuple[str, Verdict]] = [(name, PASS) for name in names]
    return [*passed[:-1], (names[-1], last)] if names else []


@st.composite
def calls(draw: st.DrawFn, *, early: bool = False) -> Call:
    tool = draw(st.sampled_from(TOOLS))
    key = draw(st.none() | texts)
    staged = draw(st.lists(stages, max_size=2))
    call = make_call(CLOCK, key, tool=tool, principal=draw(principals), stage=staged)
    call.trace_id, call.nonce, call.commitment = draw(texts), draw(texts), draw(st.none() | texts)
    call.alarms = draw(st.lists(texts, max_size=2))
    call.proposal = call.proposal._replace(task=draw(st.none() | texts | st.just("t" * 300)))
    call.verdicts = draw(verdicts())
    after = 2 if len(call.verdicts) == len(GATES) and call.verdicts[-1][1] == PASS else 0
    call.marks = [call.started + draw(st.floats(0, 9)) for _ in range(len(call.verdicts) + after)]
    if draw(st.booleans()):
        call.decision = draw(decisions)
    if call.ref is not None and draw(st.booleans()):
        call.operation = operation(call)
    if early and draw(st.booleans()):
        del call.tool
    return call


def operation(call: Call) -> Operation:
    assert call.ref is not None
    return Operation(
        ref=call.ref,
        call_id=call.id,
        state=State.CLAIMED,
        fingerprint=call.fingerprint,
        contract_digest=call.tool.contract.digest,
        version=call.tool.contract.version,
        epoch=1,
        nonce=call.nonce,
        owner="w-1",
        key_source=KeySource.CALLER,
        trace_id=call.trace_id,
        created_at=0.0,
        updated_at=0.0,
    )


observations = st.builds(
    Observation,
    call_id=texts,
    tool=texts,
    status=st.sampled_from(Status),
    data=anything | objects,
    approval=st.none() | st.builds(ApprovalRef, texts, texts, texts),
    mutations=st.lists(
        st.fixed_dictionaries(
            {}, optional={"resource": texts, "operation": texts, "observed": st.booleans()}
        ),
        max_size=2,
    ).map(tuple),
    attempts=st.integers(0, 3),
    replayed=st.booleans(),
    latency_ms=st.floats(0, 1e5),
)


def opened(text: str, tenant: str) -> str:
    """The record with its seals broken: they never come out the same twice."""
    members = orjson.loads(text)
    for sealed in (members.get("claim"), (members["decision"] or {}).get("facts")):
        if sealed is not None:
            text = text.replace(sealed, KEYS.unseal(tenant, b64decode(sealed)).decode())
    return text


@requirement("AUD-1")
@MANY
@given(calls(), moments, st.sampled_from([None, KEYS]))
def test_an_intent_says_what_it_always_said(call: Call, at: float, keys: Keyring | None) -> None:
    tenant = call.principal.tenant
    said, meant = body.intent_body(call, at, keys), reference.intent_body(call, at, keys)
    assert opened(said, tenant) == opened(meant, tenant)


@requirement("AUD-1")
@MANY
@given(
    calls(early=True),
    moments,
    observations,
    st.none() | st.sampled_from(Code),
    st.none() | texts,
    st.none() | st.sampled_from(State),
    st.sampled_from([None, KEYS]),
)
def test_an_outcome_says_what_it_always_said(
    call: Call,
    at: float,
    observation: Observation,
    code: Code | None,
    commitment: str | None,
    state: State | None,
    keys: Keyring | None,
) -> None:
    given: tuple[Any, ...] = (call, at, observation, code, commitment, state, keys)
    tenant = call.principal.tenant
    assert opened(body.outcome_body(*given), tenant) == opened(reference.outcome_body(*given), tenant)
