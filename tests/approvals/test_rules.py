"""Does a rule that people accepted stand for exactly what they accepted, and no longer than they said?"""

import asyncio
from dataclasses import replace
from typing import Any

import orjson
import pytest

from holdfast import Code, Status
from holdfast.gateway.plans import Wish as Step
from holdfast.gateway.rules import Wish
from holdfast.model import defaults
from holdfast.model.errors import Forbidden, HoldfastError
from tests.approvals.bank import ANA, BEN, CAT, MALLORY, Bank, config, person
from tests.approvals.opening import House
from tests.approvals.shop import SMALL, OtherShop, Shop, accepted, refund
from tests.requirements import requirement


@requirement("APR-9", "NAM-4", "POL-3")
async def test_a_call_that_a_rule_covers_runs_without_a_question_and_says_whose_yes_it_rests_on(
    house: House,
) -> None:
    shop = Shop()
    async with house.gateway(shop, config=config()) as gateway:
        rule = await accepted(gateway, most=5)
        done = await refund(gateway, "k")
        again = await refund(gateway, "k")
        now = await gateway.rules.get(BEN, rule.id)
        open_ = await gateway.approvals(BEN)
    assert (done.status, again.replayed, shop.refunds, list(open_)) == (Status.DONE, True, [("o-1", 10)], [])
    assert done.grant is not None
    assert (done.grant["scope"], done.grant["granted_by"]) == (f"rule:{rule.id}", "ben")
    assert (now.used, now.state(house.clock.now())) == (1, "live")
    intents = [orjson.loads(r.body) for r in house.records() if r.kind == "intent"]
    assert [intent["approval_id"] for intent in intents] == [rule.id]


@requirement("APR-9")
@pytest.mark.parametrize(
    "said",
    [{"amount": 50.01}, {"amount": -1}, {"order": "x-1"}, {"by": MALLORY}],
    ids=["too much", "too little", "another order", "another caller"],
)
async def test_whatever_a_rule_does_not_say_is_asked_about_as_before(
    house: House, said: dict[str, Any]
) -> None:
    async with house.gateway(Shop(), config=config(mallory=[])) as gateway:
        await accepted(gateway)
        seen = await refund(gateway, "k", **said)
    assert (seen.status, seen.code) == (Status.HELD, Code.APPROVAL_REQUIRED)


