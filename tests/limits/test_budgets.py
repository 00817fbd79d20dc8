"""Is no more done than was allowed, and is every call counted exactly once?"""

import asyncio
from typing import Any

import pytest

from holdfast import Code, Status
from holdfast.model import defaults
from holdfast.model.call import Principal
from holdfast.model.limits import Amount, Kind, Per
from holdfast.testing import ManualClock
from tests.lifecycle.conftest import Open
from tests.lifecycle.test_rare import Dying
from tests.limits.shop import ACME, ANA, BEN, NONE, Shop, account, budget, calls
from tests.requirements import requirement

OPERATOR = Principal(user="olga", agent="local", roles=frozenset({"operator"}))


@requirement("POL-4", "VAL-2", "NAM-3")
async def test_a_used_up_budget_refuses_and_says_what_to_raise_and_not_when_to_retry(
    open_gateway: Open,
) -> None:
    shop = Shop()
    async with open_gateway(shop, config=budget(per="tenant", kind="write", calls=2)) as gateway:
        seen = [
            await gateway.call("test.write", {"thing": f"t{n}"}, key=f"k{n}", principal=ANA) for n in range(3)
        ]
        replayed = await gateway.call("test.write", {"thing": "t0"}, key="k0", principal=ANA)
        read = await gateway.call("test.look", {"thing": "t0"}, principal=ANA)
        counted = await account(gateway)
    assert [s.status for s in seen] == [Status.DONE, Status.DONE, Status.REFUSED]
    assert (seen[2].code, seen[2].http_status) == (Code.BUDGET_EXHAUSTED, 429)
    assert seen[2].remedy.retry_after_ms is None
    assert "2 calls of kind 'write' per tenant" in (seen[2].message or "")
    assert "limits.budgets" in (seen[2].message or "")
    assert (replayed.replayed, read.status) == (True, Status.DONE)  # an answer that is there costs nothing
    assert (counted.used.calls, counted.reserved) == (2, NONE)
    assert shop.done["t2"] == 0


@requirement("POL-2")
async def test_nothing_critical_runs_unless_a_budget_grants_it(open_gateway: Open) -> None:
    shop = Shop()
    people = {"auth": {"people": {name: {"roles": ["operator"]} for name in ("ben", "cat")}}}
    async with open_gateway(shop, config=people) as gateway:
        refused = await gateway.call("test.destroy", {"thing": "a"}, key="k", principal=ANA)
        open_ = await gateway.approvals(OPERATOR)
    assert (refused.code, list(open_)) == (Code.BUDGET_EXHAUSTED, [])  # nobody is bothered
    assert "kind: critical" in (refused.message or "")


@requirement("POL-2")
@pytest.mark.parametrize(
    ("kind", "calls", "status"),
    [
        ("critical", 0, Status.REFUSED),
        ("write", 9, Status.REFUSED),
        ("critical", 9, Status.HELD),
        ("all", 9, Status.HELD),
    ],
)
async def test_a_budget_of_its_kind_grants_what_is_critical(
    open_gateway: Open, kind: str, calls: int, status: Status
) -> None:
    people = {"auth": {"people": {name: {"roles": ["operator"]} for name in ("ben", "cat")}}}
    config = budget(per="tenant", kind=kind, calls=calls) | people
    async with open_gateway(Shop(), config=config) as gateway:
        assert (await gateway.call("test.destroy", {"thing": "a"}, key="k", principal=ANA)).status is status


@requirement("POL-4", "AUT-6")
@pytest.mark.parametrize(
    ("per", "mine", "theirs"),
    [
        ("task", {"task": "one"}, {"task": "two"}),
        ("session", {"session": "one"}, {"session": "two"}),
        ("principal", {}, {"principal": BEN}),
        ("tenant", {}, {"principal": ACME}),
    ],
)
async def test_each_owner_has_an_account_of_its_own(
    open_gateway: Open, per: str, mine: dict[str, Any], theirs: dict[str, Any]
) -> None:
    async with open_gateway(Shop(), config=budget(per=per, kind="all", calls=1)) as gateway:
        by = {"principal": ANA}
        first = await gateway.call("test.write", {"thing": "a"}, key="a", **(by | mine))
        second = await gateway.call("test.write", {"thing": "b"}, key="b", **(by | mine))
        other = await gateway.call("test.write", {"thing": "c"}, key="c", **(by | theirs))
    assert (first.status, second.code, other.status) == (Status.DONE, Code.BUDGET_EXHAUSTED, Status.DONE)


