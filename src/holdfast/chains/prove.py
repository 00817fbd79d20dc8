"""Does undoing take back what doing did? Tried step by step, where nothing counts; SAG-4.

The chain is driven in a twin as any run is. Each step that changes something is done, taken back and done
again; what it changes is read before, after, and after the undoing. A reading that does not see the doing
proves nothing of the undoing.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.chains import undoing
from holdfast.chains.calls import Calls, StepCall
from holdfast.chains.declared import Chain, Step, steps, transactions
from holdfast.chains.drive import Driver
from holdfast.chains.lane import Failed
from holdfast.chains.shapes import BadPath, search
from holdfast.chains.values import Missing, filled
from holdfast.chains.writing import step_written, written
from holdfast.model import tool as tools
from holdfast.model.canonical import digest
from holdfast.model.contract import Contract
from holdfast.model.expression import ExpressionError, Template
from holdfast.model.observation import Observation, Status
from holdfast.model.run import Inversion, Line, Run, RunState, StepState
from holdfast.model.upstream_session import SessionState
from holdfast.ports import Clock, Runs

Find = Callable[[str, str | None], Contract | None]
_PARTS = ("with", "undo", "prove")
"""Of a step: what decides what is done, and what takes it back."""


@dataclass(frozen=True, slots=True)
class Undoable:
    """One tool of a step, and what takes it back."""

    step: Step
    tool: str
    undone_by: str
    digest: str
    """Another one as soon as the step, or the contract of doing or undoing, is."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What was found out about one undoing; `how` is None where nothing was."""

    undoable: Undoable
    how: Inversion | None
    text: str


class _Unseen(Exception):
    """It cannot be told whether anything changed; the text says why."""


def undoables(chain: Chain, find: Find) -> list[Undoable]:
    """Everything that a saga would take back."""
    if not chain.saga:
        return []
    found = [
        _undoable(step, tool, find) for step in steps(chain.body) for tool in (step.tool, *step.fallbacks)
    ]
    return [one for one in found if one is not None]


def _undoable(step: Step, tool: str, find: Find) -> Undoable | None:
    contract = find(tool, step.version if tool == step.tool else None)
    if contract is None or not contract.effect.writes:
        return None
    if step.undo is not None and tool == step.tool:
        by = step.undo.tool
    elif contract.transactional.compensation is not None:
        by = contract.transactional.compensation.tool
    else:
        return None
    undo, said = find(by, None), step_written(step)
    named = {part: said.get(part) for part in _PARTS} | {"tool": tool, "undone_by": by}
    promises = [contract.digest, None if undo is None else undo.digest]
    return Undoable(step, tool, by, digest({**named, "contracts": promises}))


async def prove(
    chain: Chain, given: Any, wanted: Sequence[Undoable], calls: Calls, runs: Runs, clock: Clock
) -> list[Tried]:
    """Go through the chain with this input; what is not on its way stays untried."""
    run = Run(
        tenant="default",
        id="run_twin",
        chain=chain.name,
        version=chain.version,
        declared=written(replace(chain, saga=False)),  # where it fails there is nothing to save
        input=given,
        principal="twin",
        wanted_by={},
    )
    taken = await runs.take_up(run.tenant, (await runs.begin(run)).id)
    assert taken is not None  # noqa: S101  # it was begun just now
    inside = {step.id for node in transactions(chain.body) for step in steps(node.body)}
    trying = _Trying(calls, wanted, inside)
    driver = trying.driver = Driver(taken, runs.journal(taken), trying, clock)
    state = await driver.go()
    why = "this input does not lead to it"
    if state is not RunState.COMPLETED:
        after = await runs.get(run.tenant, run.id)
        why = "the chain did not come so far" + (f": {after.why or after.waits_for}" if after else "")
    return [trying.tried.get(one.digest) or Tried(one, None, why) for one in wanted]


