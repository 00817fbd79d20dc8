"""Is a call decided the same whether or not one like it was decided before?"""

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from holdfast import Gateway
from holdfast.model.call import Decision
from holdfast.policy import CedarPolicy
from tests.policy.case import WEDNESDAY, Case, bank, cases, cedar, judged
from tests.requirements import requirement

CASES = cases()
NOTE = Case(
    case="note",
    tool="bank.note",
    arguments={"account": "a", "text": "b"},
    decision="allow",
    policies=["notes"],
)


def without_id(decision: Decision) -> Decision:
    return decision._replace(id="")


def fresh(gateway: Gateway) -> CedarPolicy:
    """The same policies, with nothing remembered."""
    known = cedar(gateway)
    return CedarPolicy(known.bundle, known.catalog, known._ids, threshold=known.threshold, roles=known._roles)


@requirement("POL-1", "POL-7")
async def test_in_whatever_order_calls_come_each_is_decided_as_if_it_were_the_first() -> None:
    order = [*CASES, *CASES]
    Random(7).shuffle(order)
    async with bank() as gateway:
        for case in order:
            call = await judged(gateway, case)
            assert without_id(fresh(gateway).decide(call)) == without_id(call.decision), case.case


@requirement("POL-7")
async def test_every_decision_has_an_id_and_facts_of_its_own() -> None:
    async with bank() as gateway:
        calls = [
            await judged(gateway, replace(NOTE, arguments={"account": "a", "text": text})) for text in "xyz"
        ]
    assert len({call.decision.id for call in calls}) == 3
    assert [(call.decision.facts or {})["arguments"]["text"] for call in calls] == ["x", "y", "z"]


@requirement("POL-1")
async def test_whatever_else_is_known_of_the_caller_is_part_of_the_decision() -> None:
    others: list[dict[str, Any]] = [
        {"user": "eve"},
        {"agent": "other"},
        {"tenant": "else"},
        {"roles": ["guest"]},
        {"trust": 3},
        {"environment": "prod"},
        {"task": "t"},
        {"at": WEDNESDAY + timedelta(hours=11)},
    ]
    async with bank() as gateway:
        await judged(gateway, NOTE)
        for other in others:
            call = await judged(gateway, replace(NOTE, **other))
            facts = call.decision.facts or {}
            expected = fresh(gateway).decide(call)
            assert without_id(call.decision) == without_id(expected)
            assert facts != {}
            for name, value in other.items():
                assert facts.get(name, value) == (value.timestamp() if name == "at" else value)


@requirement("POL-1")
async def test_roles_that_a_person_gets_count_from_the_next_call_on() -> None:
    held: dict[str, frozenset[str]] = {}
    async with bank() as gateway:
        known = cedar(gateway)
        policy = CedarPolicy(
            known.bundle, known.catalog, known._ids, roles=lambda p: held.get(p.user, frozenset())
        )
        call = await judged(gateway, NOTE)
        before = policy.decide(call)
        held["ana"] = frozenset({"guest"})
        after = policy.decide(call)
    assert (before.facts or {})["roles"] == []
    assert (after.facts or {})["roles"] == ["guest"]


@requirement("DEC-6")
async def test_an_argument_that_no_policy_reads_is_not_asked_about_again() -> None:
    async with bank() as gateway:
        policy = cedar(gateway)
        own = policy.shard("bank.note")
        assert own.looks_at is not None
        assert "text" not in own.looks_at
        await judged(gateway, NOTE)
        asked = len(policy._judged)
        for text in "xyz":
            await judged(gateway, replace(NOTE, arguments={"account": "a", "text": text}))
        assert len(policy._judged) == asked