@requirement("POL-4")
async def test_calls_without_a_task_share_one_and_nobody_spends_anothers(open_gateway: Open) -> None:
    shop = Shop()
    async with open_gateway(shop, config=budget(per="task", kind="write", calls=1)) as gateway:
        first = await gateway.call("test.write", {"thing": "a"}, key="a", principal=ANA)
        second = await gateway.call("test.write", {"thing": "b"}, key="b", principal=ANA)
        theirs = await gateway.call("test.write", {"thing": "c"}, key="c", principal=BEN, task="big")
        mine = await gateway.call("test.write", {"thing": "d"}, key="d", principal=ANA, task="big")
        long = await gateway.call("test.write", {"thing": "e"}, key="e", principal=ANA, task="x" * 5000)
    assert (first.status, second.code) == (Status.DONE, Code.BUDGET_EXHAUSTED)
    assert (theirs.status, mine.status, long.status) == (Status.DONE, Status.DONE, Status.DONE)


@requirement("POL-4")
async def test_a_window_starts_anew(open_gateway: Open) -> None:
    shop, clock = Shop(), ManualClock()
    config = budget(per="tenant", kind="write", calls=1, window_s=60)
    async with open_gateway(shop, config=config, clock=clock) as gateway:
        await clock.advance(60 - clock.now() % 60)
        first = await gateway.call("test.write", {"thing": "a"}, key="a", principal=ANA)
        await clock.advance(59)
        second = await gateway.call("test.write", {"thing": "b"}, key="b", principal=ANA)
        await clock.advance(1)
        third = await gateway.call("test.write", {"thing": "b"}, key="b", principal=ANA)
        await clock.advance(600)
        await gateway.tidy(forget=True)
        left = await gateway._ports.ledger.budgets("default")
    assert [first.status, second.code, third.status] == [Status.DONE, Code.BUDGET_EXHAUSTED, Status.DONE]
    assert list(left) == []  # accounts of windows long over are not kept


@requirement("POL-4", "IDM-5")
async def test_what_had_no_effect_is_given_back_and_what_is_unknown_stays_reserved(
    open_gateway: Open,
) -> None:
    shop = Shop()
    async with open_gateway(shop, config=budget(per="tenant", kind="write", calls=2)) as gateway:
        shop.mood = "no_effect"
        await gateway.call("test.unprobed", {"thing": "a"}, key="a", principal=ANA)
        assert await calls(gateway) == (0, 0)
        shop.mood = "raise"
        lost = await gateway.call("test.unprobed", {"thing": "b"}, key="b", principal=ANA)
        assert (lost.status, await calls(gateway)) == (Status.UNKNOWN, (0, 1))
        shop.mood = "well"
        await gateway.call("test.unprobed", {"thing": "a"}, key="a", principal=ANA)
        full = await gateway.call("test.unprobed", {"thing": "c"}, key="c", principal=ANA)
        assert (full.code, await calls(gateway)) == (Code.BUDGET_EXHAUSTED, (1, 1))
        await gateway.settle(OPERATOR, lost.call_id, "no-effect", "looked")
        assert await calls(gateway) == (1, 0)
        again = await gateway.call("test.unprobed", {"thing": "c"}, key="c", principal=ANA)
        assert (again.status, await calls(gateway)) == (Status.DONE, (2, 0))


@requirement("POL-4")
async def test_a_person_who_found_the_effect_spends_the_budget(open_gateway: Open) -> None:
    shop = Shop()
    shop.mood = "raise"
    async with open_gateway(shop, config=budget(per="tenant", kind="write", calls=2)) as gateway:
        lost = await gateway.call("test.unprobed", {"thing": "b"}, key="b", principal=ANA)
        await gateway.settle(OPERATOR, lost.call_id, "committed", "it is there")
        assert await calls(gateway) == (1, 0)


