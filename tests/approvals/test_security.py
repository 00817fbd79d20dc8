"""Does exactly one execution follow from an approval, and is every attempt at another one on record?"""

import asyncio
import json
from typing import Any

import pytest

from holdfast import Code, Effect, Floor, Status, tool
from holdfast.model import defaults
from holdfast.model.approval import Answer
from holdfast.model.call import Call, Decision
from holdfast.model.errors import Forbidden, HoldfastError, NotFound
from tests.approvals.bank import (
    ANA,
    BEN,
    FOREIGN,
    MALLORY,
    Bank,
    OtherBank,
    approved,
    config,
    pay,
    person,
)
from tests.approvals.opening import House
from tests.requirements import requirement
from tests.spoiled import spoiled


def told(house: House) -> list[str]:
    """What the security events say."""
    return [json.loads(record.body)["alarm"] for record in house.alarms()]


@requirement("APR-4", "IDM-4")
async def test_five_hundred_submissions_at_once_of_one_approved_call_are_one_execution(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        held, _ = await approved(gateway)
        answers = await asyncio.gather(*(pay(gateway) for _ in range(500)))
    assert bank.paid == ["o-1"]
    assert {(a.status, a.call_id) for a in answers} == {(Status.DONE, held.call_id)}
    assert sum(not a.replayed for a in answers) == 1
    assert house.alarms() == []  # asking again is no attack


@requirement("APR-4")
@pytest.mark.parametrize("state", ["held", "approved", "done"])
async def test_one_changed_byte_is_refused_and_on_record(house: House, state: str) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        if state == "held":
            await pay(gateway)
        else:
            await approved(gateway)
        if state == "done":
            await pay(gateway)
        changed = await pay(gateway, order="o-2")
    assert changed.code is Code.KEY_MISMATCH
    assert "o-2" not in bank.paid
    assert len(told(house)) == 1
    assert "another call" in told(house)[0]


@requirement("APR-4", "AUT-6")
@pytest.mark.parametrize("by", [MALLORY, FOREIGN], ids=["principal", "tenant"])
async def test_an_approval_of_one_principal_is_worth_nothing_to_another(house: House, by: Any) -> None:
    bank = Bank()
    people = config(mallory=[])
    people["auth"]["people"] |= {f"{n}-acme": {"roles": ["operator"], "tenant": "acme"} for n in ("x", "y")}
    async with house.gateway(bank, config=people) as gateway:
        _, token = await approved(gateway)
        without = await pay(gateway, by=by)
        with_token = await pay(gateway, by=by, approval_token=token)
    assert without.status is Status.HELD  # a question of their own
    assert (with_token.status, with_token.code) == (Status.REFUSED, Code.APPROVAL_DENIED)
    assert bank.paid == []
    [alarm] = house.alarms()
    assert alarm.tenant == by.tenant
    assert "token was refused" in told(house)[0]


@requirement("APR-4")
async def test_an_approval_of_one_contract_is_worth_nothing_to_another(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        _, token = await approved(gateway)

    other = OtherBank()
    async with house.gateway(other, config=config()) as gateway:
        same_key = await pay(gateway)
        other_key = await pay(gateway, "k2", approval_token=token)
    assert same_key.code is Code.KEY_MISMATCH
    assert other_key.code is Code.APPROVAL_DENIED
    assert bank.paid == other.paid == []
    assert len(house.alarms()) == 2


@requirement("APR-3", "APR-4")
async def test_an_approval_used_too_late_is_refused_and_on_record(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        _, token = await approved(gateway)
        await house.clock.advance(defaults.APPROVAL_S)
        late = await pay(gateway)
        later = await pay(gateway, approval_token=token)
    assert (late.code, later.code) == (Code.APPROVAL_DENIED, Code.APPROVAL_DENIED)
    assert bank.paid == []
    assert len(told(house)) == 2
    assert all("expired" in alarm for alarm in told(house))


@requirement("APR-4")
@pytest.mark.parametrize("forge", ["nonsense", "flipped", "for another key", "too long", "plan"])
async def test_a_forged_token_is_refused_even_where_the_approval_is_good(house: House, forge: str) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        _, token = await approved(gateway)
        _, other = await approved(gateway, "k2", note="other")
        plan = await gateway.call("test.pay", {"order": "o-1"}, principal=ANA, preview=True)
        assert plan.preview is not None
        forged = {
            "nonsense": "yes please",
            "flipped": spoiled(token),
            "for another key": other,
            "too long": token + "=" * 5000,
            "plan": plan.preview["plan_token"],
        }[forge]
        refused = await pay(gateway, approval_token=forged)
        paid_before = list(bank.paid)
        good = await pay(gateway, approval_token=token)
    assert (refused.code, paid_before) == (Code.APPROVAL_DENIED, [])
    assert (good.status, bank.paid) == (Status.DONE, ["o-1"])
    assert len(told(house)) == 1
    assert "token was refused" in told(house)[0]


@requirement("APR-4")
async def test_a_token_alone_is_no_approval(house: House) -> None:
    """The grant is in the store: a token for a call that nobody may make any more opens nothing."""
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        _, token = await approved(gateway)
        await pay(gateway)
        again = await pay(gateway, approval_token=token)
    assert (again.replayed, bank.paid) == (True, ["o-1"])


@requirement("APR-2")
async def test_whoever_answers_without_the_right_to_is_on_record(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        held = await pay(gateway)
        assert held.approval is not None
        for nobody in (person("ana", "operator"), person("dan"), person("dan", "user")):
            with pytest.raises(Forbidden):
                await gateway.decide(nobody, held.approval.id, True)
        with pytest.raises(NotFound):
            await gateway.decide(person("eve", "operator", tenant="acme"), held.approval.id, True)
        assert (await pay(gateway)).status is Status.HELD
    events = [(r.tenant, json.loads(r.body)["caller"]) for r in house.alarms()]
    assert sorted(events) == [("acme", "eve"), ("default", "ana"), ("default", "dan"), ("default", "dan")]
    assert "their own question" in told(house)[0]
    assert bank.paid == []


@requirement("APR-2", "APR-4")
async def test_a_role_taken_away_after_approving_voids_the_vote(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        held, token = await approved(gateway)
    async with house.gateway(bank, config=config(cat=[])) as gateway:
        refused = [await pay(gateway), await pay(gateway, approval_token=token)]
    assert [r.code for r in refused] == [Code.APPROVAL_DENIED] * 2
    assert "'cat' no longer holds 'operator'" in (refused[0].message or "")
    assert (bank.paid, len(house.alarms())) == ([], 2)
    async with house.gateway(bank, config=config()) as gateway:  # given back: the answer stands again
        done = await pay(gateway)
    assert (done.status, done.call_id, bank.paid) == (Status.DONE, held.call_id, ["o-1"])


class Asking:
    """A policy that asks for what the test says."""

    version = "1"

    def __init__(self, **need: int) -> None:
        self.need = need

    def decide(self, call: Call) -> Decision:
        return Decision(id="pd_1", allow=True, need=self.need, version=self.version)


@requirement("APR-2", "APR-4")
async def test_a_need_that_rose_since_the_question_voids_its_answer(house: House) -> None:
    bank = Bank()
    people = config(eve=["compliance"])
    async with house.gateway(bank, config=people, policy=Asking()) as gateway:
        await approved(gateway)
    async with house.gateway(bank, config=people, policy=Asking(compliance=1)) as gateway:
        refused = await pay(gateway)
        asked = await pay(gateway, "k2")
    assert (refused.code, bank.paid) == (Code.APPROVAL_DENIED, [])
    assert "more approval is needed" in (refused.message or "")
    assert "rose" in told(house)[0]
    assert "1 x compliance" in (asked.message or "")


@requirement("APR-2")
async def test_needs_are_joined_by_union_and_everybody_counts_once(house: House) -> None:
    bank = Bank()
    people = config(eve=["compliance", "operator"], fay=["compliance"])
    async with house.gateway(bank, config=people, policy=Asking(compliance=1, operator=1)) as gateway:
        held = await pay(gateway)
        assert held.approval is not None
        id = held.approval.id
        eve, fay = person("eve", "compliance", "operator"), person("fay", "compliance")
        first = await gateway.decide(BEN, id, True)
        assert first.need == {"operator": 2, "compliance": 1}
        second = await gateway.decide(eve, id, True)
        assert (second.answer, second.missing) == (Answer.PENDING, {"compliance": 1})
        with pytest.raises(HoldfastError, match="already voted"):
            await gateway.decide(eve, id, True)
        third = await gateway.decide(fay, id, True)
        assert third.answer is Answer.APPROVED
        done = await pay(gateway)
    assert (done.status, bank.paid) == (Status.DONE, ["o-1"])


@requirement("APR-4")
async def test_an_approval_that_came_to_nothing_is_given_back_and_serves_once(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        await approved(gateway)
        bank.locked = True
        failed = [await pay(gateway) for _ in range(3)]
        bank.locked = False
        done = await asyncio.gather(*(pay(gateway) for _ in range(5)))
    assert {f.status for f in failed} == {Status.FAILED}
    assert {d.status for d in done} == {Status.DONE}
    assert bank.paid == ["o-1"]


@requirement("APR-4")
async def test_consent_to_a_read_serves_once_and_its_second_use_is_on_record(house: House) -> None:
    reads: list[str] = []

    @tool(effect=Effect.READ_ONLY, floor=Floor.OPERATOR)
    async def diary(day: str) -> str:
        """Read a diary."""
        reads.append(day)
        return day

    async with house.gateway([diary], config=config()) as gateway:
        held = await gateway.call("test.diary", {"day": "mon"}, key="k", principal=ANA)
        assert held.approval is not None
        await gateway.decide(BEN, held.approval.id, True)
        seen = [await gateway.call("test.diary", {"day": "mon"}, key="k", principal=ANA) for _ in range(2)]
    assert (seen[0].status, seen[1].code, reads) == (Status.DONE, Code.APPROVAL_DENIED, ["mon"])
    assert "used before" in told(house)[0]


@requirement("APR-4")
async def test_open_questions_are_capped_per_task(house: House) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        for n in range(defaults.OPEN_ASKS_TASK):
            held = await pay(gateway, f"k{n}", task="flood")
            assert held.status is Status.HELD
        capped = await pay(gateway, "more", task="flood")
        other = await pay(gateway, "else", task="calm")
    assert (capped.code, other.status) == (Code.RATE_LIMITED, Status.HELD)
    assert "task 'flood' has 20 open questions" in (capped.message or "")
