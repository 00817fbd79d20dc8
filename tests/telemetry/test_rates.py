"""Do the formulas of the rates give the shares they are named after?"""

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest

from holdfast import Effect, Floor, Gateway, Undo, tool
from holdfast.model.call import Call, Decision
from holdfast.model.errors import Code
from holdfast.model.operation import OperationRef
from holdfast.telemetry import instruments as i
from holdfast.telemetry.rates import S1_GAUGES, S3, S3_QUERIES, S4, S4_LATER, Rate, calls, term
from holdfast.telemetry.repairs import MAX_OPERATIONS, Repairs
from holdfast.testing import ManualClock
from tests.lifecycle.world import World, invocations
from tests.requirements import requirement
from tests.telemetry.world import ANA, OLGA, PEOPLE, Open, locked, pay, samples, send

S4_TABLE = """First-Pass Schema Valid Rate, Schema-Valid Call Rate, Semantic-Valid Rate,
Validation Failure Rate, Repair Success Rate, Repair Saturation Rate, Unauthorized Proposal Rate,
Policy Violation Rate, Confirmation Required Rate, Confirmation Rejection Rate,
Confirmation Bypass Attempt Rate,
Idempotency Replay Rate, Idempotency Conflict Rate, Retry Success Rate, Unsafe Retry Block Rate,
Observation Normalization Failure Rate, Post-Action Verification Required Rate, Compensation Success Rate,
Tool Cost per Successful Action, Trace Completeness Rate"""


async def proposed(gateway: Gateway, name: str, arguments: Any, **more: Any) -> Any:
    return await gateway.call(name, arguments, **{"principal": ANA, **more})


async def value(gateway: Gateway, name: str) -> float | None:
    rate = next(rate for rate in (*S4, *S3) if rate.name == name)
    return rate.values(await samples(gateway)).get(())


@requirement("TEL-2")
def test_every_rate_is_defined_or_says_what_it_waits_for() -> None:
    wanted = re.split(r",\s+", S4_TABLE)
    assert len(wanted) == 20
    assert sorted([*(rate.name for rate in S4), *S4_LATER]) == sorted(wanted)
    assert len(S3) == 5


@requirement("TEL-2")
def test_every_formula_asks_only_for_metrics_and_labels_that_exist() -> None:
    parts = (f"{name}{end}" for name in (i.LATENCY, i.DECIDED) for end in ("_count", "_sum"))
    known = {**i.INSTRUMENTS, **{part: i.INSTRUMENTS[part.rpartition("_")[0]] for part in parts}}
    gauges = [rate for rates in S1_GAUGES.values() for rate in rates]
    for rate in (*S4, *S3, *gauges):
        for one in (*rate.over, *rate.under):
            assert {where.label for where in one.where} | set(rate.by) <= set(known[one.metric].labels), (
                rate.name
            )
    for query in S3_QUERIES.values():
        assert {name.removesuffix("_bucket") for name in re.findall(r"\b(tool_\w+)", query)} <= set(known)


def test_a_formula_is_written_as_promql() -> None:
    one = Rate("r", (calls(("gate", "!~", "a|b")),), (calls(),), "", by=("tool",))
    assert one.promql == (
        'sum by (tool)(increase(tool_invocation_count_total{gate!~"a|b"}[1h])) / '
        "sum by (tool)(increase(tool_invocation_count_total[1h]))"
    )
    both = Rate("r", (calls(), term(i.REPAIRS, sign=-1)), (calls(),), "")
    assert both.promql == (
        "((sum(increase(tool_invocation_count_total[1h])) or vector(0)) - "
        "(sum(increase(tool_repair_loops_total[1h])) or vector(0))) / "
        "sum(increase(tool_invocation_count_total[1h]))"
    )


@requirement("TEL-2")
async def test_the_rates_of_proposals(open_gateway: Open) -> None:
    ben = replace(ANA, user="ben", scopes=frozenset({"a:b"}))
    async with open_gateway(pay, locked) as gateway:
        await proposed(gateway, "test.pay", {"amount": 1}, key="k-1")
        await proposed(gateway, "test.pay", {"amount": "x"}, key="k-2")  # the model repairs this one
        await proposed(gateway, "test.pay", {"amount": 2}, key="k-2")
        for _ in range(4):  # and gives up on this one after three repairs
            await proposed(gateway, "test.pay", {"amount": "x"}, key="k-3")
        await proposed(gateway, "test.pay", {"amount": -1}, key="k-4")
        await proposed(gateway, "test.locked", {"name": "x"}, principal=ben)
        await proposed(gateway, "test.nothing", {})
        shares = {
            "First-Pass Schema Valid Rate": 2 / 10,
            "Schema-Valid Call Rate": 3 / 10,
            "Semantic-Valid Rate": 2 / 3,
            "Validation Failure Rate": 8 / 10,
            "Repair Success Rate": 1 / 2,
            "Repair Saturation Rate": 1 / 2,
            "Unauthorized Proposal Rate": 1 / 10,
            "Policy Violation Rate": 0,
            "Trace Completeness Rate": 1,
            "Permission-violation rate": 1 / 10,
        }
        assert {name: await value(gateway, name) for name in shares} == pytest.approx(shares)


@requirement("TEL-2")
async def test_the_rates_of_policy_and_of_what_is_never_recorded(open_gateway: Open) -> None:
    prod = {"environment": "prod", "limits": {"ingress": {"rate": 0.001, "burst": 3}}}
    async with open_gateway(pay, config=prod) as gateway:  # no policy is loaded there
        for number in range(4):
            await proposed(gateway, "test.pay", {"amount": 1}, key=f"k-{number}")
        assert await value(gateway, "Policy Violation Rate") == 3 / 4
        assert await value(gateway, "Trace Completeness Rate") == 3 / 4


