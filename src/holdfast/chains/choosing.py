"""Which way does a tool's word lead, and who is asked where it is not sure? CHN-2.

What it said is a line of the journal, and which way was taken is another: a run that is driven again asks
nobody anew. Nothing but the name of a declared case leads anywhere, whatever else a tool may say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.chains.declared import Arm, Branch, Choice, Node
from holdfast.chains.lane import Lane, Stopped, Waiting
from holdfast.chains.shapes import BadPath, search
from holdfast.model.run import CHOICE, CHOOSES, Line, StepState

if TYPE_CHECKING:
    from holdfast.chains.drive import Driver, Scope


@dataclass(frozen=True, slots=True)
class Said:
    """What is left of an answer once everything was dropped that nobody declared."""

    case: str | None
    """None where it named none of the cases."""
    confidence: float | None
    """None where it did not say, or said something that is no confidence."""
    enough: bool


async def choose(driver: "Driver", node: Choice, scope: "Scope", lane: Lane) -> Mapping[str, Any]:
    ways = Branch(arms=tuple(Arm(when=None, body=case.body) for case in node.cases))
    answer = await driver.step(node.ask, scope, lane, driver.share([node.ask, ways], lane))
    case = await _chosen(driver, node, answer, lane)
    return await driver.body(_way(node, case), {**scope, node.ask.id: answer}, lane)


async def _chosen(driver: "Driver", node: Choice, answer: Any, lane: Lane) -> str | None:
    """None: none of the cases, so what is done otherwise."""
    name = node.ask.id + lane.suffix
    if (line := driver.lines.get(name + CHOICE)) is not None:
        return _case_of(line)
    seen = said(node, answer)
    if not seen.enough and not node.otherwise:
        if lane.stopped or await driver.journal.cancelled():
            raise Stopped
        raise Waiting(_asked(node, name, seen, driver.run.id))
    case = seen.case if seen.enough else None
    text = f"{case!r}, as {node.ask.tool!r} said" if seen.enough else f"none of them: {_doubt(node, seen)}"
    return _case_of(await driver.keep(chosen(name, case, text)))


def chosen(name: str, case: str | None, text: str) -> Line:
    """The line that says which way is gone from here on."""
    return Line(name=name + CHOICE, state=StepState.CHOSEN, result={"case": case}, message=text)


def said(node: Choice, answer: Any) -> Said:
    case, confidence = _found(node.choice, answer), _found(node.confidence, answer)
    named = case if isinstance(case, str) and case in {one.name for one in node.cases} else None
    truth = isinstance(confidence, bool) or not isinstance(confidence, int | float)
    sure = None if truth or not 0 <= confidence <= 1 else float(confidence)
    return Said(named, sure, named is not None and sure is not None and sure >= node.threshold)


def _found(path: str, answer: Any) -> Any:
    try:
        return search(path, answer)
    except BadPath:  # of another kind than the path can look into
        return None


def _case_of(line: Line) -> str | None:
    found: str | None = line.result["case"]
    return found


def _way(node: Choice, case: str | None) -> tuple[Node, ...]:
    return next((one.body for one in node.cases if one.name == case), node.otherwise)


def _asked(node: Choice, name: str, seen: Said, run_id: str) -> str:
    """What a person is to do; nothing of it is in a tool's own words."""
    cases = ", ".join(repr(case.name) for case in node.cases)
    then = f"holdfast chain choose {run_id} {name} CASE"
    return f"{CHOOSES} between {cases} of step {name!r}: {_doubt(node, seen)}; choose: {then}"


def _doubt(node: Choice, seen: Said) -> str:
    if seen.case is None:
        return f"{node.ask.tool!r} named none of these"
    if seen.confidence is None:
        return f"{node.ask.tool!r} said {seen.case!r}, and not how sure it is"
    return (
        f"{node.ask.tool!r} said {seen.case!r}, and is {seen.confidence:g} sure, less than {node.threshold:g}"
    )
