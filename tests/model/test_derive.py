"""Is everything that follows from effect, undo and reach defined for every one of them?"""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.contract import (
    Affordance,
    Compensation,
    Contract,
    Idempotency,
    Identity,
    Runtime,
    Transactional,
)
from holdfast.model.derive import (
    ApprovalMode,
    ApprovalRule,
    MutationClass,
    Semantics,
    approval_mode,
    confirmation_required,
    floor_of,
    join,
    mutation_class,
    needs_approval,
    semantics,
)
from holdfast.model.vocabulary import Effect, Environment, Floor, Reach, Undo
from tests.requirements import requirement

WRITES = [effect for effect in Effect if effect.writes]


def contract(
    effect: Effect, undo: Undo, reach: Reach, compensated: bool = False, keyed: bool = False
) -> Contract:
    return Contract(
        identity=Identity(namespace="shop", name="x", version="1.0.0"),
        affordance=Affordance(description="d", input_schema={"type": "object"}),
        runtime=Runtime(reach=reach),
        transactional=Transactional(
            effect=effect, undo=undo, compensation=Compensation(tool="shop.y") if compensated else None
        ),
        idempotency=Idempotency(upstream="meta" if keyed else "none"),
    )


@requirement("CON-9")
def test_the_mutation_class_is_defined_for_every_effect_and_undo() -> None:
    table = {pair: mutation_class(*pair) for pair in product(Effect, Undo)}
    assert {c for (effect, _), c in table.items() if not effect.writes} == {MutationClass.READ_ONLY}
    for effect in WRITES:
        assert table[effect, Undo.EXACT] is table[effect, Undo.SEMANTIC] is MutationClass.WRITE_REVERSIBLE
        assert table[effect, Undo.PARTIAL] is table[effect, Undo.NONE] is MutationClass.WRITE_IRREVERSIBLE


@requirement("CON-9")
@pytest.mark.parametrize(
    ("effect", "undo", "reach", "mode"),
    [
        (Effect.READ_ONLY, Undo.NONE, Reach.DELEGATED, ApprovalMode.READ_ONLY),
        (Effect.EPHEMERAL_WRITE, Undo.EXACT, Reach.NONE, ApprovalMode.LOCAL_WRITE),
        (Effect.LOW_RISK_INTERNAL, Undo.EXACT, Reach.LOCAL, ApprovalMode.LOCAL_WRITE),
        (Effect.MEDIUM_RISK_WRITE, Undo.SEMANTIC, Reach.NETWORK, ApprovalMode.NETWORK),
        (Effect.MEDIUM_RISK_WRITE, Undo.SEMANTIC, Reach.DELEGATED, ApprovalMode.DELEGATED),
        (Effect.HIGH_RISK_EXTERNAL, Undo.SEMANTIC, Reach.LOCAL, ApprovalMode.NETWORK),
        (Effect.HIGH_RISK_EXTERNAL, Undo.SEMANTIC, Reach.DELEGATED, ApprovalMode.DELEGATED),
        (Effect.LOW_RISK_INTERNAL, Undo.PARTIAL, Reach.LOCAL, ApprovalMode.DESTRUCTIVE),
        (Effect.CRITICAL_MUTATION, Undo.EXACT, Reach.NONE, ApprovalMode.DESTRUCTIVE),
    ],
)
def test_the_approval_mode_follows_from_effect_undo_and_reach(
    effect: Effect, undo: Undo, reach: Reach, mode: ApprovalMode
) -> None:
    assert approval_mode(effect, undo, reach) is mode


@requirement("CON-9")
def test_the_approval_mode_is_defined_everywhere_and_partial_counts_as_none() -> None:
    table = {row: approval_mode(*row) for row in product(Effect, Undo, Reach)}
    assert set(table.values()) == set(ApprovalMode)
    for effect, reach in product(Effect, Reach):
        assert table[effect, Undo.PARTIAL, reach] is table[effect, Undo.NONE, reach]
        assert (table[effect, Undo.EXACT, reach] is ApprovalMode.READ_ONLY) == (not effect.writes)


@requirement("CON-1", "CON-9")
@pytest.mark.parametrize(
    ("undo", "reach", "compensated", "keyed", "expected"),
    [
        (Undo.SEMANTIC, Reach.LOCAL, True, False, Semantics.COMPENSABLE_WRITE),
        (Undo.SEMANTIC, Reach.NETWORK, True, True, Semantics.SAGA_STEP),
        (Undo.EXACT, Reach.LOCAL, False, True, Semantics.IDEMPOTENT_WRITE),
        (Undo.EXACT, Reach.LOCAL, False, False, Semantics.COMPENSABLE_WRITE),
        (Undo.NONE, Reach.NETWORK, False, True, Semantics.RETRYABLE_POST_PIVOT),
        (Undo.PARTIAL, Reach.NETWORK, False, False, Semantics.IRREVERSIBLE_PIVOT),
    ],
)
def test_transaction_semantics_are_derived_from_what_is_declared(
    undo: Undo, reach: Reach, compensated: bool, keyed: bool, expected: Semantics
) -> None:
    assert semantics(contract(Effect.MEDIUM_RISK_WRITE, undo, reach, compensated, keyed)) is expected


