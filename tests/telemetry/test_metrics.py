"""Is what happened counted, once, under the right name?"""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from holdfast import Effect, Gateway, Principal, Status, tool
from holdfast.model.errors import Code, NoEffect
from holdfast.telemetry import instruments as i
from holdfast.testing import ManualClock
from tests.lifecycle.world import World, invocations
from tests.requirements import requirement
from tests.telemetry.world import ANA, OLGA, PEOPLE, Open, locked, pay, samples, send, total


async def proposed(gateway: Gateway, name: str, arguments: Any, **more: Any) -> Any:
    return await gateway.call(name, arguments, **{"principal": ANA, **more})


NINE = {
    "tool_invocation_count_total",
    "tool_invocation_latency_ms_bucket",
    "tool_invocation_cost_total",
    "tool_invocation_retries_total",
    "tool_invocation_timeout_rate",
    "tool_idempotency_replay_rate",
    "tool_approval_pending_count",
    "tool_approval_resolution_time_ms_bucket",
    "tool_schema_validation_failure_rate",
}


@requirement("TEL-2")
async def test_the_nine_metrics_of_a_tool_boundary_are_all_there(open_gateway: Open) -> None:
    clock = ManualClock()
    async with open_gateway(pay, send, invocations([]), config=PEOPLE, clock=clock) as gateway:
        await proposed(gateway, "test.pay", {"amount": 1}, key="k-1")
        await proposed(gateway, "test.pay", {"amount": 1}, key="k-1")
        await proposed(gateway, "test.pay", {"amount": "x"}, key="k-2")
        work = asyncio.ensure_future(proposed(gateway, "test.keyed", {"thing": "flaky"}, key="k-3"))
        await clock.drive(work)
        held = await proposed(gateway, "test.send", {"to": "a"}, key="k-4")
        await proposed(gateway, "test.send", {"to": "b"}, key="k-5")
        await clock.advance(90)
        await gateway.decide(OLGA, held.approval.id, approve=True)
        await proposed(gateway, "test.send", {"to": "a"}, key="k-4")
        found = await samples(gateway)
    assert {sample.name for sample in found} >= NINE
    assert total(found, "tool_invocation_count_total", tool="test.pay") == 3
    assert total(found, "tool_invocation_retries_total", tool="test.keyed") == 1
    cost = {"tool": "test.send", "cost_category": "external_api", "currency": "EUR"}
    assert total(found, "tool_invocation_cost_total", **cost) == 0.5
    assert total(found, "tool_idempotency_replay_rate", tool="test.pay") == pytest.approx(1 / 3)
    assert total(
        found, "tool_schema_validation_failure_rate", tool="test.pay", phase="input"
    ) == pytest.approx(1 / 3)
    assert total(found, "tool_schema_validation_failure_rate", tool="test.pay", phase="output") == 0
    assert total(found, "tool_approval_pending_count", tool="test.send", approver_group="operator") == 1
    waited = {"tool": "test.send", "resolution": "approved"}
    assert total(found, "tool_approval_resolution_time_ms_count", **waited) == 1
    assert total(found, "tool_approval_resolution_time_ms_sum", **waited) == pytest.approx(90_000)
    assert total(found, "tool_approval_resolution_time_ms_bucket", le="60000.0", **waited) == 0
    assert total(found, "tool_approval_resolution_time_ms_bucket", le="150000.0", **waited) == 1
    assert total(found, "tool_invocation_timeout_rate", tool="test.pay", timeout_class="standard") == 0


