"""Is a contract complete, frozen, and named by exactly what it promises?"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from holdfast.model.contract import Contract
from holdfast.model.vocabulary import DataClass, Effect, Floor, Ordered, Reach, Severity
from tests.catalog.contracts import critical, get_order, low
from tests.requirements import requirement


@requirement("CON-1")
def test_a_contract_cannot_be_changed() -> None:
    contract = get_order()
    with pytest.raises(ValidationError, match="frozen"):
        contract.identity.version = "2.0.0"


@requirement("CON-1")
def test_an_unknown_part_is_refused() -> None:
    written = get_order().model_dump(mode="json")
    with pytest.raises(ValidationError):
        Contract.model_validate({**written, "extras": {}})


@requirement("CON-1")
@pytest.mark.parametrize(
    "changes",
    [
        {"affordance": {"description": "Another description of the same thing"}},
        {"affordance": {"input_schema": {"type": "object"}}},
        {"security": {"required_scopes": ["orders:read"]}},
        {"security": {"approval_floor": "user"}},
        {"runtime": {"timeout_ms": 100}},
        {"semantics": [{"holds": "true", "message": "m"}]},
        {"identity": {"version": "1.0.1"}},
    ],
)
def test_another_promise_has_another_digest(changes: dict[str, Any]) -> None:
    assert get_order(**changes).digest != get_order().digest
    assert get_order(**changes).digest == get_order(**changes).digest


@requirement("CON-1")
@pytest.mark.parametrize(
    "life",
    [
        {"status": "deprecated", "deprecated_on": "2030-01-01", "sunset_on": "2030-06-01"},
        {"successor": "shop.find_order@2.0.0", "migration_guide": "use the other one"},
    ],
)
def test_deprecating_a_version_does_not_make_it_another_promise(life: dict[str, str]) -> None:
    assert get_order(identity=life).digest == get_order().digest


def test_a_copy_computes_everything_anew() -> None:
    contract = get_order()
    before = contract.digest, contract.tool, contract.runtime.timeout_s
    identity = contract.identity.model_copy(update={"name": "find_order"})
    runtime = contract.runtime.model_copy(update={"timeout_ms": 100})
    changed = contract.model_copy(update={"identity": identity, "runtime": runtime})
    assert (contract.digest, contract.tool, contract.runtime.timeout_s) == before
    assert changed.tool == "shop.find_order"
    assert changed.runtime.timeout_s == 0.1
    assert changed.digest != contract.digest


def test_a_copy_is_checked_like_an_original() -> None:
    with pytest.raises(ValidationError):
        get_order().identity.model_copy(update={"namespace": "Not Allowed"})


@requirement("CON-1")
def test_the_timeout_narrows_its_class_and_never_widens_it() -> None:
    assert get_order().runtime.timeout_s == 5
    assert get_order(runtime={"timeout_ms": 200}).runtime.timeout_s == 0.2
    assert get_order(runtime={"timeout_ms": 60_000}).runtime.timeout_s == 5


@requirement("IDM-6")
def test_a_declared_window_can_only_lengthen_what_is_remembered() -> None:
    assert low(idempotency={"window_s": 60}).window_s == 3600
    assert low(idempotency={"window_s": 90_000}).window_s == 90_000


@requirement("CON-4")
def test_what_a_model_sees_says_nothing_of_the_system() -> None:
    secret = critical(
        security={"required_scopes": ["orders:refund"], "egress": "private_network_only"},
        transactional={"rollback_plan": "call the bank"},
    )
    shown = secret.affordance.model_dump_json()
    for word in ("orders:refund", "private_network_only", "call the bank", "two_person", "probe"):
        assert word not in shown


@pytest.mark.parametrize("kind", [Effect, Floor, Reach, DataClass, Severity])
def test_an_ordered_word_knows_its_rank(kind: type[Ordered]) -> None:
    members = list(kind)
    assert [member.rank for member in members] == list(range(len(members)))
    assert members[-1].at_least(members[0])
    assert not members[0].at_least(members[-1])


@given(st.sampled_from(Effect))
def test_from_low_risk_on_a_write_needs_a_key(effect: Effect) -> None:
    assert effect.needs_key == (effect not in (Effect.READ_ONLY, Effect.EPHEMERAL_WRITE))
    assert effect.writes == (effect is not Effect.READ_ONLY)
