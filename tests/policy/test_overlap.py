"""Is a policy called unreachable or redundant only where it is, and where people would want to know?"""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.vocabulary import Environment
from holdfast.policy import CedarPolicy
from holdfast.policy.examine import examine
from holdfast.policy.obligations import union
from holdfast.policy.standing import Judgement
from tests.policy.examined import built, examined, found
from tests.requirements import requirement

EXPORT = 'action == Action::"bank.export", resource)'
CLOSE = 'action == Action::"bank.close", resource)'


def permit(
    id: str, condition: str = "true", scope: str = EXPORT, who: str = "principal", more: str = ""
) -> str:
    return f'@id("{id}") {more} permit ({who}, {scope} when {{ {condition} }};\n'


def forbid(id: str, condition: str = "true", scope: str = EXPORT) -> str:
    return f'@id("{id}") forbid (principal, {scope} when {{ {condition} }};\n'


@requirement("POL-1")
@pytest.mark.parametrize(
    "condition",
    [
        "false",
        "context.hour < 8 && context.hour > 18",
        "context.hour > 23",
        "context.weekday == 0",
        'context.environment == "production"',
        'context.environment == "prod" && context.environment != "prod"',
        'context.args.table == "a" && context.args.table == "b"',
        'context.args.table like "a*" && context.args.table like "b*"',
        'context.args.table like "*@a.org" && context.args.table like "*@b.org"',
        'context.args.table like "ab*" && !(context.args.table like "a*")',
        'context.args.table == "ab" && context.args.table like "b*"',
        "context.args has region && !(context.args has region)",
        "context.args.limit <= 5 && context.args.limit > 5",
        "context.args.limit == 5 && context.args.limit != 5",
        'resource.effect != "READ_ONLY"',
        "resource.effect_rank > 1",
        'resource.tags.contains("secret")',
        'resource in Namespace::"bank" && !(resource in Namespace::"bank")',
        "context.trusted && !context.trusted",
        'principal in User::"ana" && principal.user == "bob"',
        'principal in Tenant::"a" && principal in Tenant::"b"',
        'principal in Role::"a" && !(principal in [Role::"a", Role::"b"])',
        'context.at < datetime("2026-01-01") && context.at > datetime("2027-01-01")',
        "if context.preview then !context.preview else context.preview",
        'context.labels.containsAll(["a", "b"]) && !context.labels.contains("b")',
    ],
)
def test_a_condition_that_cannot_hold_is_unreachable(condition: str) -> None:
    needs = "context.args has limit && " if "limit" in condition else ""
    assert found(permit("x", needs + condition)) == [("unreachable", "x", "")]
    assert found(forbid("f", needs + condition) + permit("y")) == [("unreachable", "f", "")]


@requirement("POL-1")
@pytest.mark.parametrize(
    "condition",
    [
        "context.hour >= 8 && context.hour <= 8",
        "context.hour + 1 < 1",
        'context.args.table like "a*" && context.args.table like "*b"',
        'context.args.table != "a" && context.args.table != "b"',
        'principal in Role::"a" && !(principal in Role::"b")',
        "context.hour == context.weekday",
        'context.args has region && context.args.region == "eu"',
    ],
)
def test_a_condition_that_may_hold_or_is_not_understood_is_left_alone(condition: str) -> None:
    assert found(permit("x", condition)) == []


@requirement("POL-1")
def test_a_permit_that_a_forbid_always_covers_is_unreachable() -> None:
    text = permit("x", 'context.args.table == "loans" && context.hour < 6') + forbid(
        "night", "context.hour < 8"
    )
    assert found(text) == [("unreachable", "x", "night")]
    assert found(permit("x", "context.hour < 9") + forbid("night", "context.hour < 8")) == []


@requirement("POL-1")
def test_a_narrower_permit_without_approval_under_a_wider_one_with_it_changes_nothing() -> None:
    text = permit("wide", more='@approval("operator")') + permit("small", "context.hour > 8")
    [one] = examined(text).findings
    assert (one.kind, one.policy, one.with_) == ("redundant", "small", "wide")
    assert "permit 'wide' holds whenever it does and asks for 1 x operator" in str(one)
    assert str(one).startswith("a.cedar:2:1: ")


@requirement("POL-1")
def test_permits_that_meet_and_ask_for_different_things_are_told_to_join() -> None:
    text = permit("wide") + permit("asked", "context.hour > 8", more='@approval("operator:2")')
    [one] = examined(text).findings
    assert (one.kind, one.level) == ("joined", "note")
    assert "'wide' and 'asked' can hold together: then it takes 2 x operator" in one.text
    apart = permit("day", "context.hour > 8") + permit(
        "night", "context.hour <= 8", more='@approval("operator")'
    )
    assert found(apart) == []


@requirement("POL-1")
def test_of_two_that_say_the_same_only_the_second_is_redundant() -> None:
    text = permit("one", 'context.args.table == "a"') + permit("two", '"a" == context.args.table')
    assert found(text) == [("redundant", "two", "one")]
    twice = forbid("one", "context.hour < 3") + forbid("two", "3 > context.hour") + permit("y")
    assert found(twice) == [("redundant", "two", "one")]


