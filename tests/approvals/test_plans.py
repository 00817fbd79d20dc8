"""Does a call that was previewed do what the preview said, or nothing?"""

import pytest

from holdfast import Code, Observation, Status
from holdfast.model import defaults
from tests.approvals.bank import ANA, BEN, CAT, FOREIGN, Bank, config, pay
from tests.approvals.opening import House
from tests.requirements import requirement
from tests.spoiled import spoiled


async def previewed(gateway: object, **said: str) -> Observation:
    seen: Observation = await gateway.call(  # type: ignore[attr-defined]
        "test.pay", {"order": "o-1"} | said, principal=ANA, preview=True
    )
    return seen


def token(seen: Observation) -> str:
    assert seen.preview is not None
    return str(seen.preview["plan_token"])


@requirement("APR-6", "DEC-5")
async def test_a_preview_tells_what_would_happen_and_ends_with_a_plan_token(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        seen = await previewed(gateway)
        open_ = await gateway.approvals(BEN)
        budgets = await gateway._ports.ledger.budgets("default")
    assert (seen.status, bank.paid, list(open_), list(budgets)) == (Status.PREVIEW, [], [], [])
    assert seen.preview is not None
    assert set(seen.preview) == {"effects", "preconditions", "impact", "arguments", "cost", "plan_token"}
    assert seen.preview["cost"] == {"currency": "USD", "amount": 0.25}
    assert seen.preview["impact"]["balance"] == 100


@requirement("APR-6")
async def test_a_plan_that_still_holds_is_carried_out(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        plan = token(await previewed(gateway))
        held = await pay(gateway, plan_token=plan)
        assert held.approval is not None
        for by in (BEN, CAT):
            await gateway.decide(by, held.approval.id, True)
        done = await pay(gateway, plan_token=plan)
    assert (done.status, bank.paid) == (Status.DONE, ["o-1"])


@requirement("APR-6", "VAL-5")
async def test_a_plan_whose_target_changed_is_refused_with_the_fresh_preview(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        plan = token(await previewed(gateway))
        bank.balance = 99
        stale = await pay(gateway, plan_token=plan)
        assert (stale.code, stale.http_status) == (Code.STALE_STATE, 412)
        fresh = stale.data["preview"]
        assert fresh["impact"]["balance"] == 99
        again = await pay(gateway, plan_token=fresh["plan_token"])
        assert again.status is Status.HELD
        bank.balance = 98  # after the question, before the execution
        assert again.approval is not None
        for by in (BEN, CAT):
            await gateway.decide(by, again.approval.id, True)
        late = await pay(gateway, plan_token=fresh["plan_token"])
    assert (late.code, bank.paid) == (Code.STALE_STATE, [])


@requirement("APR-6")
@pytest.mark.parametrize("wrong", ["forged", "other arguments", "expired", "other tenant"])
async def test_a_plan_is_for_one_call_for_a_while(house: House, wrong: str) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        plan = token(await previewed(gateway))
        by, said = ANA, {"plan_token": plan}
        if wrong == "forged":
            said["plan_token"] = spoiled(plan)
        elif wrong == "other arguments":
            said["note"] = "more"
        elif wrong == "other tenant":
            by = FOREIGN
        else:
            await house.clock.advance(defaults.PLAN_S)
        refused = await pay(gateway, by=by, **said)
    assert refused.code is Code.STALE_STATE
    assert "plan token" in (refused.message or "")
    assert refused.field_errors[0].path == "/plan_token"
