"""What do the spans of a call tell, and what does a call cost that has none?"""

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from holdfast import Invocation, tool
from holdfast.execution.runtime import Runtime
from holdfast.lifecycle import GATES, PHASES
from holdfast.model.call import Call, Proposal
from holdfast.model.observation import Observation, Status
from holdfast.model.trail import Parent, outgoing
from holdfast.ports import Ports, Unwatched
from holdfast.stores.keyring import Keyring
from holdfast.telemetry import attributes as a
from holdfast.telemetry.spans import Spans
from holdfast.testing import ManualClock
from tests.lifecycle.world import World, invocations
from tests.requirements import requirement
from tests.telemetry.world import (
    ANA,
    PEOPLE,
    SPAN,
    TRACE,
    WRITE,
    Open,
    Seen,
    locked,
    pay,
    said,
    send,
    span_id,
)

WORK_S = 2.0
"""How long the clock, which the test moves, says the tool took."""
STEPS = [*(gate.__name__ for gate in GATES), "execute", "verify", "return"]


@requirement("TEL-1", "LIF-1")
async def test_a_call_is_one_span_with_a_child_for_each_gate_and_phase(
    open_gateway: Open, world: World, seen: Seen
) -> None:
    async with open_gateway(world, adapt=seen.adapt) as gateway:
        done = await gateway.call("test.touch", {"thing": "a"}, key="k-1", principal=ANA)
    call = seen.call()
    assert call.name == "execute_tool test.touch"
    assert f"{call.context.trace_id:032x}" == done.trace_id
    steps = seen.children(call)
    assert [step.name for step in steps] == STEPS
    phases = {**PHASES, "execute": "Execute", "verify": "Verify", "return": "Return"}
    assert [said(step)[a.PHASE] for step in steps] == [phases[name] for name in STEPS]
    gates = [step for step in steps if a.GATE in said(step)]
    assert [said(step)[a.GATE] for step in gates] == STEPS[: len(GATES)]
    assert {said(step)[a.VERDICT] for step in gates} == {"pass"}
    (attempt,) = seen.children(steps[len(GATES)])
    assert (attempt.name, said(attempt)) == ("attempt 1", {a.ATTEMPT: 1, a.UPSTREAM: "test"})


@requirement("TEL-1")
async def test_the_spans_of_a_call_lie_within_each_other(open_gateway: Open, seen: Seen) -> None:
    clock = ManualClock()

    @tool(**WRITE)
    async def wait(thing: str) -> str:
        """Let time pass."""
        await clock.sleep(WORK_S)
        return thing

    async with open_gateway(wait, adapt=seen.adapt, clock=clock) as gateway:
        work = asyncio.ensure_future(gateway.call("test.wait", {"thing": "a"}, key="k", principal=ANA))
        await clock.drive(work)
    spans = {span.name: span for span in seen.spans}
    times = {name: (span.start_time or 0, span.end_time or 0) for name, span in spans.items()}
    start, end = times["execute_tool test.wait"]
    assert round((end - start) / 1e9, 6) == WORK_S
    assert all(start <= began <= ended <= end for began, ended in times.values())
    assert times["attempt 1"] == times["execute"]
    assert round((times["execute"][1] - times["execute"][0]) / 1e9, 6) == WORK_S
    assert all(times[one][1] == times[two][0] for one, two in pairwise(STEPS))


@requirement("TEL-1", "CON-6")
async def test_a_call_says_what_the_conventions_ask_for(open_gateway: Open, world: World, seen: Seen) -> None:
    async with open_gateway(world, adapt=seen.adapt) as gateway:
        done = await gateway.call("test.touch", {"thing": "a"}, key="k-1", principal=ANA)
    told = said(seen.call())
    key_hash = told.pop(a.KEY_HASH)
    assert len(key_hash) == 64
    assert told == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "test.touch",
        "gen_ai.tool.call.id": done.call_id,
        "tool.name": "test.touch",
        "tool.version": "1.0.0",
        "tool.call_id": done.call_id,
        "tool.side_effect_class": "LOW_RISK_INTERNAL",
        "tool.validation.status": "passed",
        "tool.retryable": False,
        "tool.repairable": False,
        "tenant.id": "default",
        "trace.replayable": True,
        "contextos.action.approval_mode_effective": "local_write",
        "contextos.action.policy_decision_id": done.policy_decision_id,
        "holdfast.status": "done",
        "holdfast.replayed": False,
        "holdfast.attempts": 1,
        "holdfast.upstream": "test",
        "holdfast.reading": False,
    }


@requirement("TEL-1", "AUT-6")
async def test_a_key_is_hashed_under_its_tenants_own_key(
    open_gateway: Open, world: World, seen: Seen
) -> None:
    other = replace(ANA, tenant="other")
    async with open_gateway(world, adapt=seen.adapt) as gateway:
        for who, key in ((ANA, "order-7"), (ANA, "order-7"), (ANA, "order-8"), (other, "order-7")):
            await gateway.call("test.touch", {"thing": "a"}, key=key, principal=who)
    one, again, another, elsewhere = (said(span)[a.KEY_HASH] for span in seen.calls())
    assert one == again
    assert len({one, another, elsewhere}) == 3
    assert "order-7" not in repr([(span.name, said(span)) for span in seen.spans])


