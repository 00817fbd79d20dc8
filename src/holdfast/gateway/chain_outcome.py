"""What became of a run, as the answer of the call that it is? CHN-5, CHN-6."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from holdfast import settlement
from holdfast.chains.reading import read
from holdfast.chains.transacting import rolled_back
from holdfast.model.answer import Answer
from holdfast.model.canonical import digest
from holdfast.model.contract import CHAINS
from holdfast.model.errors import NO_REMEDY, Code, remedy
from holdfast.model.keys import upstream_key
from holdfast.model.masking import masked
from holdfast.model.observation import Observation, Outcome, Status
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.run import ROLLBACK, Line, Run, RunState, StepState
from holdfast.model.tool import Tool
from holdfast.model.vocabulary import Rung, State, Strength
from holdfast.ports import Settlement


def run_id(tenant: str, key: str) -> str:
    """Of the run of a key as it goes upstream: whoever knows the key finds the run."""
    return f"run_{digest({'tenant': tenant, 'key': key})[:24]}"


def run_of(tenant: str, principal: str, chain: str, key: str) -> str:
    return run_id(tenant, upstream_key(OperationRef(tenant, principal, f"{CHAINS}.{chain}", key)))


def answer(run: Run, lines: Sequence[Line], *, given_up: bool = False) -> Answer:
    """What the call is told now; `given_up`: nobody can ask again, so the run is stopped."""
    there = remaining(run, lines)
    told = progress(there)
    if run.state is RunState.COMPLETED:
        return Answer(data=run.output, steps=told)
    if run.state.over:
        left = staying(there)
        text, code = failure(run, left), code_of(run, lines, left)
        return Answer(data=run.output, error=text, code=code, untouched=not left, steps=told)
    doing = f"waits for {run.waits_for}" if run.waits_for else "goes on"
    then = "it is stopped; call with a key to come back to it" if given_up else "ask again with the same key"
    text = f"run {run.id!r} {doing}; {then}, or look: holdfast chain show {run.id}"
    goes_on = None if given_up else {"kind": "run", "id": run.id}
    return Answer(data=None, pending=text, goes_on=goes_on, steps=told)


def remaining(run: Run, lines: Sequence[Line]) -> list[Line]:
    """Without what was rolled back: it counts as not done."""
    if not any(line.name.endswith(ROLLBACK) for line in lines):
        return list(lines)
    gone = rolled_back(read(dict(run.declared), run.chain), {line.name: line for line in lines})
    return [line for line in lines if line.name not in gone]


def progress(lines: Sequence[Line]) -> dict[str, list[str]]:
    """The steps that are over, by name; NAM-4."""
    steps = [line for line in lines if "~" not in line.name]
    return {
        "completed": [line.name for line in steps if line.state is StepState.DONE],
        "failed": [line.name for line in steps if line.state is StepState.FAILED],
    }


def staying(lines: Sequence[Line]) -> list[str]:
    """What was done and not taken back."""
    undone = {line.name.removesuffix("~undo") for line in lines if line.name.endswith("~undo")}
    return [
        line.name
        for line in lines
        if line.writes and line.state is StepState.DONE and "~" not in line.name and line.name not in undone
    ]


def failure(run: Run, left: Sequence[str]) -> str:
    text = f"run {run.id!r} was {run.state.value.lower()}: {run.why}"
    return f"{text}; done and not taken back: {', '.join(left)}" if left else f"{text}; nothing of it is left"


def code_of(run: Run, lines: Sequence[Line], left: Sequence[str]) -> Code:
    """Why it failed, unless that says to try again with the same key: this run is over.

    A saga of which something is left was ended by a person: it could not be taken back.
    """
    if left and run.declared.get("saga"):
        return Code.COMPENSATION_FAILED
    if run.cancelled_by:
        return Code.CANCELLED
    failed = [line for line in lines if line.state is StepState.FAILED or line.name.endswith(ROLLBACK)]
    codes = [Code(line.code) for line in failed if line.code in list(Code)]
    last = codes[-1] if codes else Code.INTERNAL
    return Code.INTERNAL if remedy(last).retryable else last


def settled(operation: Operation, run: Run, lines: Sequence[Line], tool: Tool) -> Settlement:
    """The last word on a call whose run went on without it."""
    said = answer(run, lines)
    now = replace(settlement.unknown(operation), steps=dict(said.steps or {}), pending=None)
    outcome = Outcome(Rung.OBSERVED, Strength.EXACTLY_ONCE)
    data = masked(said.data, _redacted(operation))
    note = f"run {run.id} ended"
    if said.error is None:
        done = replace(
            now, status=Status.DONE, code=None, message=None, remedy=NO_REMEDY, data=data, outcome=outcome
        )
        return _by_run(State.COMMITTED, done, note, tool.contract.labels)
    code = said.code or Code.INTERNAL
    failed = replace(
        now,
        status=Status.FAILED,
        code=code,
        message=f"{tool.contract.tool!r} answered with an error: {said.error}",
        remedy=remedy(code),
        data=data,
        outcome=outcome,
    )
    state = State.NO_EFFECT if said.untouched else State.FAILED_FINAL
    return _by_run(state, failed, note, ())


def _by_run(state: State, told: Observation, note: str, labels: tuple[str, ...]) -> Settlement:
    return Settlement(state=state, observation=told.to_json(), by="run", note=note, labels=labels)


def _redacted(operation: Operation) -> tuple[str, ...]:
    """What policy said nobody is shown when it was claimed."""
    said: Mapping[str, Any] = {} if operation.payload is None else orjson.loads(operation.payload)
    return tuple(said.get("redact", ()))