@requirement("CON-9")
def test_transaction_semantics_are_defined_everywhere() -> None:
    rows = product(Effect, Undo, Reach, (False, True), (False, True))
    found = {row: semantics(contract(*row)) for row in rows}
    assert set(found.values()) == set(Semantics)
    assert {s for row, s in found.items() if not row[0].writes} == {Semantics.READ_ONLY}


@requirement("CON-1", "CON-9")
def test_confirmation_is_required_where_no_caller_can_be_trusted_enough() -> None:
    for effect, undo, floor in product(Effect, Undo, Floor):
        required = confirmation_required(effect, undo, floor)
        rules = [
            needs_approval(effect, undo, floor, trust=trust, environment=environment, critical_scope=False)
            for trust, environment in product((0, 100), Environment)
        ]
        assert required == all(rule.floor is not Floor.NONE for rule in rules)


@given(st.sampled_from(Floor), st.sampled_from(Floor), st.sampled_from(Floor))
def test_joining_floors_takes_the_stricter(a: Floor, b: Floor, c: Floor) -> None:
    assert join(a, b) is join(b, a)
    assert join(a, join(b, c)) is join(join(a, b), c)
    assert join(a, a) is a
    assert join(a, b).rank == max(a.rank, b.rank)


# ---------------------------------------------------------------- when a person is asked

calls = st.fixed_dictionaries(
    {
        "effect": st.sampled_from(Effect),
        "undo": st.sampled_from(Undo),
        "floor": st.sampled_from(Floor),
        "trust": st.integers(0, 100),
        "environment": st.sampled_from(Environment),
        "critical_scope": st.booleans(),
        "threshold": st.integers(0, 100),
    }
)


def rule_for(call: dict[str, Any], **changes: Any) -> ApprovalRule:
    return needs_approval(**{**call, **changes})


@requirement("CON-9")
@given(calls)
def test_the_rule_answers_every_call_with_a_reason(call: dict[str, Any]) -> None:
    rule = rule_for(call)
    assert rule.reason
    assert rule.floor.at_least(call["floor"])
    assert not (rule.policy_decides and rule.floor is not Floor.NONE)


@requirement("CON-9")
@given(calls)
def test_effect_wins_over_trust(call: dict[str, Any]) -> None:
    trusted = rule_for(call, trust=100)
    if call["effect"].writes:
        assert trusted.floor.at_least(floor_of(call["effect"]))
    assert rule_for(call, effect=Effect.CRITICAL_MUTATION).floor.at_least(Floor.TWO_PERSON)
    assert rule_for(call, effect=Effect.HIGH_RISK_EXTERNAL).floor.at_least(Floor.USER)


@given(calls)
def test_reads_need_only_what_their_contract_asks_for(call: dict[str, Any]) -> None:
    rule = rule_for(call, effect=Effect.READ_ONLY)
    assert rule.floor is call["floor"]
    assert not rule.policy_decides


@given(calls, st.sampled_from(WRITES), st.sampled_from([Undo.PARTIAL, Undo.NONE]))
def test_what_cannot_be_taken_back_always_waits(call: dict[str, Any], effect: Effect, undo: Undo) -> None:
    assert rule_for(call, effect=effect, undo=undo).floor.at_least(Floor.USER)


@given(calls, st.sampled_from(WRITES))
def test_a_critical_scope_in_prod_always_waits(call: dict[str, Any], effect: Effect) -> None:
    rule = rule_for(call, effect=effect, environment=Environment.PROD, critical_scope=True)
    assert rule.floor.at_least(Floor.OPERATOR)


@given(calls)
def test_less_trust_never_means_less_approval(call: dict[str, Any]) -> None:
    trusted, untrusted = rule_for(call, trust=100), rule_for(call, trust=0)
    assert untrusted.floor.at_least(trusted.floor)
    assert untrusted.policy_decides or not trusted.policy_decides


@pytest.mark.parametrize(
    ("trust", "environment", "decides"),
    [
        (50, Environment.DEV, False),
        (50, Environment.STAGING, False),
        (49, Environment.DEV, True),
        (100, Environment.PROD, True),
    ],
)
def test_an_undoable_write_is_free_for_the_trusted_outside_prod(
    trust: int, environment: Environment, decides: bool
) -> None:
    rule = needs_approval(
        Effect.MEDIUM_RISK_WRITE, Undo.SEMANTIC, Floor.NONE, trust=trust, environment=environment
    )
    assert rule.floor is Floor.NONE
    assert rule.policy_decides is decides
