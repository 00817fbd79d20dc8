"""Are people told what is wrong, once, and that it is over?"""

import asyncio
from typing import Any

import orjson
import pytest

from holdfast import Principal
from holdfast.gateway.alarms import KINDS
from holdfast.model import defaults
from holdfast.model.errors import Forbidden, StoreError
from holdfast.model.people import Alert
from holdfast.model.vocabulary import ToolStatus
from tests.approvals.opening import House
from tests.figures.shop import ANA, BEN, OLGA, Shop, called, kinds, watched, wrong
from tests.requirements import requirement

WINDOW = defaults.HEALTH_WINDOW_S + 60
DAY = 86_400.0


def said(house: House, *acts: str) -> list[dict[str, Any]]:
    bodies = [orjson.loads(record.body) for record in sorted(house.records(), key=lambda record: record.at)]
    return [body for body in bodies if body.get("operation") in acts]


@requirement("TEL-3")
async def test_nothing_is_raised_while_all_is_well(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        await called(gateway, 25)
        await called(gateway, 3, "sell", key="k")
        await called(gateway, 19, "refund", key="r")  # held, and polled
        shop.mood = "declines"
        await called(gateway, 15, by=BEN)
        for number in range(15):
            await gateway.call("test.find", {"wrong": number}, principal=ANA)
        assert await wrong(gateway) == []
        await house.clock.advance(DAY)
        assert await wrong(gateway) == []
    assert said(house, "alert", "alert_ended") == []


@requirement("TEL-3")
async def test_a_tool_that_fails_too_often_is_degraded_until_it_does_not(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        await called(gateway, 38)
        shop.mood = "broken"
        await called(gateway, 2)
        assert await wrong(gateway) == []  # 2 of 40 is 5 %, and no more
        await called(gateway, 1)
        [alert] = await wrong(gateway)
        assert (alert.kind, alert.subject, alert.ended_at) == ("degraded", "test.find", None)
        assert alert.facts["errors"] == 3
        assert alert.facts["codes"] == {"INTERNAL": 3}
        assert "3 of 41 calls" in alert.text
        await house.clock.advance(WINDOW)
        assert await wrong(gateway) == []
        [over] = await gateway.alerts.list(OLGA, 0.0)
        assert (over.id, over.ended_at) == (alert.id, house.clock.now())


@requirement("TEL-3")
async def test_few_calls_say_nothing_about_a_share(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        shop.mood = "broken"
        await called(gateway, defaults.LEAST_CALLS - 1)
        assert ("degraded", "test.find") not in await kinds(gateway)
        await called(gateway, 1)
        assert ("degraded", "test.find") in await kinds(gateway)


@requirement("TEL-3", "PPL-6")
async def test_several_processes_raise_an_alert_once_and_end_it_once(house: House, shop: Shop) -> None:
    async with watched(house, shop) as one, watched(house, shop) as other:
        await called(one, 20)
        shop.mood = "broken"
        await called(other, 4)
        assert [alert.id for alert in await wrong(one)] == [alert.id for alert in await wrong(other)]
        await house.clock.advance(61)
        [seen] = await wrong(other)
        assert seen.seen_at == house.clock.now()
        assert len(said(house, "alert")) == 1
        await house.clock.advance(WINDOW)
        assert await wrong(other) == await wrong(one) == []
        assert len(said(house, "alert_ended")) == 1
        await called(one, 20)
        assert [alert.kind for alert in await wrong(other)] == ["degraded"]
    raised = said(house, "alert")
    assert [body["kind"] for body in raised] == ["degraded", "degraded"]
    assert raised[0]["alert"] != raised[1]["alert"]
    assert raised[0]["facts"]["errors"] == 4


@requirement("TEL-3")
async def test_a_tool_slower_than_twice_its_baseline_has_regressed(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        await called(gateway, 110)
        await house.clock.advance(WINDOW)
        shop.takes_s = 0.017  # within twice the baseline
        await called(gateway, 110)
        assert await wrong(gateway) == []
        shop.takes_s = 0.03
        await called(gateway, 110)
        [alert] = await wrong(gateway)
        assert (alert.kind, alert.subject) == ("latency_regression", "test.find")
        assert alert.facts["p99_ms"] > 2 * alert.facts["baseline_ms"]
        assert alert.facts["health"] == pytest.approx(0.7)
        await house.clock.advance(WINDOW)
        assert await wrong(gateway) == []


@requirement("TEL-3")
async def test_timeouts_raise_an_alert_and_propose_the_class_that_would_do(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        await called(gateway, 40, "peek")
        shop.takes_s = 0.6  # more than an interactive tool has
        assert set(await called(gateway, 2, "peek")) == {"failed"}
        found = {alert.kind: alert for alert in await wrong(gateway)}
        assert set(found) == {"timeouts", "timeout_class"}
        assert found["timeouts"].facts["timeouts"] == 2
        facts = found["timeout_class"].facts
        assert (facts["timeout_class"], facts["proposed"]) == ("interactive", "standard")
        assert "declare 'standard'" in found["timeout_class"].text
        await house.clock.advance(WINDOW)
        assert await wrong(gateway) == []


@requirement("TEL-3")
async def test_a_backlog_of_approvals_is_told_when_it_has_lasted(house: House, shop: Shop) -> None:
    async with watched(house, shop, backlog=3, backlog_s=120) as gateway:
        for number in range(3):
            await gateway.call("test.refund", {"thing": "x"}, principal=ANA, key=f"k-{number}")
        assert await wrong(gateway) == []
        await house.clock.advance(119)
        assert await wrong(gateway) == []
        await house.clock.advance(1)
        [alert] = await wrong(gateway)
        assert (alert.kind, alert.subject) == ("approval_backlog", "operator")
        assert alert.facts == {"waiting": 3, "for_s": 120, "oldest_s": 120}
        async with watched(house, shop, backlog=3, backlog_s=120) as newcomer:  # knows not since when
            assert [one.id for one in await wrong(newcomer)] == [alert.id]
        first, *_ = await gateway.approvals(OLGA)
        await gateway.decide(OLGA, first.id, approve=True)
        assert await wrong(gateway) == []


@requirement("TEL-3")
async def test_a_call_that_failed_after_every_retry_is_told(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        shop.mood, shop.takes_s = "away", 0.0
        call = gateway.call("test.ask", {"thing": "x"}, principal=ANA)
        assert (await _driven(house, call)).attempts == 3
        [alert] = await wrong(gateway)
        assert (alert.kind, alert.subject) == ("retry_exhaustion", "test.ask")
        assert alert.facts == {"calls": 1, "attempts": 3}
        await house.clock.advance(WINDOW)
        assert await wrong(gateway) == []


@requirement("TEL-3")
async def test_who_is_refused_alike_again_and_again_runs_in_a_loop(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        for _ in range(defaults.LOOP_FAILURES - 1):
            await gateway.call("test.find", {"wrong": 1}, principal=ANA)
        assert await wrong(gateway) == []
        await gateway.call("test.find", {"wrong": 1}, principal=ANA)
        [alert] = await wrong(gateway)
        assert (alert.kind, alert.subject) == ("runaway_loop", "ana test.find")
        assert alert.facts["calls"] == 20
        assert alert.facts["ended"] == "STRUCTURAL_VIOLATION"
        await house.clock.advance(121)
        assert await wrong(gateway) == []


@requirement("TEL-3")
async def test_a_loop_of_replays_is_one_too_and_mixed_answers_are_none(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        await called(gateway, 30, "sell", key="k")
        for number in range(20):
            await gateway.call("test.find", {"wrong": number}, principal=BEN)
            await gateway.call("test.find", {"thing": "x"}, principal=BEN)
        assert await kinds(gateway) == {("runaway_loop", "ana test.sell")}


@requirement("TEL-3")
async def test_equal_calls_that_are_done_are_a_loop_only_within_one_task(house: House, shop: Shop) -> None:
    shop.takes_s = 0.0
    async with watched(house, shop, loop_calls=30) as gateway:
        await called(gateway, 40, by=BEN)
        assert await wrong(gateway) == []
        await called(gateway, 30, task="t-1")
        [alert] = await wrong(gateway)
        assert (alert.kind, alert.subject) == ("runaway_loop", "ana test.find t-1")
        await house.clock.advance(121)
        assert await wrong(gateway) == []


@requirement("TEL-3", "TEL-5")
async def test_a_day_of_a_tool_that_costs_far_more_than_its_days_do_is_told(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        for _ in range(defaults.COST_SAMPLES):
            await called(gateway, 2)
            await house.clock.advance(DAY)
        await called(gateway, 6)
        assert await wrong(gateway) == []  # three times the median, and no more
        await called(gateway, 1)
        await house.clock.advance(300)
        [alert] = await wrong(gateway)
        assert (alert.kind, alert.subject) == ("cost_anomaly", "tool:test.find")
        assert (alert.facts["cost"], alert.facts["median"]) == (84_000, 24_000)
        await house.clock.advance(DAY)
        assert await wrong(gateway) == []


@requirement("TEL-3", "TEL-5")
async def test_a_task_that_costs_far_more_than_tasks_do_is_told(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        for number in range(defaults.COST_SAMPLES):
            await called(gateway, 1, task=f"t-{number}")
        await gateway.costs.report(ANA, "t-9", "model", 0.5)
        [alert] = await wrong(gateway)
        assert (alert.kind, alert.subject) == ("cost_anomaly", "task:t-9")
        assert (alert.facts["cost"], alert.facts["median"]) == (500_000, 12_000)


@requirement("TEL-3")
async def test_answers_and_effects_that_break_a_contract_are_told(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        await called(gateway, 1, "ship", key="k")
        assert await kinds(gateway) == {("effect_violation", "test.ship")}
        shop.mood = "lies"
        await called(gateway, 1, "count")
        assert await kinds(gateway) == {("effect_violation", "test.ship"), ("output_violation", "test.count")}
        await house.clock.advance(WINDOW)
        assert await wrong(gateway) == []


@requirement("TEL-3")
async def test_calls_of_a_tool_in_quarantine_are_told(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        gateway._ports.catalog.set_status("test.find", "1.0.0", ToolStatus.QUARANTINED)  # type: ignore[attr-defined]
        await called(gateway, 1)
        assert await kinds(gateway) == {("quarantined", "test.find")}


@requirement("TEL-3")
async def test_it_is_looked_for_beside_the_rest_of_housekeeping_and_not_too_often(
    house: House, shop: Shop
) -> None:
    async with watched(house, shop) as gateway:
        shop.mood = "broken"
        await called(gateway, 20)
        await gateway.tidy()
        assert await gateway.alerts.open(OLGA) == []
        await house.clock.advance(defaults.ALERT_EVERY_S)
        await gateway.tidy()
        assert [alert.kind for alert in await gateway.alerts.open(OLGA)] == ["degraded"]


@requirement("TEL-3")
async def test_alerts_can_be_switched_off_and_health_is_known_all_the_same(house: House, shop: Shop) -> None:
    async with watched(house, shop, enabled=False) as gateway:
        shop.mood = "broken"
        await called(gateway, 20)
        assert await wrong(gateway) == []
        assert gateway.health.of("default", "test.find") < 0.6


@requirement("TEL-3", "APR-7")
async def test_a_channel_is_told_once_that_it_began_and_once_that_it_is_over(
    house: House, shop: Shop
) -> None:
    told: list[Alert] = []
    async with watched(house, shop) as gateway:
        notices = gateway.notices.alert

        async def telling(alert: Alert) -> None:
            told.append(alert)
            await notices(alert)

        gateway.alerts._tell = telling
        shop.mood = "broken"
        await called(gateway, 20)
        await wrong(gateway)
        await house.clock.advance(WINDOW)
        await wrong(gateway)
        await wrong(gateway)
    assert [(alert.kind, alert.ended_at is None) for alert in told] == [
        ("degraded", True),
        ("degraded", False),
    ]
    assert told[0].id == told[1].id


@requirement("TEL-3", "AUT-6")
async def test_alerts_are_for_operators_and_of_their_own_tenant(house: House, shop: Shop) -> None:
    stranger = Principal(tenant="acme", user="oscar", roles=frozenset({"operator"}))
    async with watched(house, shop) as gateway:
        shop.mood = "broken"
        await called(gateway, 20)
        assert await wrong(gateway) != []
        assert await gateway.alerts.open(stranger) == []
        assert await gateway.alerts.list(stranger, 0.0) == []
        for asking in (gateway.alerts.open(ANA), gateway.alerts.list(ANA, 0.0)):
            with pytest.raises(Forbidden, match="'operator'"):
                await asking


@requirement("TEL-3")
async def test_a_store_that_is_away_ends_neither_housekeeping_nor_an_alert(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        shop.mood = "broken"
        await called(gateway, 20)
        [alert] = await wrong(gateway)
        reads, gateway.health._views = gateway.health._views, Away()  # type: ignore[assignment]
        await gateway.alerts.tend(("default",), now=True)
        gateway.health._views = reads
        assert [one.id for one in await gateway.alerts.open(OLGA)] == [alert.id]


@requirement("TEL-3")
async def test_alerts_long_over_are_forgotten(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        shop.mood = "broken"
        await called(gateway, 20)
        await wrong(gateway)
        await house.clock.advance(WINDOW)
        await wrong(gateway)
        assert await gateway.alerts.forget() == 0
        await house.clock.advance(defaults.ALERT_KEPT_S + 1)
        assert await gateway.alerts.forget() == 1
        assert await gateway.alerts.list(OLGA, 0.0) == []


def test_every_kind_has_one_name() -> None:
    assert len(set(KINDS)) == len(KINDS) == 13


class Away:
    async def traffic(self, tenant: str, since: float, until: float) -> None:
        raise StoreError("the database is away")


async def _driven(house: House, call: Any) -> Any:
    task = asyncio.ensure_future(call)
    await house.clock.drive(task)
    return task.result()