@requirement("POL-4", "IDM-4")
async def test_a_dead_workers_reservation_is_settled_once_by_whoever_finds_out(open_gateway: Open) -> None:
    shop, clock, dead = Shop(), ManualClock(), set[str]()
    shop.mood = "wait"
    config = budget(per="tenant", kind="write", calls=5)
    async with open_gateway(shop, config=config, clock=clock, workers=Dying("w1", dead)) as gateway:
        running = []
        for thing in ("a", "b"):
            shop.entered.clear()
            call = gateway.call("test.write", {"thing": thing}, key=thing, principal=ANA)
            running.append(asyncio.create_task(call))
            await shop.entered.wait()
        assert await calls(gateway) == (0, 2)
        dead.add("w1")
        await gateway.tidy()
        assert await calls(gateway) == (0, 2)  # unknown is not free
        shop.mood, shop.done["a"] = "well", 1  # one of them had acted
        await clock.advance(defaults.STANDARD_S + 2.0)
        for _ in range(3):
            await gateway.tidy()
        assert await calls(gateway) == (1, 0)
        shop.release.set()
        await asyncio.wait(running)


@requirement("POL-4")
async def test_the_read_of_a_dead_worker_counts_as_done(open_gateway: Open) -> None:
    shop, clock, dead = Shop(), ManualClock(), set[str]()
    shop.mood = "slow"
    config = budget(per="tenant", kind="read", calls=3)
    async with open_gateway(shop, config=config, clock=clock, workers=Dying("w1", dead)) as gateway:
        reading = asyncio.create_task(gateway.call("test.look", {"thing": "a"}, principal=ANA))
        await shop.entered.wait()
        await gateway.tidy()
        reserved = await account(gateway, kind=Kind.READ)
        dead.add("w1")
        await gateway.tidy()
        lost = await account(gateway, kind=Kind.READ)
        shop.release.set()
        await reading  # it was only stopped: it answers, and is not counted twice
        after = await account(gateway, kind=Kind.READ)
    assert (reserved.used.calls, reserved.reserved.calls) == (0, 1)
    assert (lost.used.calls, lost.reserved) == (1, NONE)
    assert after == lost


@requirement("POL-4")
async def test_cost_is_reserved_for_every_try_a_budget_still_pays_for_and_settled_by_what_happened(
    open_gateway: Open,
) -> None:
    shop, clock = Shop(), ManualClock()
    config = budget(per="tenant", kind="financial", cost=1.2)
    async with open_gateway(shop, config=config, clock=clock) as gateway:
        shop.mood = "flaky"
        call = asyncio.create_task(gateway.call("test.buy", {"thing": "a"}, key="a", principal=ANA))
        await clock.drive(call)
        assert shop.tries == 2  # the contract would allow four tries, the budget two
        assert (await account(gateway, kind=Kind.FINANCIAL)).reserved == Amount(1, 1_000_000, 0, 1)
        shop.mood = "well"
        done = await gateway.call("test.buy", {"thing": "a"}, key="a", principal=ANA)
        spent = await account(gateway, kind=Kind.FINANCIAL)
        once = await gateway.call("test.buy", {"thing": "b"}, key="b", principal=ANA)
        full = await gateway.call("test.buy", {"thing": "c"}, key="c", principal=ANA)
    assert (done.status, once.status, full.code) == (Status.DONE, Status.DONE, Code.BUDGET_EXHAUSTED)
    assert (spent.used.calls, spent.used.cost, spent.reserved) == (1, 500_000, NONE)
    assert "1.2 cost" in (full.message or "")


@requirement("POL-4")
async def test_what_costs_in_another_currency_cannot_be_bounded_and_is_refused(open_gateway: Open) -> None:
    config = budget(per="tenant", kind="financial", cost=10, currency="EUR")
    async with open_gateway(Shop(), config=config) as gateway:
        refused = await gateway.call("test.buy", {"thing": "a"}, key="a", principal=ANA)
    assert refused.code is Code.BUDGET_EXHAUSTED
    assert "costs USD" in (refused.message or "")