@requirement("APR-9")
async def test_a_rule_is_nothing_until_as_many_people_accepted_it_as_it_stands_for(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        wish = Wish(tool="test.refund", principals="ana/*", arguments=SMALL, need={"operator": 2})
        rule = await gateway.rules.propose(BEN, wish)
        first = await refund(gateway, "k-1")
        await gateway.rules.accept(BEN, rule.id)
        second = await refund(gateway, "k-2")
        with pytest.raises(HoldfastError, match="already voted"):
            await gateway.rules.accept(BEN, rule.id)
        await gateway.rules.accept(CAT, rule.id)
        third = await refund(gateway, "k-3")
    assert [first.status, second.status, third.status] == [Status.HELD, Status.HELD, Status.DONE]


@requirement("APR-9", "APR-2")
async def test_nobody_accepts_a_rule_for_their_own_calls(house: House) -> None:
    ana = person("ana", "operator", "user")
    async with house.gateway(Shop(), config=config()) as gateway:
        named = await gateway.rules.propose(
            BEN, Wish(tool="test.refund", principals="ana/*", arguments=SMALL)
        )
        with pytest.raises(Forbidden):
            await gateway.rules.accept(ana, named.id)
        anybody = await accepted(gateway, ana, principals="*/*")
        held = await refund(gateway, "k")
        done = await refund(gateway, "m", by=replace(MALLORY, user="dan"))
    assert (held.status, done.status) == (Status.HELD, Status.DONE)
    assert done.grant is not None
    assert done.grant["scope"] == f"rule:{anybody.id}"


@requirement("APR-9")
async def test_an_agent_can_neither_propose_nor_accept_a_rule(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        wish = Wish(tool="test.refund", principals="ana/*", arguments=SMALL)
        with pytest.raises(Forbidden):
            await gateway.rules.propose(ANA, wish)
        rule = await gateway.rules.propose(BEN, wish)
        with pytest.raises(Forbidden):
            await gateway.rules.accept(ANA, rule.id)
        assert (await refund(gateway, "k")).status is Status.HELD


@requirement("APR-9")
async def test_a_rule_ends_by_use_by_time_and_at_once(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        used = await accepted(gateway, most=1)
        assert (await refund(gateway, "k-1")).status is Status.DONE
        assert (await refund(gateway, "k-2")).status is Status.HELD
        short = await accepted(gateway, life_s=60.0)
        assert (await refund(gateway, "k-3")).status is Status.DONE
        await house.clock.advance(61)
        assert (await refund(gateway, "k-4")).status is Status.HELD
        gone = await accepted(gateway)
        assert (await refund(gateway, "k-5")).status is Status.DONE
        await gateway.rules.revoke(CAT, gone.id, "enough")
        assert (await refund(gateway, "k-6")).status is Status.HELD
        now = house.clock.now()
        states = [(await gateway.rules.get(BEN, rule.id)).state(now) for rule in (used, short, gone)]
    assert states == ["used up", "expired", "revoked"]
    acts = [orjson.loads(r.body) for r in house.records() if r.kind == "control"]
    assert [act["id"] for act in acts if act["operation"] == "revoke_rule"] == [gone.id]


@requirement("APR-9")
async def test_many_calls_at_once_use_a_rule_no_more_often_than_it_says(house: House) -> None:
    shop = Shop()
    async with (
        house.gateway(shop, config=config()) as one,
        house.gateway(shop, config=config()) as other,
    ):
        await accepted(one, most=3)
        seen = await asyncio.gather(*(refund((one, other)[n % 2], f"k-{n}") for n in range(12)))
        rules = await one.rules.list(BEN)
    done = [s for s in seen if s.status is Status.DONE]
    assert (len(done), len(shop.refunds), rules[0].used) == (3, 3, 3)
    others = {s.status if s.status is Status.HELD else s.code for s in seen if s.status is not Status.DONE}
    assert others <= {Status.HELD, Code.CONFLICT}


@requirement("APR-9", "APR-4")
async def test_a_use_without_effect_is_given_back(house: House) -> None:
    shop = Shop()
    async with house.gateway(shop, config=config()) as gateway:
        rule = await accepted(gateway, most=1)
        shop.closed = True
        failed = await refund(gateway, "k")
        assert (await gateway.rules.get(BEN, rule.id)).used == 0
        shop.closed = False
        done = await refund(gateway, "k")
        now = await gateway.rules.get(BEN, rule.id)
    assert (failed.status, done.status, now.used) == (Status.FAILED, Status.DONE, 1)


@requirement("APR-9")
async def test_a_call_held_again_and_cancelled_gives_no_use_back_twice(house: House) -> None:
    shop = Shop()
    async with house.gateway(shop, config=config()) as gateway:
        rule = await accepted(gateway, most=2)
        await refund(gateway, "other")
        shop.closed = True
        failed = await refund(gateway, "k")
        await gateway.rules.revoke(BEN, rule.id)
        held = await refund(gateway, "k")
        assert held.status is Status.HELD
        await gateway.cancel(ANA, failed.call_id)
        assert (await gateway.rules.get(BEN, rule.id)).used == 1


@requirement("APR-9")
async def test_another_contract_voids_a_rule(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        await accepted(gateway)
    async with house.gateway(OtherShop(), config=config()) as gateway:
        assert (await refund(gateway, "k")).status is Status.HELD


@requirement("APR-9")
async def test_an_acceptor_who_lost_the_role_voids_a_rule(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        await accepted(gateway)
    async with house.gateway(Shop(), config=config(ben=[])) as gateway:
        assert (await refund(gateway, "k")).status is Status.HELD


@requirement("APR-9")
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"principals": "ana"}, "names nobody"),
        ({"life_s": defaults.MOST_RULE_S + 1}, "days"),
        ({"most": 0}, "at least 1"),
        ({"arguments": {"colour": {"any": True}}}, "takes no argument"),
        ({"arguments": {"amount": {"below": 3}}}, "no constraint is called"),
        ({"arguments": {"amount": {"at_most": "3"}}}, "a number"),
        ({"need": {"operator": 0}}, "how many people"),
        ({"need": {"user": 1}, "principals": "*/*"}, "one person"),
        ({"need": {"compliance": 1}}, "compliance"),
    ],
)
async def test_a_rule_that_could_not_be_explained_or_accepted_is_not_proposed(
    house: House, said: dict[str, Any], why: str
) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        with pytest.raises(HoldfastError, match=why):
            await accepted(gateway, **said)
        assert list(await gateway.rules.list(BEN)) == []


@requirement("APR-9", "CON-6")
async def test_what_nobody_may_see_stands_in_no_rule_and_no_plan(house: House) -> None:
    secret: dict[str, dict[str, Any]] = {"order": {"any": True}, "password": {"equals": "hunter2"}}
    async with house.gateway(Bank(), config=config()) as gateway:
        with pytest.raises(HoldfastError, match="shown to nobody"):
            await gateway.rules.propose(BEN, Wish(tool="test.pay", principals="ana/*", arguments=secret))
        step: dict[str, Any] = {"order": "o-1", "password": {"$any": {"one_of": ["hunter2"]}}}
        seen = await gateway.plans.propose(ANA, (Step(tool="test.pay", arguments=step),))
        assert (seen.status, seen.steps[0].code) == ("refused", Code.STRUCTURAL_VIOLATION)
        step["password"] = "hunter2"
        await gateway.plans.propose(ANA, (Step(tool="test.pay", arguments=step),))
        [asked] = await gateway.approvals(BEN)
    assert "hunter2" not in str(asked.packet)
    assert not any("hunter2" in record.body for record in house.records())


@requirement("APR-9")
async def test_history_proposes_what_was_approved_and_never_what_was_denied(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        for n, (amount, yes) in enumerate([(5, True), (20, True), (45, True), (300, False)]):
            held = await refund(gateway, f"k-{n}", f"o-{n}", amount)
            assert held.approval is not None
            await house.clock.advance(2 if n else 30)
            await gateway.decide(BEN, held.approval.id, yes, "" if n else "looked at it")
        found, tired = await gateway.rules.proposals(CAT, house.clock.now() - 86_400)
        [best] = found
        rule = await gateway.rules.propose(
            CAT, Wish(tool=best.tool, principals=best.principals, arguments=best.arguments, need=best.need)
        )
        packet = (await gateway.approvals(CAT))[0].packet
        await gateway.rules.accept(CAT, rule.id)
        inside, outside = await refund(gateway, "i", "o-2", 40), await refund(gateway, "o", "o-2", 299)
    assert best.arguments["amount"] == {"at_least": 5, "at_most": 45}
    assert (len(best.proof.approved), best.proof.denied, best.principals) == (3, (), "ana/bot")
    assert len(packet["proof"]["approved"]) == 3
    assert (inside.status, outside.status) == (Status.DONE, Status.HELD)
    assert (tired.asked, tired.approved, tired.median_answer_s) == (4, 3, 2.0)
    assert (tired.approved_without_note, tired.answered_quickly) == (0.667, 0.75)


@requirement("APR-9")
async def test_a_rule_that_would_have_admitted_a_denied_call_is_drawn_tighter_or_not_proposed(
    house: House,
) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        for n, (amount, yes) in enumerate([(5, True), (20, True), (45, True), (30, False)]):
            held = await refund(gateway, f"k-{n}", "o-1", amount)
            assert held.approval is not None
            await gateway.decide(BEN, held.approval.id, yes)
        found, _ = await gateway.rules.proposals(CAT, 0.0)
    assert [sorted(one.arguments["amount"]["one_of"]) for one in found] == [[5, 20, 45]]


@requirement("APR-9")
async def test_only_an_operator_sees_what_history_proposes(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        with pytest.raises(Forbidden):
            await gateway.rules.proposals(person("dan", "user"), 0.0)
