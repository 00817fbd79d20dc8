"""Does a call that needs a person wait for one, and for the right one?"""

import asyncio
from typing import Any

import pytest

from holdfast import Code, Effect, Floor, NoEffect, Principal, Status, Undo, tool
from holdfast.model import defaults
from holdfast.model.errors import Forbidden, HoldfastError, NotFound
from holdfast.testing import ManualClock
from tests.lifecycle.conftest import Open
from tests.lifecycle.world import ANA
from tests.requirements import requirement

GRANTED = {"limits": {"budgets": [{"per": "tenant", "kind": "critical", "calls": 1000}]}}
PEOPLE = {
    **GRANTED,
    "auth": {
        "people": {
            "ana": {"roles": ["operator"], "scopes": ["**"], "trust": 60},
            "ben": {"roles": ["operator"], "scopes": ["**"]},
            "cat": {"roles": ["operator"], "scopes": ["**"]},
        }
    },
}


def person(name: str, *roles: str) -> Principal:
    return Principal(user=name, agent="local", roles=frozenset(roles), scopes=frozenset({"**"}))


BEN, CAT = person("ben", "operator"), person("cat", "operator")


class Bank:
    def __init__(self) -> None:
        self.paid: list[str] = []
        self.locked = False
        self.entered, self.open = asyncio.Event(), asyncio.Event()
        self.open.set()

    @tool(effect=Effect.READ_ONLY)
    async def payments(self, order: str) -> dict[str, int]:
        """How often an order was paid."""
        return {"count": self.paid.count(order)}

    @tool(
        effect=Effect.CRITICAL_MUTATION,
        undo=Undo.NONE,
        floor=Floor.TWO_PERSON,
        manifest=[("payments", "CREATE", "order")],
        idempotency={},
        preview={},
        rollback_plan="pay back by hand",
        probe={
            "read": {"tool": "payments", "arguments": {"order": "=args.order"}},
            "committed": "state.count > 0",
        },
    )
    async def pay(self, order: str) -> str:
        """Pay an order."""
        if self.locked:
            raise NoEffect("the bank is closed")
        self.entered.set()
        await self.open.wait()
        self.paid.append(order)
        return order


async def asked(gateway: Any, key: str = "k", order: str = "o-1", principal: Principal = ANA) -> Any:
    return await gateway.call("test.pay", {"order": order}, key=key, principal=principal)


@requirement("APR-4", "DEC-2", "LIF-3")
async def test_a_critical_call_is_held_until_two_others_say_yes_and_then_runs_once(
    open_gateway: Open,
) -> None:
    bank = Bank()
    async with open_gateway(bank, config=PEOPLE) as gateway:
        held = await asked(gateway)
        assert (held.status, held.code, held.http_status) == (Status.HELD, Code.APPROVAL_REQUIRED, 202)
        assert (await asked(gateway)).approval == held.approval
        await gateway.decide(BEN, held.approval.id, True)
        assert (await asked(gateway)).status is Status.HELD
        await gateway.decide(CAT, held.approval.id, True, "checked")
        found = await gateway.find(ANA, held.call_id)
        assert found is not None
        assert "approved" in (found.message or "")
        answers = await asyncio.gather(*(asked(gateway) for _ in range(20)))
    assert {a.status for a in answers} == {Status.DONE}
    assert {a.call_id for a in answers} == {held.call_id}
    assert bank.paid == ["o-1"]


@requirement("APR-2")
async def test_nobody_approves_their_own_call_or_twice_or_without_the_role(open_gateway: Open) -> None:
    async with open_gateway(Bank(), config=PEOPLE) as gateway:
        held = await asked(gateway)
        for nobody in (person("ana", "operator"), person("eve"), person("eve", "user")):
            with pytest.raises(Forbidden):
                await gateway.decide(nobody, held.approval.id, True)
        await gateway.decide(BEN, held.approval.id, True)
        with pytest.raises(HoldfastError):
            await gateway.decide(BEN, held.approval.id, True)
        stranger = Principal(tenant="acme", user="cat", roles=frozenset({"operator"}))
        with pytest.raises(NotFound):
            await gateway.decide(stranger, held.approval.id, True)
        assert (await asked(gateway)).status is Status.HELD


@requirement("APR-3", "APR-4")
async def test_one_no_denies_and_a_denied_key_stays_denied(open_gateway: Open) -> None:
    bank = Bank()
    async with open_gateway(bank, config=PEOPLE) as gateway:
        held = await asked(gateway)
        await gateway.decide(BEN, held.approval.id, False, "not now")
        denied = await asked(gateway)
        with pytest.raises(HoldfastError):
            await gateway.decide(CAT, held.approval.id, True)
    assert denied.code is Code.APPROVAL_DENIED
    assert bank.paid == []


@requirement("APR-3")
async def test_what_nobody_answers_is_denied_when_its_time_is_up(open_gateway: Open) -> None:
    clock = ManualClock()
    async with open_gateway(Bank(), config=PEOPLE, clock=clock) as gateway:
        await asked(gateway)
        await clock.advance(defaults.APPROVAL_S + 1)
        denied = await asked(gateway)
    assert denied.code is Code.APPROVAL_DENIED
    assert "in time" in (denied.message or "")


@requirement("APR-4")
async def test_an_approval_is_for_these_arguments_only(open_gateway: Open) -> None:
    bank = Bank()
    async with open_gateway(bank, config=PEOPLE) as gateway:
        held = await asked(gateway)
        await gateway.decide(BEN, held.approval.id, True)
        await gateway.decide(CAT, held.approval.id, True)
        other = await asked(gateway, order="o-2")
        fresh = await asked(gateway, key="k2")
    assert other.code is Code.KEY_MISMATCH
    assert fresh.status is Status.HELD
    assert bank.paid == []


@requirement("APR-4")
async def test_an_approval_is_given_back_when_nothing_happened(open_gateway: Open) -> None:
    bank = Bank()
    bank.locked = True
    async with open_gateway(bank, config=PEOPLE) as gateway:
        held = await asked(gateway)
        await gateway.decide(BEN, held.approval.id, True)
        await gateway.decide(CAT, held.approval.id, True)
        closed = await asked(gateway)
        bank.locked = False
        paid = await asked(gateway)
    assert (closed.status, closed.message) == (Status.FAILED, "the bank is closed")
    assert paid.status is Status.DONE
    assert bank.paid == ["o-1"]


@requirement("APR-2")
async def test_where_nobody_could_answer_the_call_is_refused_and_says_what_to_do(open_gateway: Open) -> None:
    async with open_gateway(Bank(), config=GRANTED) as gateway:
        refused = await asked(gateway)
    assert refused.code is Code.APPROVAL_DENIED
    assert "auth.people" in (refused.message or "")


@requirement("PPL-4")
async def test_a_held_call_can_be_cancelled_and_stays_cancelled(open_gateway: Open) -> None:
    bank = Bank()
    async with open_gateway(bank, config=PEOPLE) as gateway:
        held = await asked(gateway)
        assert await gateway.cancel(ANA, held.call_id) == "cancelled"
        again = await asked(gateway)
    assert (again.status, again.code, again.replayed) == (Status.REFUSED, Code.CANCELLED, True)
    assert bank.paid == []