@requirement("POL-4", "EXE-1")
async def test_a_call_runs_no_longer_than_the_time_that_is_left(open_gateway: Open) -> None:
    shop, clock = Shop(), ManualClock()
    shop.mood = "wait"
    config = budget(per="principal", kind="write", wall_s=2)
    async with open_gateway(shop, config=config, clock=clock) as gateway:
        call = asyncio.create_task(gateway.call("test.unprobed", {"thing": "a"}, key="a", principal=ANA))
        await clock.drive(call)
        reserved = await account(gateway, Per.PRINCIPAL)
        full = await gateway.call("test.unprobed", {"thing": "b"}, key="b", principal=ANA)
    assert (call.result().status, reserved.reserved.wall_ms) == (Status.UNKNOWN, 2000)
    assert clock.monotonic() < defaults.STANDARD_S
    assert full.code is Code.BUDGET_EXHAUSTED
    assert "2 s of running time" in (full.message or "")


@requirement("POL-4")
async def test_retries_are_narrowed_to_what_is_left_of_them(open_gateway: Open) -> None:
    shop, clock = Shop(), ManualClock()
    shop.mood = "flaky"
    config = budget(per="tenant", kind="write", retries=1)
    async with open_gateway(shop, config=config, clock=clock) as gateway:
        for number, key in enumerate(("a", "b")):
            call = asyncio.create_task(gateway.call("test.buy", {"thing": key}, key=key, principal=ANA))
            await clock.drive(call)
            assert shop.tries == (2, 3)[number]  # the second has no retry left, and still one try


@requirement("POL-4")
async def test_several_bounds_of_one_owner_are_one_account(open_gateway: Open) -> None:
    both = {
        "limits": {
            "budgets": [
                {"per": "tenant", "kind": "write", "calls": 5},
                {"per": "tenant", "kind": "write", "calls": 3, "wall_s": 100},
            ]
        }
    }
    async with open_gateway(Shop(), config=both) as gateway:
        seen = [
            await gateway.call("test.write", {"thing": f"t{n}"}, key=f"k{n}", principal=ANA) for n in range(4)
        ]
        assert await calls(gateway) == (3, 0)
        assert [s["limit"]["calls"] for s in map(_shown, await gateway.budgets(OPERATOR))] == [5, 3]
    assert [s.status for s in seen] == [Status.DONE] * 3 + [Status.REFUSED]


def _shown(standing: object) -> dict[str, dict[str, int]]:
    return standing.shown()  # type: ignore[attr-defined, no-any-return]


@requirement("POL-4", "AUT-6")
async def test_everybody_sees_their_own_budget_and_an_operator_all_of_the_tenant(open_gateway: Open) -> None:
    config = budget(per="principal", kind="write", calls=9) | {
        "auth": {"people": {"olga": {"roles": ["operator"]}}}
    }
    async with open_gateway(Shop(), config=config) as gateway:
        for by in (ANA, BEN, ACME):
            await gateway.call("test.write", {"thing": "a"}, key="a", principal=by)
        of_ana = [s.account.bucket.subject for s in await gateway.budgets(ANA)]
        of_olga = [s.account.bucket.subject for s in await gateway.budgets(OPERATOR)]
    assert (of_ana, of_olga) == (["ana/bot"], ["ana/bot", "ben/bot"])


@requirement("POL-4")
@pytest.mark.parametrize("kind", ["write", "all"])
async def test_the_gateways_own_readings_cost_their_caller_nothing(open_gateway: Open, kind: str) -> None:
    shop = Shop()
    shop.mood = "raise"
    async with open_gateway(shop, config=budget(per="tenant", kind=kind, calls=1)) as gateway:
        probed = await gateway.call("test.write", {"thing": "a"}, key="a", principal=ANA)
        counted = await account(gateway, kind=Kind(kind))
    assert (probed.status, shop.done["look"]) == (Status.DONE, 1)  # found by its probe
    assert (counted.used.calls, counted.reserved) == (1, NONE)
