"""How does a run go on from wherever it is? CHN-2, CHN-5, CHN-7.

The chain is gone through from its beginning, every time. What the journal tells is not done again, and what a
process did and could not write down is known to the ledger: each step is a governed call under a key made of
run and step. So it does not matter where, or how often, a run was interrupted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.chains import choosing, joining, transacting, undoing
from holdfast.chains.calls import Calls, StepCall
from holdfast.chains.declared import Branch, Chain, Choice, Node, Parallel, Repeat, Step, Transaction, steps
from holdfast.chains.edges import Edges, calls_of, edges
from holdfast.chains.estimate import Known, estimate, known
from holdfast.chains.lane import Failed, Lane, Stopped, Waiting
from holdfast.chains.reading import read
from holdfast.chains.turns import HERE_S, parked, turn_in
from holdfast.chains.values import Missing, filled, holds
from holdfast.model.contract import Contract
from holdfast.model.errors import Code
from holdfast.model.observation import Observation, Status
from holdfast.model.run import Line, Run, RunState, StepState
from holdfast.model.schema import compile_schema
from holdfast.ports import Clock, Journal

Scope = Mapping[str, Any]
"""The input, and what each step that is over has answered."""
RETRY_S = 0.5
"""Before a step is tried again; doubled each time."""


async def drive(run: Run, journal: Journal, calls: Calls, clock: Clock) -> RunState:
    """Take a run as far as it goes now; the state it is in then."""
    return await Driver(run, journal, calls, clock).go()


@dataclass(slots=True)
class Driver:
    run: Run
    journal: Journal
    calls: Calls
    clock: Clock
    chain: Chain = field(init=False)
    edges: Edges = field(init=False)
    lines: dict[str, Line] = field(default_factory=dict)
    ends_at: float | None = None

    async def go(self) -> RunState:
        self.chain = read(self.run.declared, self.run.chain)
        self.edges = edges(self.chain)
        self.lines = {line.name: line for line in await self.journal.lines()}
        if self.chain.deadline_ms is not None:
            left = self.chain.deadline_ms / 1000 - self.run.spent_s
            self.ends_at = self.clock.monotonic() + left
        if self.run.state in (RunState.COMPENSATING, RunState.COMPENSATION_FAILED):
            return await undoing.undo(self, self.run.why)
        if self.run.state is not RunState.RUNNING:
            return self.run.state
        return await self._forward()

    async def _forward(self) -> RunState:
        lane = Lane()
        try:
            scope = await self.body(self.chain.body, {"input": self.run.input}, lane)
            await undoing.settle(self)
            output = self._promised(self._output(scope))
        except Waiting as waiting:
            return await self._moved(RunState.RUNNING, waits_for=str(waiting), waits_on=waiting.on)
        except (Failed, Stopped) as ended:
            return await undoing.ended(self, ended)
        return await self._moved(RunState.COMPLETED, output=output)

    def _output(self, scope: Scope) -> Any:
        declared = self.chain.output
        if declared is None:
            own = (line for line in self.lines.values() if "~" not in line.name)
            own = (line for line in own if not undoing.given_up(self, line))
            counted = (line for line in own if line.name.partition("#")[0] in scope)
            last = max(counted, key=lambda line: line.number, default=None)
            return None if last is None else last.result
        try:
            return filled(declared, scope, ("output",))
        except Missing as error:
            raise Failed("output", Code.OUTPUT_INVALID.value, str(error)) from None

    def _promised(self, output: Any) -> Any:
        """Held to the chain's own schema: what could not be proven before it ran is looked at now."""
        wanted = self.chain.output_schema
        wrong = () if wanted is None else compile_schema(dict(wanted)).errors(output)
        if wrong:
            text = f"the chain promises {wrong[0].expected} at {wrong[0].path or '/'!r}"
            raise Failed("output", Code.OUTPUT_INVALID.value, f"{text}, and that is not there")
        return output

    async def _moved(self, state: RunState, **said: Any) -> RunState:
        await self.journal.move(state, **said)
        return state

    # --- going through it -----------------------------------------------------------------

    async def body(self, body: Sequence[Node], scope: Scope, lane: Lane) -> dict[str, Any]:
        """These one after the other; what is known then."""
        here = dict(scope)
        for number, node in enumerate(body):
            here |= await self._node(node, here, lane, self.share(body[number:], lane))
        return here

    async def _node(self, node: Node, scope: Scope, lane: Lane, left_s: float | None) -> Mapping[str, Any]:
        match node:
            case Step():
                return {node.id: await self.step(node, scope, lane, left_s)}
        within = lane.part(None if left_s is None else self.clock.monotonic() + left_s)
        match node:
            case Parallel():
                return await joining.join(self, node, scope, within)
            case Branch():
                return await self._branch(node, scope, within)
            case Choice():
                return await choosing.choose(self, node, scope, within)
            case Repeat():
                return await self._repeat(node, scope, within)
            case Transaction():
                return await transacting.transact(self, node, scope, within)

    async def _branch(self, node: Branch, scope: Scope, lane: Lane) -> Mapping[str, Any]:
        for number, arm in enumerate(node.arms):
            place = (*node.place, "branch", number, "when")
            if arm.when is None or self._true(arm.when, scope, place):
                return await self.body(arm.body, scope, lane)
        return {}

    async def _repeat(self, node: Repeat, scope: Scope, lane: Lane) -> Mapping[str, Any]:
        here = dict(scope)
        for turn in range(1, node.most + 1):
            round_ = lane.part(self._round_ends(node, turn, lane))
            round_.suffix = f"{lane.suffix}#{turn}"
            here |= await self.body(node.body, here, round_)
            if node.until is not None and self._true(node.until, here, (*node.place, "until")):
                break
        return here

    def _true(self, source: str, scope: Scope, place: tuple[str | int, ...]) -> bool:
        try:
            return holds(source, scope, place)
        except Missing as error:
            raise Failed(str(place[-2]), Code.SEMANTIC_INVALIDITY.value, str(error)) from None

    # --- one step -------------------------------------------------------------------------

    async def step(self, step: Step, scope: Scope, lane: Lane, left_s: float | None) -> Any:
        name = step.id + lane.suffix
        line = self.lines.get(name)
        if line is not None:
            if line.state is StepState.FAILED and step.failure != "continue":
                raise Failed.of(line)  # it ended the run, or its branch, which then was interrupted
            return line.result
        if lane.stopped or await self.journal.cancelled():
            if lane.seat is None:  # else it is rolled back, whatever it did
                await self._acted(step, name)
            raise Stopped
        if step.when is not None and not self._true(step.when, scope, (*step.place, "when")):
            return await self.note(Line(name=name, state=StepState.SKIPPED, tool=step.tool))
        try:
            return await self._tried(step, name, scope, lane, left_s)
        except Failed as failed:
            if step.failure != "continue":
                raise
            return await self.note(replace(failed.lines()[0], name=name, tool=failed.tool or step.tool))

    async def _acted(self, step: Step, name: str) -> None:
        """Before a step is not done because somebody wants no more: whether it was done already, by a process
        that could not write it down, or may have been.
        """
        key = f"{self.run.id}.{name}"
        for tool in (step.tool, *step.fallbacks):
            seen = await self.calls.became(key, tool)
            if seen is None or not (seen.unsettled or seen.status is Status.DONE):
                continue
            contract = self.calls.contract(seen.tool or tool, None)
            writes = contract is None or contract.leaves_something
            given = await self.calls.arguments_of(key, seen.tool or tool)
            done = Line(name=name, state=StepState.DONE, tool=tool, arguments=given, writes=writes)
            if seen.unsettled:
                waiting = Waiting(_outcome(seen, name), seen.call_id, acted=True)
                waiting.left = (done,)
                raise waiting
            await self.note(await self.did(done, seen))

    async def _tried(self, step: Step, name: str, scope: Scope, lane: Lane, left_s: float | None) -> Any:
        """The tool, then those that stand in for it; each only where the one before had no effect."""
        failed: Failed | None = None
        for tool in (step.tool, *step.fallbacks):
            try:
                return await self._one(step, tool, name, scope, lane, left_s)
            except Failed as error:
                failed = failed or error
        raise failed or Failed(name, Code.INTERNAL.value, "it names no tool")

    async def _one(
        self, step: Step, tool: str, name: str, scope: Scope, lane: Lane, left_s: float | None
    ) -> Any:
        contract = self.calls.contract(tool, step.version if tool == step.tool else None)
        if contract is None:
            raise Failed(name, Code.TOOL_NOT_FOUND.value, f"there is no tool {tool!r} any more", tool=tool)
        arguments = self._arguments(step, contract, scope, name)
        if lane.seat is not None:
            arguments |= lane.seat.given(contract)
        done = Line(
            name=name, state=StepState.DONE, tool=tool, arguments=arguments, writes=contract.leaves_something
        )
        last = (step.tool, *step.fallbacks)[-1]
        for attempt in range(step.retries + 1):
            try:
                after = calls_of(self.edges.get(step.id, ()), self.lines)
                seen = await self.call(tool, arguments, name, lane, left_s, after, patient=tool == last)
            except Waiting as waiting:
                waiting.left = (done,)
                raise
            if seen.status is Status.DONE:
                return await self.note(await self.did(done, seen))
            if not seen.remedy.retryable or attempt == step.retries:
                break
            await self.clock.sleep(RETRY_S * 2**attempt)
        code = (seen.code or Code.INTERNAL).value
        raise Failed(name, code, seen.message or "", tool=seen.tool or tool, call_id=seen.call_id)

    async def did(self, line: Line, seen: Observation) -> Line:
        """A step that is done. Where another tool stood in for its own, that is what would be taken back."""
        done = replace(line, call_id=seen.call_id, result=seen.data)
        if seen.tool in ("", line.tool):
            return done
        given = await self.calls.arguments_of(f"{self.run.id}.{line.name}", seen.tool)
        return replace(done, tool=seen.tool, arguments=given)

    def _arguments(self, step: Step, contract: Contract, scope: Scope, name: str) -> Any:
        required = frozenset(contract.affordance.input_schema.get("required", ()))
        try:
            return filled(step.arguments, scope, (*step.place, "with"), required)
        except Missing as error:
            code = Code.STRUCTURAL_VIOLATION.value
            raise Failed(name, code, str(error), tool=contract.tool) from None

    async def call(
        self,
        tool: str,
        arguments: Any,
        name: str,
        lane: Lane,
        left_s: float | None = None,
        after: Sequence[str] = (),
        *,
        patient: bool = True,
    ) -> Observation:
        """One governed call under the name of its step; what must be waited for is `Waiting`.

        `patient`: where it is only not its turn, that is waited for too.
        """
        ends_at = None if left_s is None else self.clock.monotonic() + left_s
        here_s = HERE_S
        while True:
            seen = await self._called(tool, arguments, name, lane, left_s, after)
            wait_s = turn_in(seen) if patient else None
            if wait_s is None:
                return seen
            if ends_at is not None:
                left_s = ends_at - self.clock.monotonic() - wait_s
                if left_s <= 0:
                    return seen
            elif wait_s > here_s:
                raise parked(name, self.clock.now() + wait_s, seen)
            await self.clock.sleep(wait_s)
            here_s -= wait_s
            if lane.stopped or (not name.endswith(undoing.UNDO) and await self.journal.cancelled()):
                raise Stopped

    async def _called(
        self, tool: str, arguments: Any, name: str, lane: Lane, left_s: float | None, after: Sequence[str]
    ) -> Observation:
        key = f"{self.run.id}.{name}"
        lane.in_flight = (key, tool)
        try:
            seen = await self.calls.call(StepCall(tool, arguments, key, name, left_s, tuple(after)))
        finally:
            lane.in_flight = None
        match seen.status:
            case Status.HELD:
                asked = "" if seen.approval is None else seen.approval.id
                raise Waiting(f"approval {asked!r} of step {name!r}", asked)
            case Status.UNKNOWN:
                raise Waiting(_outcome(seen, name), seen.call_id, acted=True)
            case Status.PARTIAL if seen.pending is not None:
                what = f"{seen.pending['kind']} of call {seen.call_id!r} of step {name!r}"
                raise Waiting(f"the {what}", seen.call_id, acted=True)
            case Status.PARTIAL:
                text = "it asks something, and nobody is there to answer"
                raise Failed(name, Code.INTERNAL.value, text, tool=tool, call_id=seen.call_id)
            case _ if seen.code is Code.CANCELLED:
                raise Stopped
            case _ if seen.code is Code.KEY_EXPIRED:
                # It acted, and was not written down here before the ledger forgot what it said.
                text = f"a person: step {name!r}: {seen.message}; look what it did, abandon the run"
                raise Waiting(text, acted=True)
        return seen

    async def note(self, line: Line) -> Any:
        """Written down before anything else happens; what was written first counts."""
        return (await self.keep(line)).result

    async def keep(self, line: Line) -> Line:
        kept = await self.journal.add(line)
        self.lines[kept.name] = kept
        return kept

    # --- time -----------------------------------------------------------------------------

    def share(self, rest: Sequence[Node], lane: Lane) -> float | None:
        """How long the first of these may take: by how long they usually take; CHN-2."""
        ends_at = self.ends_at if lane.ends_at is None else lane.ends_at
        if ends_at is None:
            return None
        left = max(ends_at - self.clock.monotonic(), 0.001)
        first = rest[0]
        if isinstance(first, Step) and first.share is not None and self.chain.deadline_ms is not None:
            return min(left, first.share * self.chain.deadline_ms / 1000)
        weights = [estimate([node], self._known()).latency_ms or 1.0 for node in rest]
        return left * weights[0] / sum(weights)

    def _round_ends(self, node: Repeat, turn: int, lane: Lane) -> float | None:
        """Rounds that all come share the time; where one may be the last, each may use what is left."""
        if lane.ends_at is None or node.until is not None:
            return None
        now = self.clock.monotonic()
        return now + (lane.ends_at - now) / (node.most - turn + 1)

    def _known(self) -> dict[str, Known]:
        found = {step.tool: self.calls.contract(step.tool, step.version) for step in steps(self.chain.body)}
        return {
            tool: known(contract, lambda _: None) for tool, contract in found.items() if contract is not None
        }


def _outcome(seen: Observation, name: str) -> str:
    return f"the outcome of call {seen.call_id!r} of step {name!r}"