@requirement("TEL-2")
@pytest.mark.parametrize(
    ("name", "arguments", "labels"),
    [
        ("test.pay", {"amount": 1}, {"status": "done", "gate": "", "code": "", "ran": "true"}),
        ("test.pay", {"amount": "1"}, {"status": "refused", "gate": "arguments", "code": "TYPE_MISMATCH"}),
        ("test.pay", {"amount": -1}, {"status": "refused", "gate": "semantics", "ran": "false"}),
        ("test.pay", {"amount": 13}, {"status": "failed", "gate": "", "code": "SEMANTIC_INVALIDITY"}),
        ("test.pay", {"amount": 99}, {"status": "unknown", "gate": "", "code": "OUTCOME_UNKNOWN"}),
        ("test.send", {"to": "x"}, {"status": "held", "gate": "approval", "code": "APPROVAL_REQUIRED"}),
        ("test.locked", {"name": "x"}, {"tool": "test.locked", "code": "PERMISSION_DENIED"}),
        ("made.up", {}, {"tool": "unknown", "effect": "unknown", "code": "TOOL_NOT_FOUND"}),
    ],
)
async def test_a_proposal_is_counted_once_by_how_it_was_answered(
    open_gateway: Open, name: str, arguments: Any, labels: dict[str, str]
) -> None:
    ana = replace(ANA, scopes=frozenset({"a:b"}))
    async with open_gateway(pay, send, locked, config=PEOPLE) as gateway:
        await proposed(gateway, name, arguments, key="k", principal=ana)
        found = await samples(gateway)
    counted = [sample for sample in found if sample.name == i.CALLS]
    assert [sample.value for sample in counted] == [1]
    assert labels.items() <= counted[0].labels.items()
    assert set(counted[0].labels) == set(i.COUNTED[i.CALLS].labels)
    assert counted[0].labels["recorded"] == "true"


@requirement("TEL-2")
async def test_what_a_caller_makes_up_never_becomes_a_label(open_gateway: Open) -> None:
    async with open_gateway(pay) as gateway:
        for number in range(5):
            await proposed(gateway, f"made.up{number}", {}, version="9.9.9")
        found = await samples(gateway)
    assert total(found, i.CALLS, tool="unknown") == 5
    assert len([sample for sample in found if sample.name == i.CALLS]) == 1


@requirement("TEL-2", "IDM-3")
async def test_what_became_of_known_keys_is_counted(open_gateway: Open, world: World) -> None:
    clock = ManualClock()
    async with open_gateway(world, clock=clock) as gateway:
        await proposed(gateway, "test.touch", {"thing": "a"}, key="k-1")
        await proposed(gateway, "test.touch", {"thing": "a"}, key="k-1")
        await proposed(gateway, "test.touch", {"thing": "b"}, key="k-1")
        world.mood = "no_effect"
        await proposed(gateway, "test.touch", {"thing": "c"}, key="k-2")
        world.mood = "wait"
        first = asyncio.ensure_future(proposed(gateway, "test.touch", {"thing": "c"}, key="k-2"))
        await world.entered.wait()
        second = asyncio.ensure_future(proposed(gateway, "test.touch", {"thing": "c"}, key="k-2"))
        await clock.quiet()  # until it waits for the first
        world.release.set()
        await clock.drive(asyncio.gather(first, second))
        found = await samples(gateway)
    results = {sample.labels["result"]: sample.value for sample in found if sample.name == i.KEY_MATCHES}
    assert results == {"replayed": 1, "mismatch": 1, "resumed": 1, "waited": 1}


@requirement("TEL-2")
async def test_a_repetition_that_could_act_twice_is_counted_where_it_is_not_made(open_gateway: Open) -> None:
    async with open_gateway(pay) as gateway:
        await proposed(gateway, "test.pay", {"amount": 99}, key="k")
        found = await samples(gateway)
        assert total(found, i.UNSAFE_RETRIES, by="gateway") == 1
        again = await proposed(gateway, "test.pay", {"amount": 99}, key="k")
        assert (again.status, again.replayed) == (Status.UNKNOWN, True)
        found = await samples(gateway)
    assert total(found, i.UNSAFE_RETRIES, by="caller") == 1
    assert total(found, i.CALLS, status="unknown") == 2


@requirement("TEL-2", "APR-3")
async def test_a_question_nobody_answers_is_counted_when_its_time_is_up(open_gateway: Open) -> None:
    clock = ManualClock()
    async with open_gateway(send, config=PEOPLE, clock=clock) as gateway:
        await proposed(gateway, "test.send", {"to": "a"}, key="k")
        await clock.advance(601)
        await gateway.tidy()
        await gateway.tidy()
        found = await samples(gateway)
    assert total(found, f"{i.DECIDED}_count", resolution="auto_denied") == 1
    assert total(found, f"{i.DECIDED}_sum", resolution="auto_denied") == pytest.approx(600_000)
    assert total(found, i.PENDING) == 0


