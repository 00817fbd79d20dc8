"""Does every call's cost come down to the last millionth, whichever way it is added up?"""

import asyncio
from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from holdfast import Principal
from holdfast.gateway.costs import GROUPS
from holdfast.model.bounds import Bounds
from holdfast.model.contract import Affordance, Contract, Cost, Identity, Runtime, Transactional
from holdfast.model.costs import MOST, PARTS, REPORTED, declared, reported
from holdfast.model.errors import Forbidden, HoldfastError
from holdfast.model.vocabulary import Effect
from holdfast.upstreams.mcp.answers import answered
from holdfast.upstreams.mcp.hidden import Hidden
from tests.approvals.opening import House
from tests.figures.shop import ANA, BEN, CONFIG, OLGA, Shop, called, watched
from tests.requirements import requirement

DAY = 86_400.0


def recorded(house: House) -> Counter[tuple[str, str]]:
    """What the outcomes in the log say, by currency and part."""
    sums: Counter[tuple[str, str]] = Counter()
    for record in house.records():
        cost = orjson.loads(record.body).get("cost") or {"parts": {}}
        for part, amount in cost["parts"].items():
            sums[cost["currency"], part] += amount
    return sums


@requirement("TEL-5")
async def test_every_way_to_add_costs_up_comes_to_what_the_records_say(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        await called(gateway, 7, task="t-1")
        await called(gateway, 3, by=BEN)
        await called(gateway, 2, "sell", key="k", task="t-1")  # the second is a replay
        shop.cost = 0.123457
        await called(gateway, 2, task="t-2")
        shop.mood, shop.cost = "broken", 0.0
        await called(gateway, 1, task="t-2")
        await house.clock.advance(DAY)
        shop.mood = "well"
        await called(gateway, 4)
        await gateway.costs.report(ANA, "t-1", "model", 0.25)
        await gateway.costs.report(ANA, "t-1", "retrieval", 0.000001)
        for group in GROUPS:
            found: Counter[tuple[str, str]] = Counter()
            for one in await gateway.costs.sums(OLGA, group, 0.0):
                assert one.cost == sum(one.parts.values())
                for part, cost in one.parts.items():
                    found[one.currency, part] += cost
            assert found == recorded(house), group
        tools = {
            one.name: (one.calls, dict(one.parts)) for one in await gateway.costs.sums(OLGA, "tool", 0.0)
        }
        tasks = {one.name: one.cost for one in await gateway.costs.sums(OLGA, "task", 0.0)}
        days = [one.calls for one in await gateway.costs.sums(OLGA, "day", 0.0)]
    assert tools["test.find"] == (17, {"compute": 170_000, "token": 15 * 2_000 + 2 * 123_457})
    assert tools["test.sell"] == (1, {"network": 1_000_000})
    assert tools[""] == (0, {"model": 250_000, "retrieval": 1})
    assert tasks["t-1"] == 7 * 12_000 + 1_000_000 + 250_001
    assert tasks["t-2"] == 3 * 10_000 + 2 * 123_457 + 2_000
    assert days == [14, 4]


@requirement("TEL-5")
async def test_every_attempt_costs(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        shop.mood, shop.takes_s = "away", 0.0
        task = asyncio.ensure_future(gateway.call("test.ask", {"thing": "x"}, principal=ANA))
        await house.clock.drive(task)
        [one] = await gateway.costs.sums(OLGA, "tool", 0.0)
    assert task.result().attempts == 3
    assert (one.calls, one.parts) == (1, {"external_api": 1_500_000})


@requirement("TEL-5")
async def test_the_time_of_people_who_approved_counts_with_the_call(house: House, shop: Shop) -> None:
    config = {**CONFIG, "approvals": {"cost_per_decision": 1.5}}
    async with house.gateway(shop, config=config) as gateway:
        held = await gateway.call("test.refund", {"thing": "x"}, principal=ANA, key="k")
        assert held.approval is not None
        assert await gateway.costs.sums(OLGA, "part", 0.0) == []
        await gateway.decide(OLGA, held.approval.id, approve=True)
        for _ in range(2):  # the second is a replay
            await gateway.call("test.refund", {"thing": "x"}, principal=ANA, key="k")
        sums = {one.name: one.cost for one in await gateway.costs.sums(OLGA, "part", 0.0)}
    assert sums == {"external_api": 2_000_000, "human_review": 1_500_000}


@requirement("TEL-5")
async def test_what_costs_nothing_leaves_nothing_in_the_records(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        await called(gateway, 2, "peek")
        assert await gateway.costs.sums(OLGA, "tool", 0.0) == []
    assert not any(b'"cost"' in record.body.encode() for record in house.records())


@requirement("TEL-5", "AUT-6")
async def test_people_see_their_own_costs_and_operators_those_of_their_tenant(
    house: House, shop: Shop
) -> None:
    stranger = Principal(tenant="acme", user="olga", roles=frozenset({"operator"}))
    bound = Principal(
        user="ana", agent="bot", scopes=frozenset({"**"}), bounds=Bounds(tools=frozenset({"test.*"}))
    )
    async with watched(house, shop) as gateway:
        await called(gateway, 2)
        await called(gateway, 1, by=BEN)
        [own] = await gateway.costs.sums(ANA, "caller", 0.0)
        both = await gateway.costs.sums(OLGA, "caller", 0.0)
        assert (own.name, own.cost) == ("ana", 24_000)
        assert [(one.name, one.cost) for one in both] == [("ana", 24_000), ("ben", 12_000)]
        assert await gateway.costs.sums(stranger, "tenant", 0.0) == []
        with pytest.raises(Forbidden, match="single calls"):
            await gateway.costs.sums(bound, "tool", 0.0)


@requirement("TEL-5")
@pytest.mark.parametrize(
    ("task", "part", "amount", "currency", "why"),
    [
        ("t", "compute", 1.0, "USD", "'model' or 'retrieval'"),
        ("", "model", 1.0, "USD", "name the task"),
        ("t" * 201, "model", 1.0, "USD", "200 characters"),
        ("t", "model", -1.0, "USD", "between 0 and"),
        ("t", "model", float("nan"), "USD", "between 0 and"),
        ("t", "model", MOST * 2, "USD", "between 0 and"),
        ("t", "model", 1.0, "dollars", "three capital letters"),
    ],
)
async def test_a_report_that_cannot_be_is_refused(
    house: House, shop: Shop, task: str, part: str, amount: float, currency: str, why: str
) -> None:
    async with watched(house, shop) as gateway:
        with pytest.raises(HoldfastError, match=why):
            await gateway.costs.report(ANA, task, part, amount, currency)
        assert await gateway.costs.sums(OLGA, "task", 0.0) == []


@requirement("TEL-5")
async def test_the_metric_tells_the_parts_apart(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        await called(gateway, 2)
        text = (await gateway.metrics(OLGA)).decode()
    cost = 'tool_invocation_cost_total{cost_category="%s",currency="USD",tool="test.find",version="1.0.0"} %s'
    assert cost % ("compute", 0.02) in text
    assert cost % ("token", 0.004) in text


@requirement("TEL-5", "NAM-4")
async def test_the_caller_is_told_what_the_tool_reports(house: House, shop: Shop) -> None:
    async with watched(house, shop) as gateway:
        plain = await gateway.call("test.find", {"thing": "x"}, principal=ANA)
        shop.cost = 0.5
        dear = await gateway.call("test.find", {"thing": "x"}, principal=ANA)
    assert plain.cost == {"currency": "USD", "amount": 0.012, "unit": "call"}
    assert dear.cost == {"currency": "USD", "amount": 0.51, "unit": "call"}


# --- what a contract declares and a tool reports ---------------------------------------------------


@requirement("TEL-5", "CON-1")
@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ({}, {}),
        ({"per_call": 0.25}, {"external_api": 250_000}),
        ({"per_call": 0.25, "categories": ("token",)}, {"token": 250_000}),
        ({"per_call": 0.25, "categories": ("token", "network")}, {"external_api": 250_000}),
        ({"per_call": 0.25, "categories": ("favours",)}, {"external_api": 250_000}),
        ({"parts": {"compute": 0.1, "network": 0.2}}, {"compute": 100_000, "network": 200_000}),
        ({"parts": dict.fromkeys(PARTS, 0.1), "per_call": 0.6}, dict.fromkeys(PARTS, 100000)),
    ],
)
def test_a_contract_says_what_a_call_costs_by_part(said: dict[str, Any], parts: dict[str, int]) -> None:
    assert declared(Cost(**said)) == parts


@requirement("TEL-5")
def test_the_parts_add_up_to_the_cost_of_a_call() -> None:
    assert Cost(parts={"compute": 0.1, "network": 0.2}).per_call == 0.3
    with pytest.raises(ValidationError, match=r"add up to 0\.3, not to 'per_call' 0\.5"):
        Cost(parts={"compute": 0.1, "network": 0.2}, per_call=0.5)
    for wrong in ({"favours": 1.0}, {"compute": -1.0}):
        with pytest.raises(ValidationError):
            Cost(parts=wrong)  # type: ignore[arg-type]


@requirement("TEL-5")
def test_a_contract_without_parts_is_the_same_promise_as_before() -> None:
    def contract(cost: Cost) -> Contract:
        return Contract(
            identity=Identity(namespace="shop", name="find", version="1.0.0"),
            affordance=Affordance(description="finds", input_schema={"type": "object"}),
            runtime=Runtime(cost=cost),
            transactional=Transactional(effect=Effect.READ_ONLY),
        )

    plain = contract(Cost(per_call=0.25))
    assert plain.digest == "ce5408dc9dea3be844d0b814f9f7cbaa8eb757e65509f9427fca6035d417e886"
    assert contract(Cost(parts={"compute": 0.25})).digest != plain.digest


@requirement("TEL-5")
@pytest.mark.parametrize(
    ("said", "believed"),
    [
        (0.5, {"external_api": 500_000}),
        (3, {"external_api": 3_000_000}),
        ({"token": 0.02, "compute": 0}, {"token": 20_000, "compute": 0}),
        ({}, None),
        ({"human_review": 1}, None),
        ({"token": 1, "favours": 2}, None),
        ({"token": "1"}, None),
        ({"token": True}, None),
        ({"token": -1}, None),
        ({"token": float("inf")}, None),
        (MOST + 1, None),
        ("free", None),
        ([1], None),
    ],
)
def test_a_tool_is_believed_what_it_can_know(said: object, believed: dict[str, int] | None) -> None:
    assert reported(said) == believed


@requirement("TEL-5")
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text() | st.sampled_from(PARTS), x),
    )
)
def test_no_report_breaks_a_call(said: object) -> None:
    found = reported(said)
    assert found is None or all(type(cost) is int and cost >= 0 for cost in found.values())


@requirement("TEL-5")
@pytest.mark.parametrize(
    ("meta", "cost"),
    [
        ({REPORTED: {"token": 0.02}}, {"token": 0.02}),
        ({REPORTED: 1}, 1),
        ({}, None),
        (None, None),
        ([1], None),
    ],
)
def test_an_mcp_server_reports_beside_its_answer(meta: Any, cost: Any) -> None:
    answer = answered("tools/call", {"content": [], "_meta": meta}, Hidden())
    assert answer.cost == cost


@requirement("TEL-5")
async def test_nobody_fills_the_log_with_reports_faster_than_with_calls(house: House, shop: Shop) -> None:
    tree = {**CONFIG, "limits": {"ingress": {"rate": 1, "burst": 3}}}
    async with house.gateway(shop, config=tree) as gateway:
        for _ in range(3):
            await gateway.costs.report(ANA, "t-1", "model", 0.25)
        with pytest.raises(HoldfastError, match="too many reports"):
            await gateway.costs.report(ANA, "t-1", "model", 0.25)
        await gateway.costs.report(BEN, "t-1", "model", 0.25)
        with pytest.raises(HoldfastError, match="name the task"):
            await gateway.costs.report(BEN, "t-\ud800", "model", 0.25)
