"""Is a whole plan approved once, and used step by step for exactly what was shown?"""

import asyncio
from typing import Any

import orjson
import pytest

from holdfast import Code, Gateway, Status
from holdfast.gateway.plans import Planned, Wish
from holdfast.model.errors import NotFound
from holdfast.model.packet import EVIDENCE
from tests.approvals.bank import ANA, BEN, CAT, MALLORY, config
from tests.approvals.opening import House
from tests.approvals.shop import OtherShop, Shop, accepted, refund
from tests.requirements import requirement

REFUND = Wish(tool="test.refund", arguments={"order": "o-1", "amount": 10})
LETTER = Wish(
    tool="test.write",
    arguments={
        "to": {"$any": {"domain": "example.com"}, "like": "mira@example.com"},
        "text": {"$any": {"longest": 200}, "like": "your money is on its way"},
    },
)


async def planned(gateway: Gateway, *steps: Wish, **said: Any) -> Planned:
    """A plan that ben said yes to."""
    seen = await gateway.plans.propose(ANA, steps or (REFUND, LETTER), **said)
    assert seen.approval is not None, seen
    await gateway.decide(BEN, seen.approval.id, True)
    return seen


async def write(gateway: Gateway, key: str, to: str, text: str = "hello", **said: Any) -> Any:
    return await gateway.call("test.write", {"to": to, "text": text}, key=key, principal=ANA, **said)


@requirement("APR-8", "NAM-4", "POL-3")
async def test_a_plan_is_asked_about_once_and_each_step_is_used_once(house: House) -> None:
    shop = Shop()
    async with house.gateway(shop, config=config()) as gateway:
        asked = await gateway.plans.propose(ANA, (REFUND, LETTER), task="t-1")
        [question] = await gateway.approvals(BEN)
        await gateway.decide(BEN, question.id, True)
        assert asked.plan is not None
        done = [await refund(gateway, "k-1"), await write(gateway, "k-2", "ana@example.com")]
        again = await refund(gateway, "k-3")
        now = await gateway.plans.get(ANA, asked.plan.id)
    assert [seen.status for seen in (*done, again)] == [Status.DONE, Status.DONE, Status.HELD]
    assert done[0].grant["scope"] == f"plan:{asked.plan.id}#1"
    assert done[0].grant["granted_by"] == "ben"
    assert [step.call_id for step in now.steps] == [seen.call_id for seen in done]
    assert now.state(house.clock.now()) == "used up"
    intents = [orjson.loads(r.body)["approval_id"] for r in house.records() if r.kind == "intent"]
    assert [name for name in intents if name] == [f"{asked.plan.id}#1", f"{asked.plan.id}#2"]