@requirement("TEL-2")
async def test_settlements_are_counted_by_who_found_out_and_never_by_name(open_gateway: Open) -> None:
    async with open_gateway(pay, config=PEOPLE) as gateway:
        lost = await proposed(gateway, "test.pay", {"amount": 99}, key="k")
        await gateway.settle(OLGA, lost.call_id, "committed", "seen in the books")
        found = await samples(gateway)
    (settled,) = (sample for sample in found if sample.name == i.SETTLED)
    assert settled.labels == {"tool": "test.pay", "state": "committed", "by": "person"}


@requirement("TEL-2")
async def test_a_probe_and_the_sweep_are_counted_apart_and_their_reads_are_no_proposals(
    open_gateway: Open, world: World
) -> None:
    world.mood = "raise"
    async with open_gateway(world) as gateway:
        done = await proposed(gateway, "test.touch_probed", {"thing": "a"}, key="k")
        found = await samples(gateway)
    assert done.status is Status.DONE
    assert total(found, i.SETTLED, by="probe", state="committed") == 1
    assert total(found, i.READINGS, tool="test.look", status="done") == 1
    assert total(found, i.CALLS) == 1


@requirement("TEL-2")
async def test_a_call_beyond_its_deadline_counts_as_one_whatever_it_is_called(
    open_gateway: Open, world: World
) -> None:
    clock = ManualClock()
    world.mood = "hang"
    async with open_gateway(world, clock=clock) as gateway:
        work = asyncio.ensure_future(
            proposed(gateway, "test.touch", {"thing": "a"}, key="k", deadline_ms=200)
        )
        await clock.drive(work)
        found = await samples(gateway)
    assert work.result().status is Status.UNKNOWN
    assert total(found, i.TIMEOUTS, tool="test.touch") == 1
    assert total(found, i.TIMEOUT_RATE, tool="test.touch") == 1
    assert total(found, f"{i.LATENCY}_bucket", tool="test.touch", le="100.0") == 0
    assert total(found, f"{i.LATENCY}_bucket", tool="test.touch", le="500.0") == 1


@requirement("TEL-2")
async def test_breakers_bulkheads_and_calls_under_way_can_be_seen(open_gateway: Open, world: World) -> None:
    clock = ManualClock()

    @tool(effect=Effect.READ_ONLY, max_retries=0)
    async def sick(thing: str) -> str:
        """Fail."""
        raise NoEffect("down", Code.DEPENDENCY_UNAVAILABLE)

    async with open_gateway(world, sick, clock=clock) as gateway:
        for _ in range(5):
            await proposed(gateway, "test.sick", {"thing": "a"})
        world.mood = "wait"
        work = asyncio.ensure_future(proposed(gateway, "test.touch", {"thing": "a"}, key="k"))
        await world.entered.wait()
        found = await samples(gateway)
        world.release.set()
        await work
    assert total(found, i.BREAKER, tool="test.sick", state="open") == 1
    assert total(found, i.BREAKER, tool="test.sick", state="closed") == 0
    assert (total(found, i.IN_USE, upstream="test"), total(found, i.SIZE, upstream="test")) == (1, 32)
    assert total(found, i.IN_FLIGHT) == 1


@requirement("TEL-2")
async def test_what_is_turned_away_before_any_gate_is_a_proposal_all_the_same(open_gateway: Open) -> None:
    config = {"limits": {"ingress": {"rate": 0.001, "burst": 1}}}
    async with open_gateway(pay, config=config) as gateway:
        await proposed(gateway, "test.pay", {"amount": 1}, key="k")
        away = await proposed(gateway, "test.pay", {"amount": 1}, key="k")
        found = await samples(gateway)
    assert away.code is Code.RATE_LIMITED
    assert total(found, i.CALLS) == 2
    assert total(found, i.CALLS, gate="ingress", code="RATE_LIMITED", recorded="false") == 1