async def proposed(gateway: Any, name: str, arguments: Any, **more: Any) -> Observation:
    answer: Observation = await gateway.call(name, arguments, **{"principal": ANA, **more})
    return answer


@requirement("TEL-1")
@pytest.mark.parametrize(
    ("name", "arguments", "status", "validation", "code"),
    [
        ("test.pay", {"amount": 1}, "done", "passed", None),
        ("test.pay", {"amount": "1"}, "refused", "failed", "TYPE_MISMATCH"),
        ("test.pay", {"amount": -1}, "refused", "failed", "SEMANTIC_INVALIDITY"),
        ("test.pay", {"amount": 13}, "failed", "passed", "SEMANTIC_INVALIDITY"),
        ("test.pay", {"amount": 99}, "unknown", "passed", "OUTCOME_UNKNOWN"),
        ("test.send", {"to": "x"}, "held", "approval_pending", "APPROVAL_REQUIRED"),
        ("test.nothing", {}, "refused", "blocked", "TOOL_NOT_FOUND"),
        ("test.locked", {"name": "x"}, "refused", "blocked", "PERMISSION_DENIED"),
    ],
)
async def test_the_span_says_how_a_proposal_fared(
    open_gateway: Open, seen: Seen, name: str, arguments: Any, status: str, validation: str, code: str | None
) -> None:
    ana = replace(ANA, scopes=frozenset({"a:b"}))
    async with open_gateway(pay, send, locked, adapt=seen.adapt, config=PEOPLE) as gateway:
        await proposed(gateway, name, arguments, key="k", principal=ana)
    call = seen.call()
    told = said(call)
    assert (told[a.STATUS], told[a.VALIDATION], told.get(a.CODE)) == (status, validation, code)
    assert (
        (a.ERROR_TYPE in told)
        == (call.status.status_code.name == "ERROR")
        == (status not in ("done", "held"))
    )
    assert call.status.description is None
    assert (told[a.TOOL] == "unknown") == (name == "test.nothing")
    assert (a.APPROVAL in told) == (status == "held")


@requirement("TEL-1")
async def test_the_gate_that_decided_is_the_last_and_says_what_it_said(
    open_gateway: Open, seen: Seen
) -> None:
    async with open_gateway(pay, adapt=seen.adapt) as gateway:
        await proposed(gateway, "test.pay", {"amount": -1}, key="k")
        await proposed(gateway, "test.pay", {"amount": 1}, key="k")
        await proposed(gateway, "test.pay", {"amount": 1}, key="k")
    refused, repaired, replayed = seen.calls()
    *_, last, wrote = seen.children(refused)
    assert (last.name, said(last)[a.VERDICT], said(last)[a.CODE]) == (
        "semantics",
        "refusal",
        "SEMANTIC_INVALIDITY",
    )
    assert wrote.name == "return"
    assert said(repaired)[a.VALIDATION] == "repaired"
    assert [said(step).get(a.VERDICT) for step in seen.children(replayed)][-2:] == ["replay", None]
    assert said(replayed)[a.REPLAYED] is True


@requirement("TEL-1")
async def test_the_context_goes_from_the_caller_through_the_call_to_the_upstream(
    open_gateway: Open, seen: Seen
) -> None:
    served: list[Invocation] = []
    parent = Parent(SPAN, sampled=True, state="vendor=1")
    async with open_gateway(invocations(served), adapt=seen.adapt) as gateway:
        await gateway.call(
            "test.keyed", {"thing": "a"}, key="k", principal=ANA, trace_id=TRACE, parent=parent
        )
    call = seen.call()
    assert call.parent is not None
    assert (f"{call.parent.span_id:016x}", call.parent.is_remote) == (SPAN, True)
    assert (call.kind.name, call.context.trace_state.to_header()) == ("SERVER", "vendor=1")
    assert {f"{span.context.trace_id:032x}" for span in seen.spans} == {TRACE}
    attempt = next(span for span in seen.spans if span.name == "attempt 1")
    assert (served[0].traceparent, served[0].tracestate) == (f"00-{TRACE}-{span_id(attempt)}-01", "vendor=1")


@requirement("TEL-1")
async def test_every_attempt_is_a_span_of_its_own_that_the_upstream_knows(
    open_gateway: Open, seen: Seen
) -> None:
    served: list[Invocation] = []
    clock = ManualClock()
    async with open_gateway(invocations(served), adapt=seen.adapt, clock=clock) as gateway:
        work = asyncio.ensure_future(proposed(gateway, "test.keyed", {"thing": "flaky"}, key="k"))
        await clock.drive(work)
    first, second = (span for span in seen.spans if span.name.startswith("attempt"))
    assert [one.traceparent for one in served] == [
        f"00-{served[0].trace_id}-{span_id(one)}-01" for one in (first, second)
    ]
    assert said(first)[a.ERROR_TYPE] == "OUTCOME_UNKNOWN"
    assert a.ERROR_TYPE not in said(second)