@requirement("POL-1")
def test_what_an_argument_can_be_by_its_schema_counts() -> None:
    from typing import Annotated, Literal

    from pydantic import Field

    from holdfast import Effect, tool

    @tool(effect=Effect.READ_ONLY)
    async def pay(cents: Annotated[int, Field(ge=1, le=500)], how: Literal["card", "cash"]) -> dict[str, int]:
        """Look at a payment."""
        return {}

    scope = 'action == Action::"bank.pay", resource)'
    assert found(permit("x", "context.args.cents > 500", scope), pay) == [("unreachable", "x", "")]
    assert found(permit("x", "context.args.cents >= 500", scope), pay) == []
    assert found(permit("x", 'context.args.how == "cheque"', scope), pay) == [("unreachable", "x", "")]


@requirement("POL-1")
def test_a_policy_with_too_many_alternatives_is_told_to_be_undecided() -> None:
    many = " && ".join(f'(context.hour == {n} || context.args.table == "{n}")' for n in range(10))
    assert found(permit("x", many)) == [("undecided", "x", "")]


# --- soundness: whatever is claimed is so for every call -----------------------------------

ATOMS = st.sampled_from(
    [
        "context.hour < 8",
        "context.hour >= 8",
        "context.hour == 12",
        "context.hour != 12",
        'context.environment == "prod"',
        'context.args.table == "ab"',
        'context.args.table like "a*"',
        'context.args.table like "*b"',
        '["ab", "b"].contains(context.args.table)',
        "(context.args has limit && context.args.limit > 5)",
        "(context.args has limit && context.args.limit <= 5)",
        "context.args has region",
        'principal in Role::"r"',
        'principal in [Role::"r", Role::"s"]',
        "principal.trust > 50",
        "context.trusted",
        'context.labels.contains("c")',
        'context.labels.containsAny(["c", "d"])',
        "true",
        "false",
        'resource.effect == "READ_ONLY"',
    ]
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda below: st.one_of(
        st.tuples(below, below).map(lambda two: f"({two[0]} && {two[1]})"),
        st.tuples(below, below).map(lambda two: f"({two[0]} || {two[1]})"),
        below.map(lambda one: f"!({one})"),
        st.tuples(below, below, below).map(lambda t: f"(if {t[0]} then {t[1]} else {t[2]})"),
    ),
    max_leaves=5,
)
POLICIES = st.lists(
    st.tuples(st.sampled_from(["permit", "permit", "forbid"]), CONDITIONS, st.booleans()),
    min_size=1,
    max_size=4,
)


def written(parts: list[tuple[str, str, bool]]) -> str:
    asked = '@approval("operator")'
    return "".join(
        f'@id("p{n}") {asked if asks and effect == "permit" else ""}\n'
        f"{effect} (principal, {EXPORT} when {{ {condition} }};\n"
        for n, (effect, condition, asks) in enumerate(parts)
    )


def calls(policy: CedarPolicy) -> list[dict[str, Any]]:
    """Every call there is, as far as these conditions can tell them apart."""
    [listing] = [one for one in policy.catalog.list() if one.tool.contract.tool == "bank.export"]
    contract = listing.tool.contract
    arguments = [
        {"table": table, **limit, **region}
        for table, limit, region in product(
            ("ab", "a", "b", "x"), ({}, {"limit": 5}, {"limit": 6}), ({}, {"region": "eu"})
        )
    ]
    hours = (7, 8, 12)
    return [
        {
            "principal": "ana/bot",
            "tenant": "default",
            "user": "ana",
            "agent": "bot",
            "roles": roles,
            "trust": trust,
            "trusted": trust >= 50,
            "tool": contract.tool,
            "version": contract.version,
            "digest": contract.digest,
            "environment": environment,
            "at": 1_772_582_400.0 + 3600 * hour,
            "floor": "none",
            "left_to_policy": False,
            "preview": False,
            "safety_mode": "normal",
            "has_task": False,
            "has_session": False,
            "labels": labels,
            "arguments": given_,
            "left_out": [],
        }
        for roles, trust, environment, labels, given_, hour in product(
            ([], ["r"], ["s"]), (50, 51), ("dev", "prod"), ([], ["c"], ["d"]), arguments, hours
        )
    ]


def decided(judged: Judgement) -> tuple[bool, object]:
    return judged.allow, union(p.duties for p in judged.policies) if judged.allow else None


@requirement("POL-1")
@settings(max_examples=25, deadline=None)
@given(POLICIES, st.randoms(use_true_random=False))
def test_whatever_is_called_unreachable_or_redundant_makes_no_difference_to_any_call(
    parts: list[tuple[str, str, bool]], chance: Any
) -> None:
    whole = built(written(parts))
    useless = {
        one.policy
        for one in examine(whole, Environment.DEV).findings
        if one.kind in ("unreachable", "redundant")
    }
    tried = chance.sample(calls(whole), 150)
    for id in useless:
        left = [part if f"p{n}" != id else ("forbid", "false", False) for n, part in enumerate(parts)]
        without = built(written(left))
        for known in tried:
            assert decided(whole.judge(known)) == decided(without.judge(known)), (id, known)
