"""Does the page of a question say what will happen, and does every way around it fail here too?"""

import asyncio
import json
from pathlib import Path

import pytest

from holdfast import Effect, Floor, Gateway, Principal, Status, tool
from holdfast.approvals.about import about
from holdfast.gateway.plans import Wish
from holdfast.identity.keys import hash_chosen
from holdfast.model import defaults
from holdfast.model.approval import Answer
from holdfast.model.standing import PLAN
from holdfast.servers.app import build
from tests.approvals.bank import ANA, BEN, Bank, config, pay
from tests.approvals.opening import House
from tests.approvals.shop import Shop
from tests.approvals.test_security import Asking
from tests.console.asking import SEEN, Page, Visitor, answered, asked, kept, seen, signed_in, text
from tests.requirements import requirement

RELEASING = config({"release": "gateway"})


@pytest.fixture
def house() -> House:
    return House("memory", Path())


def told(house: House) -> list[str]:
    """What the security events say."""
    return [json.loads(record.body)["alarm"] for record in house.alarms()]


async def votes(gateway: Gateway, id: str) -> list[tuple[str, bool]]:
    found = await gateway.approval(BEN, id)
    assert found is not None
    return [(vote.person, vote.approve) for vote in found.votes]


async def released(gateway: Gateway) -> None:
    while gateway._house._releasing:
        await asyncio.wait(gateway._house._releasing)


# --- what it says -------------------------------------------------------------------------


@requirement("PPL-2", "APR-1")
async def test_a_question_says_what_happens_to_whom_and_that_it_cannot_be_undone(house: House) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        id = asked(await pay(gateway, to="Mira Sand", task="ticket 7"))
        [ben] = await signed_in(gateway, "ben")
        page = await ben.get(f"/approvals/{id}")
    said = text(page)
    assert page.status == 200
    assert "Money leaves the bank" in said  # what
    assert "create payments (order)" in said
    assert "Mira Sand" in said  # to whom
    assert "No: it cannot be undone" in said
    assert "pay back by hand" in said
    assert "2 x operator" in said
    assert "ben, cat" in said
    assert "Costs 0.25 USD per call" in said
    assert "ticket 7" in said
    assert "first question of this caller" in said
    assert "0815-canary" not in said  # what nobody may see