@requirement("TEL-2")
async def test_the_rates_of_keys_and_retries(open_gateway: Open, world: World) -> None:
    clock = ManualClock()
    async with open_gateway(pay, invocations([]), clock=clock) as gateway:
        for amount in (1, 1, 1, 2):
            await proposed(gateway, "test.pay", {"amount": amount}, key="k-1")
        work = asyncio.ensure_future(proposed(gateway, "test.keyed", {"thing": "flaky"}, key="k-2"))
        await clock.drive(work)
        await proposed(gateway, "test.pay", {"amount": 99}, key="k-3")
        await proposed(gateway, "test.pay", {"amount": 99}, key="k-3")
        await proposed(gateway, "test.pay", {"amount": 77}, key="k-4")
        shares = {
            "Idempotency Replay Rate": 3 / 8,
            "Idempotency Conflict Rate": 1 / 4,
            "Idempotent-replay correctness": 1,
            "Retry Success Rate": 1,
            "Unsafe Retry Block Rate": 3 / 4,
            "Observation Normalization Failure Rate": 1 / 4,
        }
        assert {name: await value(gateway, name) for name in shares} == pytest.approx(shares)


@requirement("TEL-2")
async def test_the_rates_of_approvals_and_their_cost(open_gateway: Open) -> None:
    clock = ManualClock()
    async with open_gateway(pay, send, config=PEOPLE, clock=clock) as gateway:
        asked = [await proposed(gateway, "test.send", {"to": f"{n}"}, key=f"k-{n}") for n in range(4)]
        await proposed(gateway, "test.send", {"to": "0"}, key="k-0")  # asking again is no new question
        await gateway.decide(OLGA, asked[0].approval.id, approve=True)
        await gateway.decide(OLGA, asked[1].approval.id, approve=False)
        await proposed(gateway, "test.send", {"to": "0"}, key="k-0")
        await proposed(gateway, "test.pay", {"amount": 1}, key="p-1")
        await proposed(gateway, "test.pay", {"amount": 2}, key="p-2")
        shares = {
            "Confirmation Required Rate": 4 / 8,
            "Confirmation Rejection Rate": 1 / 4,
            "Post-Action Verification Required Rate": 1 / 3,
            "Tool Cost per Successful Action": 0.5 / 3,
        }
        assert {name: await value(gateway, name) for name in shares} == pytest.approx(shares)


class Rising:
    """Asks for an operator, and for two from some time on."""

    version = "rising"
    floor = Floor.OPERATOR

    def decide(self, call: Call) -> Decision:
        return Decision(id="pd_1", allow=True, floor=self.floor, version=self.version)


@requirement("TEL-2")
async def test_running_with_an_approval_that_is_not_enough_is_a_bypass_attempt(open_gateway: Open) -> None:
    policy = Rising()
    async with open_gateway(pay, config=PEOPLE, policy=policy) as gateway:
        held = await proposed(gateway, "test.pay", {"amount": 1}, key="k-1")
        await proposed(gateway, "test.pay", {"amount": 1}, key="k-2")
        await gateway.decide(OLGA, held.approval.id, approve=True)
        policy.floor = Floor.TWO_PERSON
        refused = await proposed(gateway, "test.pay", {"amount": 1}, key="k-1")
        assert refused.code is Code.APPROVAL_DENIED
        assert await value(gateway, "Confirmation Bypass Attempt Rate") == 1 / 2
        assert await value(gateway, "Approval-mode misclassification rate") == 1 / 3


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.EXACT,
    manifest=[("things", "UPDATE", "thing")],
    idempotency={},
    postconditions=[{"read": {"tool": "test.look", "arguments": {"thing": "=args.thing"}}, "holds": "false"}],
)
async def touch_wrongly(thing: str) -> str:
    """Do something else than promised."""
    return thing


@requirement("TEL-2")
async def test_an_effect_other_than_declared_is_a_misclassified_approval_mode(
    open_gateway: Open, world: World
) -> None:
    async with open_gateway(world, touch_wrongly) as gateway:
        await proposed(gateway, "test.touch_wrongly", {"thing": "a"}, key="k-1")
        await proposed(gateway, "test.touch", {"thing": "a"}, key="k-2")
        assert await value(gateway, "Approval-mode misclassification rate") == 1 / 2
        by_upstream = next(rate for rate in S3 if rate.name == "Tool success rate by adapter")
        assert by_upstream.values(await samples(gateway)) == {("test",): 1 / 2}


REF = OperationRef("t", "p", "x", "k")


def test_a_repair_loop_begins_with_the_second_try_and_ends_once() -> None:
    repairs = Repairs()
    assert repairs.see(REF, refused=False) == ()
    assert repairs.see(REF, refused=True) == ()
    assert repairs.see(REF, refused=True) == ("triggered",)
    assert repairs.see(REF, refused=False) == ("repaired",)
    assert repairs.see(REF, refused=False) == ()
    assert repairs.see(None, refused=True) == ()


def test_what_repairs_remembers_is_bounded() -> None:
    repairs = Repairs()
    for number in range(MAX_OPERATIONS + 1):
        repairs.see(REF._replace(key=str(number)), refused=True)
    assert repairs.see(REF._replace(key="0"), refused=False) == ()
    assert repairs.see(REF._replace(key="1"), refused=False) == ("triggered", "repaired")
