"""Does the gateway run what people approved, once, as its caller, and as things stand then?"""

import asyncio
from typing import Any

import pytest

from holdfast import Code, Gateway, Status
from holdfast.approvals.release import release
from holdfast.model import defaults
from tests.approvals.bank import ANA, BEN, CAT, Bank, config, pay
from tests.approvals.opening import House
from tests.requirements import requirement

RELEASING = config({"release": "gateway"})


async def settled(gateway: Gateway) -> None:
    """Until no release is under way."""
    while gateway._house._releasing:
        await asyncio.wait(gateway._house._releasing)


async def say_yes(gateway: Gateway, id: str) -> None:
    await gateway.decide(BEN, id, True)
    await gateway.decide(CAT, id, True)
    await settled(gateway)


@requirement("LIF-3", "APR-4")
@pytest.mark.parametrize("said", ["configured", "proposed"])
async def test_an_approved_call_is_run_by_the_gateway_and_polled_by_its_caller(
    house: House, said: str
) -> None:
    bank = Bank()
    where = RELEASING if said == "configured" else config()
    details: dict[str, Any] = {} if said == "configured" else {"release": "gateway"}
    async with house.gateway(bank, config=where) as gateway:
        held = await pay(gateway, **details)
        assert held.approval is not None
        assert "the gateway runs it" in (held.message or "")
        await say_yes(gateway, held.approval.id)
        found = await gateway.find(ANA, held.call_id)
        again = await pay(gateway)
    assert found is not None
    assert (found.status, found.call_id, found.trace_id) == (Status.DONE, held.call_id, held.trace_id)
    assert (again.replayed, bank.paid) == (True, ["o-1"])


@requirement("LIF-3")
async def test_a_caller_who_wants_to_release_it_is_not_forestalled(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=RELEASING) as gateway:
        held = await pay(gateway, release="caller")
        assert held.approval is not None
        await say_yes(gateway, held.approval.id)
        await gateway.tidy()
        await settled(gateway)
        assert bank.paid == []
        assert (await pay(gateway)).status is Status.DONE


@requirement("LIF-3", "IDM-4")
async def test_many_who_release_at_once_make_one_execution(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        held = await pay(gateway, release="gateway")
        assert held.approval is not None
        await gateway.decide(BEN, held.approval.id, True)
        asked = await gateway._ports.approvals.get("default", held.approval.id)
        assert asked is not None
        given = await gateway._ports.approvals.decide(asked, CAT, "operator", True, "")
        one = gateway._ports, gateway.identity.again, gateway.propose
        released = await asyncio.gather(*(release(given, *one) for _ in range(20)), pay(gateway))
        await gateway.tidy()
        await settled(gateway)
    assert bank.paid == ["o-1"]
    assert {r.status for r in released if r is not None} == {Status.DONE}


@requirement("LIF-3")
async def test_what_a_dead_process_did_not_release_another_does(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        held = await pay(gateway, release="gateway")
        assert held.approval is not None
        await gateway.decide(BEN, held.approval.id, True)
        asked = await gateway._ports.approvals.get("default", held.approval.id)
        assert asked is not None
        given = await gateway._ports.approvals.decide(asked, CAT, "operator", True, "")
        assert await gateway._ports.approvals.releasing(given, house.clock.now() + 5.0)  # and then it died
    async with house.gateway(bank, config=config()) as gateway:
        await gateway.tidy()
        await settled(gateway)
        assert bank.paid == []  # it might still be at it
        await house.clock.advance(5.0)
        await gateway.tidy()
        await settled(gateway)
    assert bank.paid == ["o-1"]


@requirement("LIF-3", "AUT-5")
@pytest.mark.parametrize("now", ["gone", "narrowed"])
async def test_a_release_is_judged_by_what_its_caller_may_do_now(house: House, now: str) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        held = await pay(gateway, release="gateway")
        assert held.approval is not None
        await gateway.decide(BEN, held.approval.id, True)
        asked = await gateway._ports.approvals.get("default", held.approval.id)
        assert asked is not None
        await gateway._ports.approvals.decide(asked, CAT, "operator", True, "")
    later = config()
    if now == "gone":
        del later["auth"]["people"]["ana"]
    else:
        later["auth"]["people"]["ana"]["tenant"] = "acme"
    async with house.gateway(bank, config=later) as gateway:
        await gateway.tidy()
        await settled(gateway)
        found = await gateway.find(ANA, held.call_id)
    assert bank.paid == []
    assert found is not None
    assert "may no longer call here" in (found.message or "")
    assert len(house.alarms()) == 1


@requirement("LIF-3", "VAL-5")
async def test_a_release_that_is_refused_says_why_and_is_left_to_the_caller(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=RELEASING) as gateway:
        plan = await gateway.call("test.pay", {"order": "o-1"}, principal=ANA, preview=True)
        assert plan.preview is not None
        held = await pay(gateway, plan_token=plan.preview["plan_token"])
        assert held.approval is not None
        bank.balance = 3  # not what was planned on
        await say_yes(gateway, held.approval.id)
        found = await gateway.find(ANA, held.call_id)
        await house.clock.advance(60)
        await gateway.tidy()
        await settled(gateway)
    assert bank.paid == []
    assert found is not None
    assert (found.status, "STALE_STATE" in (found.message or "")) == (Status.HELD, True)


@requirement("LIF-3", "APR-4")
async def test_a_release_that_found_the_upstream_closed_is_tried_again(house: House) -> None:
    bank = Bank()
    bank.locked = True
    async with house.gateway(bank, config=RELEASING) as gateway:
        held = await pay(gateway)
        assert held.approval is not None
        await say_yes(gateway, held.approval.id)
        bank.locked = False
        await gateway.tidy()
        await settled(gateway)
        assert bank.paid == []
        await house.clock.advance(defaults.RELEASE_RETRY_S)
        await gateway.tidy()
        await settled(gateway)
        found = await gateway.find(ANA, held.call_id)
    assert bank.paid == ["o-1"]
    assert found is not None
    assert (found.status, found.code) == (Status.DONE, None)


@requirement("LIF-3")
async def test_an_approval_that_expired_is_not_released(house: House) -> None:
    bank = Bank()
    bank.locked = True
    async with house.gateway(bank, config=RELEASING) as gateway:
        held = await pay(gateway)
        assert held.approval is not None
        await say_yes(gateway, held.approval.id)
        bank.locked = False
        await house.clock.advance(defaults.APPROVAL_S)
        await gateway.tidy()
        await settled(gateway)
        late = await pay(gateway)
    assert (late.code, bank.paid) == (Code.APPROVAL_DENIED, [])
