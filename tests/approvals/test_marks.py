"""Does every store tell when a question moved, and how a caller's questions were answered?"""

from holdfast.model import defaults
from holdfast.model.approval import Answer
from tests.approvals.bank import ANA, BEN, CAT, FOREIGN, Bank, config, pay
from tests.approvals.opening import House
from tests.requirements import requirement


@requirement("PPL-2", "APR-5")
async def test_a_mark_moves_with_every_question_vote_escalation_and_end(house: House) -> None:
    people = config({"chain": [["operator"], ["lead"]]}, leo=["lead"])
    people["auth"]["people"] |= {f"{n}-acme": {"roles": ["operator"], "tenant": "acme"} for n in ("x", "y")}
    async with house.gateway(Bank(), config=people) as gateway:
        kept = gateway._ports.approvals
        marks = [await kept.mark("default")]

        async def moved() -> None:
            marks.append(await kept.mark("default"))

        held = await pay(gateway)
        assert held.approval is not None
        await moved()
        await gateway.decide(BEN, held.approval.id, True)
        await moved()
        await house.clock.advance(defaults.APPROVAL_S * 0.6)
        await gateway.approvals(CAT)  # escalates
        await moved()
        await house.clock.advance(defaults.APPROVAL_S)
        await moved()
        still = await kept.mark("default")
        await pay(gateway, by=FOREIGN)
        elsewhere = await kept.mark("default")
    assert len(set(marks[:4])) == 4
    assert marks[4] == marks[0]  # nothing waits, as before
    assert still == elsewhere == marks[4]


@requirement("APR-9", "PPL-2")
async def test_answers_are_counted_by_caller_and_tool(house: House) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        since = house.clock.now()
        for n, answers in enumerate(((True, True), (False,), ())):
            held = await pay(gateway, f"k{n}")
            assert held.approval is not None
            for who, approve in zip((BEN, CAT), answers, strict=False):
                await gateway.decide(who, held.approval.id, approve)
        kept = gateway._ports.approvals
        open_still = dict(await kept.tally("default", ANA.id, "test.pay", since))
        await house.clock.advance(defaults.APPROVAL_S)
        await gateway.tidy()
        counted = dict(await kept.tally("default", ANA.id, "test.pay", since))
        nobody = dict(await kept.tally("default", "dan/bot", "test.pay", since))
        later = dict(await kept.tally("default", ANA.id, "test.pay", since + 1))
    assert open_still == {Answer.APPROVED: 1, Answer.DENIED: 1}
    assert counted == {Answer.APPROVED: 1, Answer.DENIED: 1, Answer.AUTO_DENIED: 1}
    assert nobody == later == {}
