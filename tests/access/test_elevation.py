"""Can somebody ask for more than they hold, and get it for a while from somebody else?"""

import pytest

from holdfast import Code, Principal, Status
from holdfast.model.approval import Answer
from holdfast.model.defaults import APPROVAL_S, GRANT_S, OPEN_ASKS
from holdfast.model.errors import Forbidden, HoldfastError, TooManyAsks
from tests.access.office import ANA_KEY, FINA, OLGA, OTTO, Office
from tests.requirements import requirement

SCOPE = "orders:refund"


async def bot(office: Office) -> Principal:
    return await office.come_in(office.one, ANA_KEY)


@requirement("AUT-8", "PPL-6")
async def test_an_elevation_is_a_grant_for_a_time_once_it_is_approved(office: Office) -> None:
    asked = await office.one.grants.elevate(await bot(office), SCOPE, "the customer waits", 1800)
    assert (await office.refund(office.one, await bot(office), "o-1")).code is Code.TOOL_NOT_FOUND
    answered = await office.other.decide(OLGA, asked.approval.id, True, "go on")
    assert answered.answer is Answer.APPROVED
    await office.one.access.follow()
    elevated = await bot(office)
    assert (await office.refund(office.one, elevated, "o-2")).status is Status.DONE
    [grant] = await office.one.grants.list(OLGA)
    assert (grant.approval_id, grant.granted_by, grant.agent) == (asked.approval.id, "olga", "bot")
    assert grant.expires_at == office.house.clock.now() + 1800
    await office.house.clock.advance(1800)
    assert (await office.refund(office.one, await bot(office), "o-3")).code is Code.TOOL_NOT_FOUND
    assert office.done() == ["ask for elevation", "elevate"]


@requirement("AUT-8")
async def test_an_elevation_can_be_taken_back(office: Office) -> None:
    asked = await office.one.grants.elevate(await bot(office), SCOPE, "the customer waits")
    await office.one.decide(OLGA, asked.approval.id, True)
    elevated = await bot(office)
    await office.other.grants.revoke(OTTO, asked.grant.id)
    refused = await office.refund(office.one, elevated)
    assert (refused.code, office.orders.refunded) == (Code.PERMISSION_DENIED, [])


@requirement("AUT-8", "APR-2")
async def test_nobody_approves_their_own_elevation(office: Office) -> None:
    asked = await office.one.grants.elevate(OTTO, SCOPE, "I am in a hurry")
    with pytest.raises(Forbidden):
        await office.one.decide(OTTO, asked.approval.id, True)
    await office.one.decide(OLGA, asked.approval.id, True)
    [grant] = await office.one.grants.list(OLGA)
    assert grant.holds(office.house.clock.now())


@requirement("AUT-8", "AUT-6")
async def test_another_tenant_neither_sees_nor_answers_it(office: Office) -> None:
    asked = await office.one.grants.elevate(await bot(office), SCOPE, "the customer waits")
    assert await office.one.approvals(FINA) == []
    with pytest.raises(HoldfastError):
        await office.one.decide(FINA, asked.approval.id, True)


@requirement("AUT-8", "APR-3")
@pytest.mark.parametrize("how", ["denied", "unanswered"])
async def test_what_was_denied_or_not_answered_gives_nothing(office: Office, how: str) -> None:
    asked = await office.one.grants.elevate(await bot(office), SCOPE, "the customer waits")
    if how == "denied":
        await office.one.decide(OLGA, asked.approval.id, False)
    else:
        await office.house.clock.advance(APPROVAL_S)
        await office.one.tidy()
    await office.other.access.follow()
    assert (await office.refund(office.other, await bot(office))).code is Code.TOOL_NOT_FOUND
    with pytest.raises(HoldfastError):
        await office.one.decide(OTTO, asked.approval.id, True)


@requirement("AUT-8")
async def test_the_same_question_is_asked_once(office: Office) -> None:
    caller = await bot(office)
    first = await office.one.grants.elevate(caller, SCOPE, "the customer waits")
    again = await office.other.grants.elevate(caller, SCOPE, "the customer waits")
    assert (again.approval.id, again.grant.id) == (first.approval.id, first.grant.id)
    assert len(await office.one.approvals(OLGA)) == 1


@requirement("AUT-8", "APR-1")
async def test_who_approves_sees_who_asks_for_what_and_why(office: Office) -> None:
    await office.one.grants.elevate(await bot(office), SCOPE, "the customer waits", 1800)
    [asked] = await office.one.approvals(OLGA)
    shown = asked.packet
    assert shown["arguments"] == {"scope": SCOPE, "for_s": 1800, "reason": "the customer waits"}
    assert shown["requested_by"]["user"] == "ana"
    assert shown["consequence"] == "ana, through bot, holds 'orders:refund' for 30 min from your yes on"
    assert "orders:read" in shown["before"]["state"]["scopes"]


@requirement("AUT-8")
async def test_what_could_not_help_or_cannot_be_read_is_refused_at_once(office: Office) -> None:
    caller, grants = await bot(office), office.one.grants
    with pytest.raises(HoldfastError, match="already"):
        await grants.elevate(caller, "orders:read", "why not")
    with pytest.raises(HoldfastError, match="say why"):
        await grants.elevate(caller, SCOPE, "  ")
    with pytest.raises(HoldfastError, match="is no scope"):
        await grants.elevate(caller, "a b", "why not")
    with pytest.raises(HoldfastError, match="lasts from"):
        await grants.elevate(caller, SCOPE, "for ever", GRANT_S * 24 * 365)
    plain, _ = await office.one.keys.create(OLGA, "ana", agent="narrow")
    with pytest.raises(Forbidden, match="limited to other scopes"):
        await grants.elevate(await office.come_in(office.one, plain), SCOPE, "why not")
    assert await office.one.approvals(OLGA) == []


@requirement("AUT-8", "APR-4")
async def test_who_has_too_many_open_questions_leaves_no_trace_of_another(office: Office) -> None:
    asker = await bot(office)
    for i in range(OPEN_ASKS):
        await office.one.grants.elevate(asker, SCOPE, f"reason {i}")
        await office.house.clock.advance(1)
    with pytest.raises(TooManyAsks):
        await office.one.grants.elevate(asker, SCOPE, "one more")
    assert len(await office.one.grants.list(OLGA)) == OPEN_ASKS