@requirement("PPL-2", "APR-1")
async def test_what_changes_is_shown_field_by_field(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        first = await gateway.call("test.refund", {"order": "o-1", "amount": 4}, key="a", principal=ANA)
        await gateway.decide(BEN, asked(first), True)
        await gateway.call("test.refund", {"order": "o-1", "amount": 4}, key="a", principal=ANA)
        second = await gateway.call("test.refund", {"order": "o-1", "amount": 5}, key="b", principal=ANA)
        [cat] = await signed_in(gateway, "cat")
        page = text(await cat.get(f"/approvals/{asked(second)}"))
    assert "predicted by test.balance" in page
    assert "refunded 4" in page
    assert "asked 1 time in 30 days for this tool and caller: 1 approved, 0 denied" in page


@requirement("APR-2", "PPL-2")
async def test_whoever_may_not_answer_reads_why_and_finds_no_form(house: House) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        id = asked(await pay(gateway))
        ana, ben, dan = await signed_in(gateway, "ana", "ben", "dan")
        own = await ana.get(f"/approvals/{id}")
        await answered(ben, id)
        again = await ben.get(f"/approvals/{id}")
        hidden = await dan.get(f"/approvals/{id}")
    assert "nobody approves their own call" in text(own)
    assert "Mira Sand" not in text(own)
    assert "you have answered" in text(again).lower()
    assert not SEEN.search(own.body.decode())
    assert not SEEN.search(again.body.decode())
    assert hidden.status == 404


@requirement("APR-2", "PPL-2")
async def test_whose_own_consent_is_missing_reads_where_to_give_it(house: House) -> None:
    @tool(effect=Effect.READ_ONLY, floor=Floor.USER)
    async def diary(day: str) -> str:
        """Read a diary."""
        return day

    people = config()
    people["auth"]["people"]["dan"]["approver_secret"] = hash_chosen("open sesame")
    async with house.gateway([diary], config=people) as gateway:
        asks = [
            asked(await gateway.call("test.diary", {"day": "mon"}, key="k", principal=by))
            for by in (ANA, Principal(user="dan", agent="bot", scopes=frozenset({"**"}), trust=60))
        ]
        [ana] = await signed_in(gateway, "ana")
        page = text(await ana.get(f"/approvals/{asks[0]}"))
        refused = await ana.post(f"/approvals/{asks[0]}/decision", {"decision": "approve", "aware": "yes"})
        dan = Visitor(build(gateway))
        await dan.sign_in("dan", "open sesame")
        given = await answered(dan, asks[1])
    assert "sign in with your approver secret" in page
    assert (refused.status, given.status) == (403, 303)


# --- answering ----------------------------------------------------------------------------


@requirement("APR-2", "APR-4", "PPL-2")
async def test_two_people_in_two_sessions_say_yes_and_the_gateway_pays_once(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=RELEASING) as gateway:
        held = await pay(gateway)
        id = asked(held)
        ben, cat = await signed_in(gateway, "ben", "cat")
        first = await answered(ben, id, note="checked the invoice")
        paid_after_one = list(bank.paid)
        between = text(await cat.get(f"/approvals/{id}"))
        second = await answered(cat, id)
        await released(gateway)
        after = text(await cat.get(f"/approvals/{id}"))
    assert (first.status, first.headers["location"]) == (303, f"/approvals/{id}?done=voted")
    assert (second.status, second.headers["location"]) == (303, f"/calls/{held.call_id}?done=approved")
    assert (paid_after_one, bank.paid) == ([], ["o-1"])
    assert "checked the invoice" in between
    assert "Yours is the last yes" in between
    assert "The call was made with it, once." in after


@requirement("APR-3", "PPL-2")
async def test_one_no_ends_it_and_the_page_says_so(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        id = asked(await pay(gateway))
        [ben] = await signed_in(gateway, "ben")
        said = await answered(ben, id, "deny", aware="", note="not this month")
        page = text(await ben.get(said.headers["location"]))
        again = await pay(gateway)
    assert said.headers["location"] == f"/approvals/{id}?done=denied"
    assert "Denied. Nothing runs" in page
    assert "not this month" in page
    assert (again.status, bank.paid) == (Status.REFUSED, [])


@requirement("APR-2")
async def test_a_yes_for_good_is_said_on_purpose_and_the_server_asks_for_it(house: House) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        id = asked(await pay(gateway))
        [ben] = await signed_in(gateway, "ben")
        unticked = await answered(ben, id, aware="")
        before = await votes(gateway, id)
        ticked = await answered(ben, id)
        after = await votes(gateway, id)
    assert (unticked.status, before) == (409, [])
    assert "you have not said that you read so" in text(unticked)
    assert (ticked.status, after) == (303, [("ben", True)])


# --- every way around it ------------------------------------------------------------------


@requirement("APR-2", "APR-4")
@pytest.mark.parametrize(
    ("who", "status", "alarm"),
    [
        ("ana", 403, "tried to answer their own question"),
        ("dan", 403, "answered without a role that is needed"),
        ("xena", 404, "not of here"),
    ],
    ids=["own call", "no role", "foreign tenant"],
)
async def test_nobody_without_the_right_answers_and_the_attempt_is_on_record(
    house: House, who: str, status: int, alarm: str
) -> None:
    bank = Bank()
    people = config()
    people["auth"]["people"]["xena"] = {"roles": ["operator"], "tenant": "acme"}
    async with house.gateway(bank, config=people) as gateway:
        id = asked(await pay(gateway))
        ben, other = await signed_in(gateway, "ben", who)
        stolen = {"decision": "approve", "aware": "yes", "seen": await seen(ben, id)}
        refused = await other.post(f"/approvals/{id}/decision", stolen)
        voted = await votes(gateway, id)
        again = await pay(gateway)
    assert (refused.status, voted, again.status) == (status, [], Status.HELD)
    assert [text for text in told(house) if alarm in text]
    assert bank.paid == []


@requirement("APR-4")
async def test_a_forged_id_answers_nothing_and_is_on_record(house: House) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        id = asked(await pay(gateway))
        [ben] = await signed_in(gateway, "ben")
        said = {"decision": "approve", "aware": "yes", "seen": await seen(ben, id)}
        forged = await ben.post("/approvals/apr_0000000000000000/decision", said)
        voted = await votes(gateway, id)
    assert (forged.status, voted) == (404, [])
    assert "not of here" in told(house)[0]


@requirement("APR-2", "APR-4")
async def test_the_same_person_and_the_same_form_count_once(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=RELEASING) as gateway:
        id = asked(await pay(gateway))
        [ben] = await signed_in(gateway, "ben")
        said = {"decision": "approve", "aware": "yes", "seen": await seen(ben, id)}
        sent = [await ben.post(f"/approvals/{id}/decision", said) for _ in range(3)]
        other_browser = (await signed_in(gateway, "ben"))[0]
        from_there = await other_browser.post(f"/approvals/{id}/decision", said)
        voted = await votes(gateway, id)
        await released(gateway)
    assert [one.status for one in sent] == [303, 409, 409]
    assert from_there.status == 409
    assert "already voted" in text(from_there)
    assert (voted, bank.paid) == ([("ben", True)], [])


@requirement("APR-3", "APR-4")
async def test_an_answer_after_the_end_counts_for_nothing(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=RELEASING) as gateway:
        id = asked(await pay(gateway))
        [ben] = await signed_in(gateway, "ben")
        said = {"decision": "approve", "aware": "yes", "seen": await seen(ben, id)}
        await house.clock.advance(defaults.APPROVAL_S)
        late = await ben.post(f"/approvals/{id}/decision", said)
        page = await ben.get(f"/approvals/{id}")
        inbox = text(await ben.get("/"))
    assert (late.status, bank.paid) == (409, [])
    assert "Nobody answered in time" in text(page)
    assert not SEEN.search(page.body.decode())
    assert "Nothing waits for you" in inbox


@requirement("APR-4")
async def test_a_yes_after_a_no_counts_for_nothing(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=RELEASING) as gateway:
        id = asked(await pay(gateway))
        ben, cat = await signed_in(gateway, "ben", "cat")
        said = {"decision": "approve", "aware": "yes", "seen": await seen(cat, id)}
        await answered(ben, id, "deny")
        late = await cat.post(f"/approvals/{id}/decision", said)
        again = await pay(gateway)
    assert (late.status, again.status, bank.paid) == (409, Status.REFUSED, [])
    assert "already answered" in text(late)


@requirement("APR-1", "APR-4")
async def test_a_form_that_shows_another_question_decides_nothing(house: House) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        id, other = asked(await pay(gateway)), asked(await pay(gateway, "k2", note="other"))
        [ben] = await signed_in(gateway, "ben")
        said = {"decision": "approve", "aware": "yes", "seen": await seen(ben, other)}
        refused = [await ben.post(f"/approvals/{id}/decision", said)]
        refused.append(await ben.post(f"/approvals/{id}/decision", {**said, "seen": ""}))
        voted = await votes(gateway, id)
    assert [one.status for one in refused] == [409, 409]
    assert "not the question you were shown" in text(refused[0])
    assert voted == []


@requirement("APR-4", "PPL-2")
async def test_a_question_that_was_asked_anew_is_not_decided_by_the_form_before(house: House) -> None:
    async with house.gateway(Shop(), config=config()) as gateway:
        ports = gateway._ports
        call = about(PLAN, "pln_1", ANA, ["said"], ports)
        first = await ports.approvals.ask(call, {"operator": 1}, {"consequence": "one", "undo": "exact"})
        [ben] = await signed_in(gateway, "ben")
        said = {"decision": "approve", "aware": "yes", "seen": await seen(ben, first.id)}
        newer = await ports.approvals.ask(call, {"operator": 2}, {"consequence": "one", "undo": "none"})
        stopped = await ben.post(f"/approvals/{first.id}/decision", said)
        crossed = await ben.post(f"/approvals/{newer.id}/decision", said)
        voted = [*await votes(gateway, first.id), *await votes(gateway, newer.id)]
    assert newer.id != first.id
    assert (stopped.status, crossed.status, voted) == (409, 409, [])
    assert "This question was asked anew" in text(stopped)
    assert "who must say yes, whether it can be undone" in text(stopped)
    assert f'href="/approvals/{newer.id}"' in stopped.body.decode()


@requirement("APR-4")
async def test_a_yes_from_before_the_need_rose_runs_nothing(house: House) -> None:
    bank = Bank()
    people = {**config(eve=["compliance"]), "approvals": {"release": "gateway"}}
    policy = Asking()
    async with house.gateway(bank, config=people, policy=policy) as gateway:
        id = asked(await pay(gateway))
        ben, cat = await signed_in(gateway, "ben", "cat")
        policy.need = {"compliance": 1}
        await answered(ben, id)
        await answered(cat, id)
        await released(gateway)
        page = text(await cat.get(f"/approvals/{id}"))
    assert bank.paid == []
    assert "more approval is needed now" in page


@requirement("APR-2", "PPL-2")
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
async def test_nothing_is_decided_but_by_post(house: House, method: str) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        id = asked(await pay(gateway))
        [ben] = await signed_in(gateway, "ben")
        query = f"decision=approve&aware=yes&seen={await seen(ben, id)}&csrf={ben.token}"
        refused = await ben.send(method, f"/approvals/{id}/decision?{query}")
        page = await ben.send("GET", f"/approvals/{id}?{query}")  # as a link in a mail might be
        voted = await votes(gateway, id)
    assert (refused.status, page.status, voted) == (405, 200, [])


@requirement("APR-2", "PPL-2")
async def test_a_form_of_nobody_or_of_somebody_else_decides_nothing(house: House) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        id = asked(await pay(gateway))
        ben, cat = await signed_in(gateway, "ben", "cat")
        said = {"decision": "approve", "aware": "yes", "seen": await seen(ben, id)}
        path = f"/approvals/{id}/decision"
        without = await ben.post(path, {**said, "csrf": ""})
        of_cat = await ben.post(path, {**said, "csrf": cat.token})
        elsewhere = await ben.post(path, said, origin="https://evil.example")
        cross = await ben.post(path, said, **{"sec-fetch-site": "cross-site"})
        voted = await votes(gateway, id)
    assert [one.status for one in (without, of_cat, elsewhere, cross)] == [403] * 4
    assert voted == []


@requirement("APR-2", "PPL-2")
async def test_an_agent_has_no_way_in(house: House) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        id = asked(await pay(gateway))
        [ben] = await signed_in(gateway, "ben")
        said = {"decision": "approve", "aware": "yes", "seen": await seen(ben, id), "csrf": ben.token}
        path = f"/approvals/{id}/decision"
        agent = Visitor(ben._client.app, {"x-holdfast-user": "ben", "x-holdfast-agent": "bot"})
        by_header = await agent.post(path, said)
        bare = await Visitor(ben._client.app, {"x-holdfast-user": "ben"}).post(path, said)
        signed = await agent.post("/sign-in", {"person": "nobody-known"})
        voted = await votes(gateway, id)
    assert (by_header.status, bare.status) == (303, 303)  # to the way in
    assert by_header.headers["location"].startswith("/sign-in")
    assert signed.status != 303
    assert voted == []


@requirement("APR-2", "APR-5")
async def test_a_role_taken_away_while_the_page_is_open_decides_nothing(tmp_path: Path) -> None:
    bank, house = Bank(), kept(tmp_path)
    async with house.gateway(bank, config=config()) as gateway:
        id = asked(await pay(gateway))
        [ben] = await signed_in(gateway, "ben")
        said = {"decision": "approve", "aware": "yes", "seen": await seen(ben, id)}
    async with house.gateway(bank, config=config(ben=[])) as gateway:
        [later] = await signed_in(gateway, "cat")
        later.cookies, later.token = ben.cookies, ben.token
        refused = await later.post(f"/approvals/{id}/decision", said)
        found = await gateway._ports.approvals.get("default", id)
    assert found is not None
    assert (refused.status, found.votes, bank.paid) == (403, (), [])


# --- time, processes and the world --------------------------------------------------------


@requirement("APR-4", "APR-5", "PPL-2")
async def test_a_question_survives_restarts_and_is_answered_in_other_processes(tmp_path: Path) -> None:
    bank, house = Bank(), kept(tmp_path)
    async with house.gateway(bank, config=RELEASING) as gateway:
        id = asked(await pay(gateway))
        [ben] = await signed_in(gateway, "ben")
        said = {"decision": "approve", "aware": "yes", "seen": await seen(ben, id)}
    async with house.gateway(bank, config=RELEASING) as gateway:  # the form was open meanwhile
        [again] = await signed_in(gateway, "ben")
        again.cookies, again.token = ben.cookies, ben.token
        first = await again.post(f"/approvals/{id}/decision", said)
    async with house.gateway(bank, config=RELEASING) as gateway:
        [cat] = await signed_in(gateway, "cat")
        second = await answered(cat, id)
        await released(gateway)
    assert (first.status, second.status, bank.paid) == (303, 303, ["o-1"])


@requirement("APR-4", "PPL-2")
async def test_an_upstream_that_does_nothing_does_not_burn_the_approval(house: House) -> None:
    bank = Bank()
    bank.locked = True
    async with house.gateway(bank, config=RELEASING) as gateway:
        id = asked(await pay(gateway))
        ben, cat = await signed_in(gateway, "ben", "cat")
        await answered(ben, id)
        await answered(cat, id)
        await released(gateway)
        waiting = text(await cat.get(f"/approvals/{id}"))
        bank.locked = False
        done = await pay(gateway)
        after = text(await cat.get(f"/approvals/{id}"))
    assert "it tried 1 time so far" in waiting
    assert "The approval is not used up" in waiting
    assert (done.status, bank.paid) == (Status.DONE, ["o-1"])
    assert "The call was made with it, once." in after


@requirement("APR-3", "PPL-2")
async def test_the_page_shows_who_is_asked_next_and_lets_them_answer_then(house: House) -> None:
    people = config({"chain": [["operator"], ["lead"]]}, leo=["lead"], ben=["operator"], cat=[], ana=[])
    people["approvals"]["expire_s"] = 600
    async with house.gateway(Shop(), config=people) as gateway:
        held = await gateway.call("test.refund", {"order": "o-1"}, key="k", principal=ANA)
        leo, ben = await signed_in(gateway, "leo", "ben")
        early = await leo.get(f"/approvals/{asked(held)}")
        shown = text(await ben.get(f"/approvals/{asked(held)}"))
        await house.clock.advance(301)
        late = await leo.get(f"/approvals/{asked(held)}")
        said = await answered(leo, asked(held))
        found = await gateway.approval(BEN, asked(held))
    assert "lead are asked too in 5 min" in shown
    assert early.status == 404
    assert SEEN.search(late.body.decode())
    assert found is not None
    assert (said.status, found.answer, found.votes[0].via) == (303, Answer.APPROVED, "lead")


# --- plans and elevations -----------------------------------------------------------------


@requirement("APR-8", "PPL-2")
async def test_a_plan_shows_each_call_and_is_approved_as_a_whole(house: House) -> None:
    shop = Shop()
    steps = [Wish(tool="test.refund", arguments={"order": f"o-{n}", "amount": n}) for n in (1, 2)]
    async with house.gateway(shop, config=config()) as gateway:
        planned = await gateway.plans.propose(ANA, steps, "ticket 9")
        assert planned.approval is not None
        [ben] = await signed_in(gateway, "ben")
        page = text(await ben.get(f"/approvals/{planned.approval.id}"))
        said = await answered(ben, planned.approval.id)
        done = await gateway.call("test.refund", {"order": "o-2", "amount": 2}, key="k", principal=ANA)
    assert "2 calls are made, each once, without asking again" in page
    assert "test.refund@1.0.0" in page
    assert "o-1" in page
    assert "o-2" in page
    assert (said.status, done.status, shop.refunds) == (303, Status.DONE, [("o-2", 2)])


@requirement("AUT-8", "PPL-2")
async def test_an_elevation_says_who_would_hold_what_for_how_long(house: House) -> None:
    people = config()
    people["auth"]["people"]["dan"]["scopes"] = ["notes:read"]
    async with house.gateway(Shop(), config=people) as gateway:
        dan = gateway.identity.at_terminal("dan")
        wanted = await gateway.grants.elevate(dan, "mail:send", "the <b>mails</b> are late", 900)
        [ben] = await signed_in(gateway, "ben")
        page = await ben.get(f"/approvals/{wanted.approval.id}")
        said = await answered(ben, wanted.approval.id)
        held = gateway.identity.at_terminal("dan").scopes
    assert "dan holds mail:send for 15 min" in text(page)
    assert "scopes: mail:send" in text(page)
    assert "the <b>mails</b> are late" in text(page)
    assert "b" not in Page(page).tags
    assert said.status == 303
    assert "mail:send" in held
