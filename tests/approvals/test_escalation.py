"""Is a question that nobody answers put to more people, and denied in the end?"""

import json

import pytest

from holdfast import Code
from holdfast.model import defaults
from holdfast.model.approval import Answer, Approval, due_level
from holdfast.model.errors import Forbidden
from holdfast.model.operation import OperationRef
from tests.approvals.bank import BEN, CAT, Bank, config, pay, person
from tests.approvals.opening import House
from tests.requirements import requirement

CHAIN = [["operator"], ["lead"], ["head"]]
LIA, HAL = person("lia", "lead"), person("hal", "head")
PEOPLE = config({"chain": CHAIN}, lia=["lead"], hal=["head"])
LIFE = defaults.APPROVAL_S


def asked(life: float = 100.0) -> Approval:
    return Approval(
        id="a", ref=OperationRef("t", "u/a", "x.y", "k"), call_id="c", fingerprint="f", contract_digest="d",
        need={"operator": 1}, answer=Answer.PENDING, votes=(), packet={}, created_at=0.0, expires_at=life,
    )  # fmt: skip


@requirement("FIG-1", "APR-3")
@pytest.mark.parametrize(
    ("groups", "levels"),
    [
        (1, [(0, 0), (50, 0), (99, 0)]),
        (2, [(49, 0), (50, 1), (99, 1)]),
        (3, [(49, 0), (50, 1), (74, 1), (75, 2), (99, 2)]),
        (4, [(50, 1), (66, 1), (67, 2), (83, 2), (84, 3), (99, 3)]),
    ],
)
def test_the_second_group_is_asked_at_half_time_and_the_others_evenly_after(
    groups: int, levels: list[tuple[float, int]]
) -> None:
    chain = tuple((f"role-{n}",) for n in range(groups))
    assert [(at, due_level(asked(), at, chain)) for at, _ in levels] == levels


@requirement("APR-3")
async def test_escalation_widens_who_may_answer_and_is_on_record(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=PEOPLE) as gateway:
        held = await pay(gateway)
        assert held.approval is not None
        id = held.approval.id
        with pytest.raises(Forbidden):
            await gateway.decide(LIA, id, True)
        assert list(await gateway.approvals(LIA)) == []
        await house.clock.advance(LIFE / 2)
        await gateway.tidy()
        await gateway.tidy()
        assert [a.id for a in await gateway.approvals(LIA)] == [id]
        with pytest.raises(Forbidden):
            await gateway.decide(HAL, id, True)
        first = await gateway.decide(LIA, id, True)
        assert [(v.person, v.role, v.via) for v in first.votes] == [("lia", "operator", "lead")]
        await house.clock.advance(LIFE / 4)
        second = await gateway.decide(HAL, id, True)  # nobody swept: it is due all the same
        assert (second.answer, second.level) == (Answer.APPROVED, 2)
        done = await pay(gateway)
    assert (done.code, bank.paid) == (None, ["o-1"])
    steps = [json.loads(r.body) for r in house.records() if r.kind == "escalate"]
    assert [(s["level"], s["to"]) for s in steps] == [(1, ["lead"]), (2, ["head"])]


@requirement("APR-2", "APR-4")
async def test_a_stand_in_who_lost_the_role_voids_the_vote_too(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=PEOPLE) as gateway:
        held = await pay(gateway)
        assert held.approval is not None
        await house.clock.advance(LIFE / 2)
        await gateway.decide(LIA, held.approval.id, True)
        await gateway.decide(BEN, held.approval.id, True)
    async with house.gateway(bank, config=config({"chain": CHAIN}, hal=["head"], lia=[])) as gateway:
        refused = await pay(gateway)
    assert (refused.code, bank.paid) == (Code.APPROVAL_DENIED, [])
    assert "'lia' no longer holds 'lead'" in (refused.message or "")


@requirement("APR-3")
async def test_what_nobody_answers_is_denied_by_the_sweep(house: House) -> None:
    async with house.gateway(Bank(), config=PEOPLE) as gateway:
        held = await pay(gateway)
        assert held.approval is not None
        await house.clock.advance(LIFE)
        await gateway.tidy()
        answers = [json.loads(r.body) for r in house.records() if r.kind == "vote"]
        await gateway.tidy()
        after = await gateway._ports.approvals.get("default", held.approval.id)
        found = await gateway.find(BEN, held.call_id)
        again = await pay(gateway)
    assert [(a["operation"], a["answer"]) for a in answers] == [("expire", "AUTO_DENIED")]
    assert after is not None
    assert after.answer is Answer.AUTO_DENIED
    assert found is not None
    assert (found.code, again.code) == (Code.APPROVAL_DENIED, Code.APPROVAL_DENIED)


@requirement("APR-2")
async def test_a_stand_in_does_not_answer_for_roles_outside_the_chain(house: House) -> None:
    from tests.approvals.test_security import Asking

    people = config({"chain": CHAIN}, lia=["lead"], hal=["head"], eve=["compliance"])
    async with house.gateway(Bank(), config=people, policy=Asking(compliance=1)) as gateway:
        held = await pay(gateway)
        assert held.approval is not None
        for by in (BEN, CAT):
            await gateway.decide(by, held.approval.id, True)
        await house.clock.advance(LIFE * 0.9)
        for by in (LIA, HAL):
            with pytest.raises(Forbidden):
                await gateway.decide(by, held.approval.id, True)
        done = await gateway.decide(person("eve", "compliance"), held.approval.id, True)
    assert done.answer is Answer.APPROVED