class _Trying:
    """Calls of a run in a twin, each of them tried out; implements `Calls`."""

    driver: Driver

    def __init__(self, calls: Calls, wanted: Sequence[Undoable], inside: set[str]) -> None:
        self._calls = calls
        self._inside = inside
        self._wanted = wanted
        self._one = asyncio.Lock()
        """What runs side by side is tried one after the other: each reading sees one change."""
        self.tried: dict[str, Tried] = {}

    def contract(self, tool: str, version: str | None) -> Contract | None:
        return self._calls.contract(tool, version)

    def partner(self, namespace: str, session: str, role: str) -> Contract | None:
        return self._calls.partner(namespace, session, role)

    async def roll_back(self, session_id: str, why: str) -> SessionState | None:
        return await self._calls.roll_back(session_id, why)

    async def became(self, key: str, tool: str) -> Observation | None:
        return await self._calls.became(key, tool)

    async def arguments_of(self, key: str, tool: str) -> Any:
        return await self._calls.arguments_of(key, tool)

    async def taken_back(self, key: str, tool: str, by: str) -> None:
        await self._calls.taken_back(key, tool, by)

    async def stop(self, key: str, tool: str) -> None:
        await self._calls.stop(key, tool)

    async def call(self, wanted: StepCall) -> Observation:
        name = wanted.step.partition("#")[0]
        mine = [one for one in self._wanted if one.step.id == name and one.digest not in self.tried]
        async with self._one:
            for number, one in enumerate(mine):
                if one.step.id in self._inside:
                    text = "it is done in a transaction, where nothing can be taken back by itself"
                    self.tried[one.digest] = Tried(one, None, text)
                    continue
                how, text = await self._try(one, wanted.arguments, f"{wanted.key}.{number}")
                self.tried[one.digest] = Tried(one, how, text)
            return await self._calls.call(replace(wanted, deadline_s=None, after=()))

    async def _try(
        self, one: Undoable, arguments: Mapping[str, Any], key: str
    ) -> tuple[Inversion | None, str]:
        try:
            before = await self._reading(one, arguments)
            done = await self._do(one.tool, arguments, f"{key}.do")
            if done.status is not Status.DONE:
                return None, f"{one.tool!r} could not be done there: {_said(done)}"
            after = await self._reading(one, arguments)
            undone = await self._undo(one, arguments, done, key)
            if undone is not None:
                return Inversion.REFUTED, undone
            then = await self._reading(one, arguments)
        except _Unseen as error:
            return None, str(error)
        if digest(before) == digest(after):
            return None, f"what is read does not change when {one.tool!r} is done; read something that does"
        if digest(then) != digest(before):
            return Inversion.REFUTED, f"{one.undone_by!r} leaves {_short(then)}, and it was {_short(before)}"
        return Inversion.SHOWN, "as before"

    async def _undo(
        self, one: Undoable, arguments: Mapping[str, Any], done: Observation, key: str
    ) -> str | None:
        """None where it was taken back, else what is wrong."""
        line = Line(
            name=one.step.id, state=StepState.DONE, tool=one.tool, arguments=arguments, result=done.data
        )
        try:
            found = undoing.how(self.driver, line)
        except Failed as error:
            return error.message
        if found is None:
            return f"nothing says how {one.tool!r} is taken back"
        seen = await self._do(found[0], found[1], f"{key}.undo")
        return None if seen.status is Status.DONE else f"{found[0]!r} did not take it back: {_said(seen)}"

    async def _do(self, tool: str, arguments: Mapping[str, Any], key: str) -> Observation:
        return await self._calls.call(StepCall(tool, arguments, key, key))

    async def _reading(self, one: Undoable, arguments: Mapping[str, Any]) -> Any:
        tool, given, value = self._where(one, arguments)
        seen = await self._calls.call(StepCall(tool, given, "", ""))
        if seen.status is not Status.DONE:
            raise _Unseen(f"{tool!r} could not be read there: {_said(seen)}")
        if seen.provenance is not None and seen.provenance.freshness == "cached":
            raise _Unseen(f"{tool!r} answers from a cache; read by another tool")
        try:
            return seen.data if value is None else search(value, seen.data)
        except BadPath as error:
            raise _Unseen(f"{tool!r} answers something else there: {error}") from None

    def _where(self, one: Undoable, arguments: Mapping[str, Any]) -> tuple[str, Any, str | None]:
        """What shows the effect: the step's own `prove`, else how the contract looks at its target."""
        if (own := one.step.prove) is not None:
            lines = self.driver.lines.values()
            scope = {"input": self.driver.run.input} | {
                line.name.partition("#")[0]: line.result for line in lines
            }
            try:
                return (
                    own.tool,
                    filled(own.arguments, scope, (*one.step.place, "prove", "read", "with")),
                    own.value,
                )
            except Missing as error:
                raise _Unseen(str(error)) from None
        contract = self.contract(one.tool, None)
        read = None
        if contract is not None and contract.state is not None:
            read = contract.state.read
        elif contract is not None and contract.transactional.preview is not None:
            read = contract.transactional.preview.read
        if read is None:
            raise _Unseen(
                f"nothing says how to see what {one.tool!r} changes; say it with 'prove' at its step"
            )
        try:
            return read.tool, Template(read.arguments, tools.ARGS).fill({"args": arguments}), None
        except ExpressionError as error:
            raise _Unseen(str(error)) from None


def _said(seen: Observation) -> str:
    return seen.message or (seen.code.value if seen.code is not None else seen.status.value)


def _short(value: Any, most: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"
