"""Is an observation written as NAM-4 lists it, and read back as it was?"""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.errors import Code, Remedy, remedy
from holdfast.model.fields import FieldError
from holdfast.model.observation import ApprovalRef, Observation, Outcome, Provenance, Status, Timing
from holdfast.model.vocabulary import KeySource, Rung, Strength
from tests.requirements import requirement

NULL_ALLOWED = {"data", "policy_decision_id", "key_source"}
"""Members that are there even where there is nothing to say."""

texts = st.text(max_size=12)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, anything, max_size=3)
faults = st.builds(FieldError, texts, texts, texts, texts)
observations = st.builds(
    Observation,
    call_id=texts,
    tool=texts,
    status=st.sampled_from(Status),
    version=st.none() | texts,
    code=st.none() | st.sampled_from(Code),
    message=st.none() | texts,
    field_errors=st.lists(faults, max_size=2).map(tuple),
    remedy=st.just(Observation(call_id="", tool="", status=Status.DONE).remedy)
    | st.builds(remedy, st.sampled_from(Code), st.none() | st.integers(0, 9000)),
    data=anything,
    warnings=st.lists(texts, max_size=2).map(tuple),
    approval=st.none() | st.builds(ApprovalRef, texts, texts, texts),
    outcome=st.none() | st.builds(Outcome, st.sampled_from(Rung), st.sampled_from(Strength)),
    replayed=st.booleans(),
    attempts=st.integers(0, 5),
    provenance=st.none() | st.builds(Provenance, texts, texts, texts, texts, st.just(1.0)),
    policy_decision_id=st.none() | texts,
    trace_id=texts,
    latency_ms=st.floats(0, 1e6),
    cost=st.none() | objects,
    key=st.none() | texts,
    key_source=st.none() | st.sampled_from(KeySource),
    timing=st.none() | st.builds(Timing, texts, st.none() | texts, texts),
    input_commitment=st.none() | texts,
    grant=st.none() | objects,
    pagination=st.none() | objects,
    citations=st.lists(objects, max_size=2).map(tuple),
    mutations=st.lists(objects, max_size=2).map(tuple),
    deprecation=st.none() | objects,
    verification=st.none() | objects,
    steps=st.none() | objects,
    preview=st.none() | objects,
    native=st.none() | objects,
)


def listed(value: Any) -> Any:
    """The plain way to write it: every field of the class in its order."""
    if not is_dataclass(value):
        return value
    told = {}
    for field in fields(value):
        said = getattr(value, field.name)
        must = isinstance(value, Observation) and field.name in NULL_ALLOWED
        must = must or not isinstance(value, Observation | Remedy)
        if said is not None or must:
            told[field.name] = [listed(one) for one in said] if field.name == "field_errors" else listed(said)
    return told


@requirement("NAM-4")
@settings(max_examples=50, deadline=None)
@given(observations)
def test_the_written_form_is_the_plain_list_of_its_members(observation: Observation) -> None:
    assert observation.to_json() == orjson.dumps(listed(observation))
    assert orjson.dumps(observation.to_dict()) == observation.to_json()


@requirement("NAM-4")
@settings(max_examples=50, deadline=None)
@given(observations)
def test_what_is_read_back_is_equal_and_writes_the_same(observation: Observation) -> None:
    back = Observation.from_json(observation.to_json())
    assert back == observation
    assert back.to_json() == observation.to_json()


@settings(max_examples=50, deadline=None)
@given(observations)
def test_a_replay_differs_in_nothing_but_saying_so(observation: Observation) -> None:
    observation.to_json()  # what was written before is not what a copy says
    told = observation.as_replayed()
    assert told.replayed
    assert told.to_dict() == {**observation.to_dict(), "replayed": True}


def test_a_changed_copy_is_written_anew() -> None:
    first = Observation(call_id="c", tool="a.b", status=Status.DONE)
    assert first.to_json() is first.to_json()
    assert orjson.loads(replace(first, trace_id="t").to_json())["trace_id"] == "t"


def test_what_is_taken_out_of_the_members_is_still_in_the_observation() -> None:
    observation = Observation(call_id="c", tool="a.b", status=Status.DONE, data={"a": 1})
    members = observation.to_dict()
    members["remedy"].clear()
    del members["data"]
    assert observation.to_dict()["remedy"]["next_action"] == "none"
    assert observation.to_dict()["data"] == {"a": 1}
