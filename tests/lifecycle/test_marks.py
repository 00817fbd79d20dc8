"""Does every call note how long each of its steps took, and does its record say so?"""

import ast
import inspect
import tokenize
from io import StringIO
from typing import Any

import orjson
import pytest

from holdfast import Gateway, Observation, Status, lifecycle
from holdfast.execution.runtime import Runtime
from holdfast.model.call import Call, Proposal
from holdfast.model.steps import GATES, ORDER, STEPS
from holdfast.ports import Ports
from holdfast.testing import ManualClock
from tests.lifecycle.conftest import Open
from tests.lifecycle.world import ANA, World
from tests.requirements import requirement

TICK_S = 0.001


class Ticking(ManualClock):
    """A millisecond passes whenever somebody looks."""

    def monotonic(self) -> float:
        self._monotonic += TICK_S
        return super().monotonic()


async def lived(gateway: Gateway, tool: str = "test.touch", **more: Any) -> tuple[Call, Observation]:
    proposal = Proposal(tool=tool, **{"arguments": {"thing": "a"}, "principal": ANA, "key": "k", **more})
    call = lifecycle.receive(proposal, gateway._ports)
    return call, await lifecycle.live(call, gateway._ports, gateway._runtime)


async def body(gateway: Gateway, call: Call, kind: str) -> dict[str, Any]:
    entries = await gateway._auditing.of_call("default", call.id)
    [found] = [orjson.loads(entry.record.body) for entry in entries if entry.record.kind == kind]
    assert isinstance(found, dict)
    return found


@requirement("LIF-1", "PPL-2")
def test_the_steps_are_the_gates_in_their_order_and_what_comes_after_them() -> None:
    assert [step.name for step in GATES] == [gate.__name__ for gate in lifecycle.GATES]
    assert [*(step.name for step in GATES), "execute", "verify"] == list(ORDER)


@requirement("LIF-1", "PPL-2")
def test_what_a_gate_asks_is_told_as_it_stands_beside_it_in_the_life_of_a_call() -> None:
    source = inspect.getsource(lifecycle)
    tree = ast.parse(source)
    [gates] = [
        node
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "GATES"
    ]
    assert gates.end_lineno is not None
    comments = {
        token.start[0]: token.string.removeprefix("# ")
        for token in tokenize.generate_tokens(StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    asked = [comments[line] for line in range(gates.lineno + 1, gates.end_lineno)]
    assert asked == [step.question for step in STEPS[: len(lifecycle.GATES)]]


@requirement("PPL-2", "DEC-6")
@pytest.mark.parametrize(("tool", "key"), [("test.touch", "k"), ("test.look", None)])
async def test_a_call_notes_when_each_step_was_over_and_its_record_says_after_how_long(
    open_gateway: Open, world: World, tool: str, key: str | None
) -> None:
    async with open_gateway(world, clock=Ticking()) as gateway:
        call, done = await lived(gateway, tool, key=key)
        told = await body(gateway, call, "outcome")
    assert (done.status, call.trail) == (Status.DONE, None)
    assert len(call.marks) == len(ORDER)
    assert call.marks == sorted(set(call.marks))
    assert told["gates"] == [int((mark - call.started) * 1e6) for mark in call.marks]
    assert told["gates"][0] >= 999  # at least one look at the clock
    assert told["gates"][-1] <= done.latency_ms * 1000 + 1
    assert "gate" not in told


@requirement("PPL-2", "LIF-3")
async def test_a_call_that_did_not_run_has_the_gate_that_decided_on_record(
    open_gateway: Open, world: World
) -> None:
    async with open_gateway(world, clock=Ticking()) as gateway:
        call, _ = await lived(gateway, arguments={"thing": 7}, task="spring")
        told = await body(gateway, call, "refusal")
        await lived(gateway, key="twice")
        again, replayed = await lived(gateway, key="twice")
        replay = await body(gateway, again, "replay")
    assert (told["gate"], len(told["gates"]), told["task"]) == ("arguments", 3, "spring")
    assert replayed.replayed
    assert (replay["gate"], len(replay["gates"])) == ("replay", 6)


@requirement("PPL-2", "DEC-5")
async def test_a_preview_has_its_gates_on_record_by_name(open_gateway: Open, world: World) -> None:
    async with open_gateway(world, clock=Ticking()) as gateway:
        call, seen = await lived(gateway, "test.look", key=None, preview=True)
        told = await body(gateway, call, "refusal")
    assert seen.status is Status.PREVIEW
    assert list(told["gates"]) == ["resolve", "authorize", "arguments", "semantics", "policy", "state"]
    assert list(told["gates"].values()) == sorted(told["gates"].values())
    assert "gate" not in told


@requirement("PPL-2")
async def test_an_execution_that_breaks_leaves_the_marks_of_its_gates(
    open_gateway: Open, world: World
) -> None:
    def adapt(ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
        runtime.upstreams = {}  # nowhere to run it
        return ports, runtime

    async with open_gateway(world, clock=Ticking(), adapt=adapt) as gateway:
        call, seen = await lived(gateway)
        told = await body(gateway, call, "outcome")
    assert seen.status is not Status.DONE
    assert len(call.marks) == len(told["gates"]) >= len(GATES)


@requirement("AUD-1", "PPL-2")
@pytest.mark.parametrize(("task", "kept"), [("t" * 300, "t" * 200), ("a\0b", "a\0b"), ("", "")])
async def test_a_task_may_be_called_anything_and_is_on_record(
    open_gateway: Open, world: World, task: str, kept: str
) -> None:
    async with open_gateway(world) as gateway:
        call, _ = await lived(gateway, "test.look", key=None, task=task)
        told = [await body(gateway, call, kind) for kind in ("intent", "outcome")]
        without, _ = await lived(gateway, "test.look", key=None)
        untold = await body(gateway, without, "intent")
    assert [one["task"] for one in told] == [kept, kept]
    assert "task" not in untold