@requirement("TEL-2", "AUT-6")
async def test_a_tenant_sees_its_own_numbers_and_no_trace_of_others(open_gateway: Open) -> None:
    keys = [
        {"id": name * 4, "hash": "sha256:" + "0" * 64, "user": user}
        for name, user in (("a", "ana"), ("b", "ben"), ("s", "scraper"))
    ]
    people = {
        "ana": {"tenant": "one", "scopes": ["**"], "roles": ["operator"]},
        "ben": {"tenant": "two", "scopes": ["**"], "roles": ["operator"]},
        "scraper": {"tenant": "ops"},
    }
    config = {
        "auth": {"mode": "api_key", "people": people, "keys": keys},
        "telemetry": {"all_tenants": ["scraper"], "tenant_label": True},
    }
    one = Principal(tenant="one", user="ana", scopes=frozenset({"**"}), roles=frozenset({"operator"}))
    two = replace(one, tenant="two", user="ben")
    scraper = Principal(tenant="ops", user="scraper")
    async with open_gateway(pay, locked, send, config=config) as gateway:
        await proposed(gateway, "test.pay", {"amount": 1}, key="k", principal=one)
        await proposed(gateway, "test.locked", {"name": "x"}, principal=two)
        await proposed(gateway, "test.pay", {"amount": 1}, key="k", principal=two)
        ones, twos, all_of_it = [await samples(gateway, by) for by in (one, two, scraper)]
    assert (total(ones, i.CALLS), total(twos, i.CALLS), total(all_of_it, i.CALLS)) == (1, 2, 3)
    assert not any("test.locked" in sample.labels.values() for sample in ones)
    assert not any("tenant" in sample.labels for sample in (*ones, *twos))
    assert not any(sample.name.startswith("holdfast_") for sample in (*ones, *twos))
    assert {s.labels["tenant"] for s in all_of_it if s.name == i.CALLS} == {"one", "two"}


@requirement("TEL-2", "AUT-6")
async def test_without_the_label_tenants_are_added_up(open_gateway: Open) -> None:
    async with open_gateway(pay) as gateway:
        for tenant in ("one", "two"):
            await proposed(gateway, "test.pay", {"amount": 1}, key="k", principal=replace(ANA, tenant=tenant))
        found = await samples(gateway)
    (counted,) = (sample for sample in found if sample.name == i.CALLS)
    assert counted.value == 2
    assert "tenant" not in counted.labels
    assert total(found, f"{i.LATENCY}_count", tool="test.pay") == 2


@requirement("TEL-2")
async def test_an_answer_that_does_not_fit_is_counted_although_its_write_is_unknown(
    open_gateway: Open,
) -> None:
    async with open_gateway(pay) as gateway:
        answer = await proposed(gateway, "test.pay", {"amount": 77}, key="k")
        found = await samples(gateway)
    assert answer.status is Status.UNKNOWN
    assert total(found, i.OUTPUT_INVALID, tool="test.pay") == 1
    assert total(found, i.SCHEMA_RATE, tool="test.pay", phase="output") == 1


@requirement("TEL-2")
async def test_capabilities_can_be_joined_to_the_tools_that_were_called(open_gateway: Open) -> None:
    async with open_gateway(pay, send, config=PEOPLE) as gateway:
        await proposed(gateway, "test.pay", {"amount": 1}, key="k")
        found = await samples(gateway)
    assert [s.labels for s in found if s.name == i.CAPABILITY] == [
        {"tool": "test.pay", "version": "1.0.0", "capability": "pay"}
    ]


async def test_every_metric_there_is_has_the_labels_the_table_gives_it(open_gateway: Open) -> None:
    async with open_gateway(pay, send, config=PEOPLE) as gateway:
        await proposed(gateway, "test.pay", {"amount": 99}, key="k")
        await proposed(gateway, "test.send", {"to": "a"}, key="k")
        found = await samples(gateway)
    for sample in found:
        name = sample.name
        for suffix in ("_bucket", "_count", "_sum"):
            if name not in i.INSTRUMENTS:
                name = sample.name.removesuffix(suffix)
        assert set(sample.labels) - {"le"} == set(i.INSTRUMENTS[name].labels), sample.name