@requirement("TEL-1")
async def test_a_reading_for_a_gate_is_inside_the_call_it_is_made_for(
    open_gateway: Open, world: World, seen: Seen
) -> None:
    async with open_gateway(world, adapt=seen.adapt) as gateway:
        world.mood = "raise"
        lost = await proposed(gateway, "test.touch_probed", {"thing": "a"}, key="k")
    assert lost.status is Status.DONE  # the probe saw it
    (outer,) = (span for span in seen.calls() if not said(span)[a.READING])
    (reading,) = (span for span in seen.calls() if said(span)[a.READING])
    assert reading.parent is not None
    assert (reading.parent.span_id, reading.kind.name) == (outer.context.span_id, "INTERNAL")
    assert reading.context.trace_id == outer.context.trace_id


@requirement("TEL-1", "DEC-6")
@pytest.mark.parametrize(
    ("sample", "parent", "kept"),
    [
        (1.0, None, True),
        (0.0, None, False),
        (1.0, Parent(SPAN, sampled=False), False),
        (0.0, Parent(SPAN, sampled=True), True),
    ],
)
async def test_who_began_a_trace_decides_whether_it_is_kept(
    open_gateway: Open, sample: float, parent: Parent | None, kept: bool
) -> None:
    seen, served = Seen(sample), list[Invocation]()
    async with open_gateway(invocations(served), adapt=seen.adapt) as gateway:
        await proposed(gateway, "test.keyed", {"thing": "a"}, key="k", trace_id=TRACE, parent=parent)
    assert bool(seen.spans) == kept
    assert served[0].traceparent is not None
    assert served[0].traceparent.startswith(f"00-{TRACE}-")
    assert served[0].traceparent.endswith("-01" if kept else "-00")
    if parent is not None and not kept:
        assert served[0].traceparent == f"00-{TRACE}-{SPAN}-00"


@requirement("TEL-1")
@pytest.mark.parametrize(("low", "kept"), [("0" * 16, True), ("3" + "f" * 15, True), ("4" + "0" * 15, False)])
async def test_a_share_of_traces_is_chosen_by_the_trace_itself(low: str, kept: bool) -> None:
    """So that every process keeps the same ones."""
    seen = Seen(0.25)
    call = begun(seen, trace_id="a" * 16 + low)
    assert (call.trail is not None) == kept


@pytest.mark.parametrize("trace", ["my-own-name", "", "f" * 31, "g" * 32, "0" * 32])
async def test_a_trace_that_no_span_can_have_is_not_sampled(trace: str) -> None:
    assert begun(Seen(), trace_id=trace).trail is None


def begun(seen: Seen, trace_id: str) -> Call:
    proposal = Proposal(tool="a.b", arguments={}, principal=ANA)
    call = Call(proposal=proposal, id="c", trace_id=trace_id, nonce="n", queued_at=0, started=0, deadline=1)
    Spans(SimpleSpanProcessor(seen.exporter), Keyring(b"r" * 32), PHASES, sample=seen.sample).begun(call)
    return call


class Ticking(ManualClock):
    """Counts how often it is looked at."""

    looks = 0

    def monotonic(self) -> float:
        self.looks += 1
        return super().monotonic()


@requirement("DEC-6")
async def test_an_unsampled_call_builds_nothing_and_reads_the_clock_no_more_than_an_unwatched_one(
    open_gateway: Open, world: World
) -> None:
    clock, unsampled, looks = Ticking(), Seen(0.0, metrics=False), list[int]()
    for adapt in (unwatched, unsampled.adapt):
        async with open_gateway(world, adapt=adapt, clock=clock) as gateway:
            before = clock.looks
            done = await proposed(gateway, "test.look", {"thing": "a"})
            looks.append(clock.looks - before)
            assert done.status is Status.DONE
    assert unsampled.spans == []
    assert looks[0] == looks[1] > 0


def unwatched(ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
    return replace(ports, telemetry=Unwatched()), runtime


class Broken(Unwatched):
    def ended(self, call: Call, observation: Observation) -> None:
        raise RuntimeError("no more room for spans")


async def test_telemetry_that_breaks_does_not_break_a_call(
    open_gateway: Open, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
        return replace(ports, telemetry=Broken()), runtime

    async with open_gateway(world, adapt=broken) as gateway:
        done = await proposed(gateway, "test.touch", {"thing": "a"}, key="k")
    assert done.status is Status.DONE
    assert "telemetry broke; the call did not" in caplog.text


def test_without_any_context_an_upstream_still_learns_the_trace() -> None:
    sent = outgoing(TRACE, None, None)
    version, trace, span, flags = sent.split("-")
    assert (version, trace, flags, len(span)) == ("00", TRACE, "00", 16)
    assert span.strip("0")