@requirement("APR-8", "APR-1")
async def test_the_packet_shows_every_step_with_targets_prediction_cost_and_digests(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        await gateway.plans.propose(ANA, (REFUND, LETTER), task="t-1")
        [question] = await gateway.approvals(BEN)
        [own] = await gateway.approvals(ANA)
    packet = question.packet
    first, second = packet["steps"]
    assert (first["action"], first["arguments"]) == ("test.refund@1.0.0", {"order": "o-1", "amount": 10})
    assert second["arguments"]["to"] == {"$any": "an address at example.com", "like": "mira@example.com"}
    assert packet["after"]["state"] == {"1. test.balance": {"refunded": 0}}
    assert (packet["cost"]["amount"], packet["task"], dict(question.need)) == (0.5, "t-1", {"operator": 1})
    assert len({first["contract_digest"], second["contract_digest"]}) == 2
    assert (first["fingerprint"] is None, second["fingerprint"] is None) == (False, True)
    assert "/steps/1/arguments/to/like" in packet["agent_written"]
    assert set(EVIDENCE).isdisjoint(own.packet)


@requirement("APR-8")
async def test_what_is_wrong_with_any_step_is_told_at_once_and_nobody_is_asked(house: House) -> None:
    steps = (
        REFUND,
        Wish(tool="test.refund", arguments={"order": 7}),
        Wish(tool="test.nothing", arguments={}),
        Wish(tool="test.write", arguments={"to": {"$any": {"domain": "example.com"}}, "text": "x"}),
        Wish(
            tool="test.write", arguments={"to": {"$any": {"domain": "a.com"}, "like": "x@b.com"}, "text": ""}
        ),
    )
    async with house.gateway(Shop(), config=config()) as gateway:
        seen = await gateway.plans.propose(ANA, steps)
        open_ = await gateway.approvals(BEN)
    assert (seen.status, seen.plan, list(open_)) == ("refused", None, [])
    assert [step.code for step in seen.steps] == [
        None,
        Code.TYPE_MISMATCH,
        Code.TOOL_NOT_FOUND,
        Code.STRUCTURAL_VIOLATION,
        Code.STRUCTURAL_VIOLATION,
    ]


@requirement("APR-8")
async def test_a_plan_that_costs_more_than_it_may_is_refused(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        seen = await gateway.plans.propose(ANA, (REFUND, REFUND), cost=0.9)
    assert (seen.status, seen.plan) == ("refused", None)


@requirement("APR-8")
async def test_a_plan_of_reads_needs_nobody(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        seen = await gateway.plans.propose(ANA, (Wish(tool="test.balance", arguments={"order": "o-1"}),))
    assert (seen.status, seen.approval) == ("unneeded", None)


@requirement("APR-8", "APR-9")
async def test_a_step_that_a_rule_stands_for_is_not_asked_about_again(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        rule = await accepted(gateway)
        alone = await gateway.plans.propose(ANA, (REFUND,))
        both = await gateway.plans.propose(ANA, (REFUND, LETTER))
    assert (alone.status, alone.steps[0].rule) == ("unneeded", rule.id)
    assert [dict(step.need) for step in both.steps] == [{}, {"operator": 1}]


@requirement("APR-8")
async def test_drift_is_asked_about_alone_and_the_other_steps_keep_their_grant(house: House) -> None:
    shop = Shop()
    async with house.gateway(shop, config=config()) as gateway:
        seen = await planned(gateway)
        assert seen.plan is not None
        drifted = await refund(gateway, "k-1", amount=11, plan=seen.plan.id)
        letter = await write(gateway, "k-2", "mira@example.org")
        kept = [await refund(gateway, "k-3"), await write(gateway, "k-4", "mira@example.com")]
    assert (drifted.status, letter.status) == (Status.HELD, Status.HELD)
    assert any("does not cover this call" in warning for warning in drifted.warnings)
    assert [one.status for one in kept] == [Status.DONE, Status.DONE]
    assert (shop.refunds, shop.letters) == ([("o-1", 10)], [("mira@example.com", "hello")])


@requirement("APR-8", "APR-4")
async def test_a_step_without_effect_is_given_back(house: House) -> None:
    shop = Shop()
    async with house.gateway(shop, config=config()) as gateway:
        await planned(gateway)
        shop.closed = True
        failed = await refund(gateway, "k")
        shop.closed = False
        done, more = await refund(gateway, "k"), await refund(gateway, "k-2")
    assert [failed.status, done.status, more.status] == [Status.FAILED, Status.DONE, Status.HELD]


@requirement("APR-8")
async def test_a_step_is_used_once_however_many_call_it_at_once(house: House) -> None:
    shop = Shop()
    async with (
        house.gateway(shop, config=config()) as one,
        house.gateway(shop, config=config()) as other,
    ):
        await planned(one)
        seen = await asyncio.gather(*(refund((one, other)[n % 2], f"k-{n}") for n in range(10)))
    assert len(shop.refunds) == [s.status for s in seen].count(Status.DONE) == 1
    others = {s.status if s.status is Status.HELD else s.code for s in seen if s.status is not Status.DONE}
    assert others <= {Status.HELD, Code.CONFLICT}


@requirement("APR-8")
@pytest.mark.parametrize("why", ["foreign", "denied", "unanswered", "expired", "revoked"])
async def test_a_plan_that_does_not_stand_covers_nothing(house: House, why: str) -> None:
    async with house.gateway(Shop(), config=config(mallory=[])) as gateway:
        seen = await gateway.plans.propose(ANA, (REFUND,))
        assert seen.approval is not None
        assert seen.plan is not None
        by = MALLORY if why == "foreign" else ANA
        if why in ("foreign", "expired", "revoked"):
            await gateway.decide(BEN, seen.approval.id, True)
        elif why == "denied":
            await gateway.decide(BEN, seen.approval.id, False)
        if why == "expired":
            await house.clock.advance(seen.plan.expires_at - house.clock.now())
        if why == "revoked":
            await gateway.plans.revoke(CAT, seen.plan.id)
        held = await refund(gateway, "k", by=by, plan=seen.plan.id)
    assert held.status is Status.HELD
    assert any(f"no plan '{seen.plan.id}' of yours stands" in warning for warning in held.warnings)


@requirement("APR-8")
async def test_another_contract_voids_a_step(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        await planned(gateway)
    async with house.gateway(OtherShop(), config=config()) as gateway:
        assert (await refund(gateway, "k")).status is Status.HELD
        assert (await write(gateway, "k-2", "mira@example.com")).status is Status.DONE


@requirement("APR-8", "APR-4")
async def test_an_approver_who_lost_the_role_voids_a_plan(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        await planned(gateway)
    async with house.gateway(Shop(), config=config(ben=[])) as gateway:
        assert (await refund(gateway, "k")).status is Status.HELD


@requirement("APR-8")
async def test_whoever_planned_may_not_approve_it_and_others_do_not_see_it(house: House) -> None:
    async with house.gateway(Shop(), config=config(mallory=[])) as gateway:
        seen = await gateway.plans.propose(ANA, (REFUND,))
        assert seen.plan is not None
        assert list(await gateway.plans.list(MALLORY)) == []
        with pytest.raises(NotFound):
            await gateway.plans.revoke(MALLORY, seen.plan.id)
        assert [plan.id for plan in await gateway.plans.list(ANA)] == [seen.plan.id]
