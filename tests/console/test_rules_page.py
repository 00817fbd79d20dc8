"""Are rules and plans seen, asked for, and ended here, by those who may and by nobody else?"""

import re
from pathlib import Path

import pytest

from holdfast import Gateway, Status
from holdfast.gateway.plans import Wish
from holdfast.model import defaults
from tests.approvals.bank import ANA, BEN, config
from tests.approvals.opening import House
from tests.approvals.shop import OtherShop, Shop, accepted, refund
from tests.console.asking import Page, answered, asked, kept, signed_in, text
from tests.requirements import requirement

PROPOSAL = re.compile(r'name="proposal" value="([0-9a-f]+)"')
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def house() -> House:
    return House("memory", Path())


async def answered_often(gateway: Gateway, order: str = "o-1") -> list[str]:
    """As many approved calls as a proposal needs."""
    ids = []
    for n in range(defaults.RULE_EVIDENCE):
        ids.append(asked(await refund(gateway, f"k-{n}", order, 10 + n)))
        await gateway.decide(BEN, ids[-1], True, "" if n else "fine")
    return ids


@requirement("APR-9", "PPL-2")
async def test_a_rule_is_proposed_with_its_proof_asked_for_and_accepted_by_another(house: House) -> None:
    shop = Shop()
    async with house.gateway(shop, config=config()) as gateway:
        ids = await answered_often(gateway)
        ben, cat = await signed_in(gateway, "ben", "cat")
        page = await ben.get("/rules")
        found = PROPOSAL.search(page.body.decode())
        assert found is not None
        said = await ben.post("/rules/ask", {"proposal": found[1], "days": "7", "note": "small refunds"})
        question = said.headers["location"].partition("?")[0]
        seen = await cat.get(question)
        yes = await answered(cat, question.rpartition("/")[2])
        free = await refund(gateway, "k-new", "o-1", 12)
        rules = text(await ben.get("/rules"))
        [rule] = await gateway.rules.list(BEN)
    assert all(f'href="/approvals/{id}"' in page.body.decode() for id in ids)  # the proof
    assert f"Would have let through {len(ids)} calls that people approved" in text(page)
    assert "answered in under" in text(page)
    assert (said.status, yes.status) == (303, 303)
    assert "calls like these are made without asking again" in text(seen)
    assert "small refunds" in text(seen)
    assert f'href="/approvals/{ids[0]}"' in seen.body.decode()
    assert free.status is Status.DONE
    assert round((rule.expires_at - rule.at) / 86_400) == 7
    assert f"live 1 of {2 * len(ids)}" in rules


@requirement("APR-9")
async def test_a_proposal_that_changed_meanwhile_asks_nobody(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        await answered_often(gateway)
        [ben] = await signed_in(gateway, "ben")
        found = PROPOSAL.search((await ben.get("/rules")).body.decode())
        assert found is not None
        last = asked(await refund(gateway, "k-last", "o-2", 900))
        await gateway.decide(BEN, last, True)
        said = await ben.post("/rules/ask", {"proposal": found[1]})
        rules = await gateway.rules.list(BEN)
    assert (said.status, list(rules)) == (409, [])


@requirement("APR-9")
async def test_a_rule_is_ended_at_once_and_only_by_who_may(house: House) -> None:
    people = config()
    async with house.gateway(Shop(), config=people) as gateway:
        rule = await accepted(gateway)
        ben, dan = await signed_in(gateway, "ben", "dan")
        path = f"/rules/{rule.id}/revoke"
        refused = [await dan.post(path), await ben.post(path, {"csrf": "x"}), await ben.get(path)]
        still = await refund(gateway, "k-1")
        ended = await ben.post(path, {"note": "enough"})
        again = await ben.post(path)
        held = await refund(gateway, "k-2")
        page = text(await ben.get("/rules"))
    assert [one.status for one in refused] == [404, 403, 405]
    assert (still.status, ended.status, again.status, held.status) == (Status.DONE, 303, 409, Status.HELD)
    assert "revoked" in page


@requirement("APR-9", "AUT-6")
async def test_who_does_not_operate_sees_neither_proposals_nor_other_peoples_rules(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        await answered_often(gateway)
        await accepted(gateway)
        [dan] = await signed_in(gateway, "dan")
        page = await dan.get("/rules")
        asked_for = await dan.post("/rules/ask", {"proposal": "x"})
    assert "Proposed by the past" not in text(page)
    assert "test.refund" not in text(page)
    assert asked_for.status == 403


@requirement("APR-8", "PPL-2")
async def test_a_plan_shows_which_calls_were_made_which_are_open_and_which_drifted(tmp_path: Path) -> None:
    house = kept(tmp_path)
    steps = [Wish(tool="test.refund", arguments={"order": f"o-{n}", "amount": n}) for n in (1, 2)]
    async with house.gateway(Shop(), config=config()) as gateway:
        planned = await gateway.plans.propose(ANA, steps)
        assert planned.plan is not None
        await gateway.decide(BEN, planned.plan.approval_id, True)
        done = await refund(gateway, "k", "o-1", 1)
        [ben] = await signed_in(gateway, "ben")
        page = await ben.get(f"/plans/{planned.plan.id}")
    async with house.gateway(OtherShop(), config=config()) as gateway:
        [ben] = await signed_in(gateway, "ben")
        drifted = text(await ben.get(f"/plans/{planned.plan.id}"))
        ended = await ben.post(f"/plans/{planned.plan.id}/revoke", {"note": "no more"})
        over = text(await ben.get(f"/plans/{planned.plan.id}"))
    assert done.status is Status.DONE
    assert "1 of 2 calls were made" in text(page)
    assert f'href="/calls/{done.call_id}"' in page.body.decode()
    assert "used" in text(page)
    assert "open" in text(page)
    assert "drifted" in drifted
    assert (ended.status, "revoked" in over) == (303, True)


@requirement("APR-8", "AUT-6")
async def test_a_plan_of_somebody_else_is_not_there(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        planned = await gateway.plans.propose(ANA, [Wish(tool="test.refund", arguments={"order": "o-1"})])
        assert planned.plan is not None
        [dan] = await signed_in(gateway, "dan")
        path = f"/plans/{planned.plan.id}"
        seen, ended = await dan.get(path), await dan.post(f"{path}/revoke")
        left = await gateway.plans.get(BEN, planned.plan.id)
    assert (seen.status, ended.status, left.ended_at) == (404, 404, None)


@requirement("APR-9", "APR-1")
async def test_what_agents_wrote_stays_text_in_proposals_and_rules(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        await answered_often(gateway, EVIL)
        await accepted(gateway, arguments={"order": {"equals": EVIL}, "amount": {"any": True}}, note=EVIL)
        [ben] = await signed_in(gateway, "ben")
        page = await ben.get("/rules")
        [rule] = await gateway.rules.list(BEN)
        question = await ben.get(f"/approvals/{rule.approval_id}")
    for one in (page, question):
        assert EVIL in text(one)
        assert Page(one).foreign() == []
