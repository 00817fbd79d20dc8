"""When are branches side by side over, and what of the others? CHN-3.

What a join went on with is in the journal: a run that is driven again goes on with the same. A branch that is
given up is stopped; what it did all the same is taken back where that can be done.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any

from holdfast.chains import transacting, undoing
from holdfast.chains.declared import Parallel, steps
from holdfast.chains.faults import shown
from holdfast.chains.lane import Failed, Lane, Stopped, Waiting, together
from holdfast.chains.values import Missing, score
from holdfast.model.errors import Code
from holdfast.model.run import Line, StepState

if TYPE_CHECKING:
    from holdfast.chains.drive import Driver, Scope


@dataclass(slots=True)
class _Tally:
    """How the branches ended, by their numbers."""

    done: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    failed: dict[int, Failed] = field(default_factory=dict)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    stopped: set[int] = field(default_factory=set)

    def take(self, number: int, task: "asyncio.Task[Mapping[str, Any]]") -> None:
        match task.exception():
            case None:
                self.done[number] = task.result()
            case Failed() as failed:
                self.failed[number] = failed
            case Waiting() as waiting:
                self.waiting[number] = waiting
            case Stopped():
                self.stopped.add(number)
            case error:
                raise error


async def join(driver: "Driver", node: Parallel, scope: "Scope", lane: Lane) -> Mapping[str, Any]:
    name = f"{shown(node.place)}{lane.suffix}~join"
    if (line := driver.lines.get(name)) is not None:
        return await _again(driver, node, scope, lane, line.result)
    lanes = [lane.part() for _ in node.branches]
    tally = await _race(driver, node, scope, lanes)
    chosen = _chosen(node, tally, scope)
    if len(chosen) < _needed(node):
        stopped = lane.stopped or bool(tally.stopped and not tally.failed)
        waits = [one for _, one in sorted(tally.waiting.items())]
        if stopped or _hopeless(node, tally):
            waits = [one for one in waits if one.acted]  # what came of it is known before it is taken back
        if waits:
            raise together(waits)
        raise Stopped if stopped else _all_of(node, tally)
    others = [one.left for number, one in sorted(tally.waiting.items()) if number not in chosen]
    left = [_told(line) for lines in others for line in lines]
    for _, failed in sorted(tally.failed.items()):
        await undoing.note(driver, failed)  # before the choice: whoever goes on from there does not ask again
    await driver.note(Line(name=name, state=StepState.CHOSEN, result=sorted(chosen), arguments=left))
    await _take_back(driver, node, set(chosen), lane)
    return _merged([tally.done[number] for number in chosen], scope)


async def _race(driver: "Driver", node: Parallel, scope: "Scope", lanes: list[Lane]) -> _Tally:
    tally = _Tally()
    tasks = {
        asyncio.create_task(driver.body(branch, scope, lane)): number
        for number, (branch, lane) in enumerate(zip(node.branches, lanes, strict=True))
    }
    waiting = set(tasks)
    try:
        while waiting:
            over, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in over:
                tally.take(tasks[task], task)
            if waiting and _decided(node, tally):
                for task in waiting:
                    await lanes[tasks[task]].stop(driver.calls)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return tally


def _needed(node: Parallel) -> int:
    match node.join.kind:
        case "all":
            return len(node.branches)
        case "quorum":
            return ceil(node.join.quorum * len(node.branches) - 1e-9)
        case "first" | "best":
            return 1


def _hopeless(node: Parallel, tally: _Tally) -> bool:
    """Whether too many have failed already."""
    return len(node.branches) - len(tally.failed) - len(tally.stopped) < _needed(node)


def _decided(node: Parallel, tally: _Tally) -> bool:
    enough = node.join.kind != "best" and len(tally.done) >= _needed(node)
    return enough or _hopeless(node, tally)


def _chosen(node: Parallel, tally: _Tally, scope: "Scope") -> list[int]:
    if node.join.kind != "best" or node.join.score is None:
        return sorted(tally.done)
    if tally.waiting:  # the best may be among those
        return []
    place = (*node.place, "join", "best")
    scored = {}
    for number, known in tally.done.items():
        result = {name: value for name, value in known.items() if name not in scope}
        last = next(reversed(result.values()), None)
        try:
            scored[number] = score(node.join.score, scope, last, place)
        except Missing as error:
            raise Failed(shown(node.place), Code.SEMANTIC_INVALIDITY.value, str(error)) from None
    return [max(scored, key=lambda number: (scored[number], -number))] if scored else []


def _all_of(node: Parallel, tally: _Tally) -> Failed:
    """Every branch is told: which came through, and why the others did not."""
    told = [f"branch {number}: {failed}" for number, failed in sorted(tally.failed.items())]
    told += [f"branch {number} came through" for number in sorted(tally.done)]
    told += [f"branch {number} was stopped" for number in sorted(tally.stopped)]
    first = tally.failed[min(tally.failed)] if tally.failed else None
    code = Code.CANCELLED.value if first is None else first.code
    wanted = f"{_needed(node)} of {len(node.branches)} branches are needed"
    parts = [failed for _, failed in sorted(tally.failed.items())]
    return Failed(shown(node.place), code, "; ".join([wanted, *told]), parts=parts)


async def _again(
    driver: "Driver", node: Parallel, scope: "Scope", lane: Lane, chosen: list[int]
) -> Mapping[str, Any]:
    """What was decided stays: those branches are gone through by their journal, the others not at all."""
    await _take_back(driver, node, set(chosen), lane)
    found = [await driver.body(node.branches[number], scope, lane.part()) for number in chosen]
    return _merged(found, scope)


async def _take_back(driver: "Driver", node: Parallel, chosen: set[int], lane: Lane) -> None:
    """What was done in a branch that does not count."""
    with suppress(Waiting):  # for what became of it; the run does not end before that
        await undoing.settle(driver)
    for number, branch in enumerate(node.branches):
        if number not in chosen:
            begun = {step.id + lane.suffix for step in steps(branch)}
            names = [name for name in driver.lines if name in begun or name.rpartition("#")[0] in begun]
            await undoing.take_back(driver, names, lane)
            await transacting.close(driver, branch, lane)


def _told(left: Line) -> dict[str, Any]:
    return {"name": left.name, "tool": left.tool, "arguments": left.arguments, "writes": left.writes}


def _merged(found: Sequence[Mapping[str, Any]], scope: "Scope") -> Mapping[str, Any]:
    return {name: value for known in found for name, value in known.items() if name not in scope}
