"""How is taken back what a run has done? SAG-1, SAG-2, SAG-3.

From the last step to the first, each under a key of its own, tried several times. Once something was done
that nothing takes back, a run only goes forward: where it cannot, a person decides.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.chains.declared import Step, steps
from holdfast.chains.lane import Failed, Lane, Stopped, Waiting, together
from holdfast.chains.transacting import void, within
from holdfast.chains.values import Missing, filled
from holdfast.model import tool
from holdfast.model.errors import Code
from holdfast.model.expression import ExpressionError, Template
from holdfast.model.observation import Status
from holdfast.model.run import COMMIT, ROLLBACK, Line, RunState, StepState

if TYPE_CHECKING:
    from holdfast.chains.drive import Driver

RETRIES = 3
RETRY_S = 1.0
UNDO = "~undo"


async def ended(driver: "Driver", why: Failed | Stopped) -> RunState:
    """The way forward is over; what now?"""
    text = (
        str(why) if isinstance(why, Failed) else f"stopped by {await driver.journal.cancelled() or 'a join'}"
    )
    wanted = driver.chain.saga or (isinstance(why, Failed) and _asks(driver, why.step))
    if not wanted:
        await note(driver, why)
        await driver.journal.move(RunState.ABORTED, why=text, output=_partial(driver))
        return RunState.ABORTED
    if (pivot := _pivot(driver)) is not None:
        then = "abandon the run" if _final(driver, why) else "resume the run, or abandon it"
        told = f"a person: {pivot!r} is done and cannot be taken back, and {text}; {then}"
        await driver.journal.move(RunState.RUNNING, waits_for=told, why=text)
        return RunState.RUNNING
    await note(driver, why)
    await driver.journal.move(RunState.COMPENSATING, why=text)
    return await undo(driver, text)


def _final(driver: "Driver", why: Failed | Stopped) -> bool:
    """Whether it comes to the same however often the run is resumed: nothing in a transaction that was rolled
    back is done under its keys again.
    """
    lines = [line for line in driver.lines.values() if line.name.endswith(ROLLBACK)]
    return isinstance(why, Failed) and why.step in {line.arguments["step"] for line in lines}


async def undo(driver: "Driver", why: str) -> RunState:
    """Take back all that was done."""
    try:
        await settle(driver)
        await take_back(driver, [line.name for line in _done(driver)], Lane())
    except Waiting as waiting:
        await driver.journal.move(RunState.COMPENSATING, waits_for=str(waiting), waits_on=waiting.on, why=why)
        return RunState.COMPENSATING
    except Failed as failed:
        told = f"a person: {failed}; resume the run, or abandon it"
        await driver.journal.move(RunState.COMPENSATION_FAILED, waits_for=told, why=why)
        return RunState.COMPENSATION_FAILED
    await driver.journal.move(RunState.COMPENSATED, why=why)
    return RunState.COMPENSATED


async def take_back(driver: "Driver", names: Sequence[str], lane: Lane) -> None:
    """Those of these steps that have done something, the last one first."""
    wanted = set(names)
    for line in _done(driver):
        if line.name in wanted and line.name + UNDO not in driver.lines:
            await _one(driver, line, lane)


async def settle(driver: "Driver") -> None:
    """What branches that were given up may still have done: taken back, once that is known."""
    unknown: list[Waiting] = []
    for choice in [line for line in driver.lines.values() if line.state is StepState.CHOSEN]:
        for told in choice.arguments or ():
            left = Line(state=StepState.DONE, **told)
            seen = await driver.calls.became(f"{driver.run.id}.{left.name}", left.tool)
            if seen is not None and seen.unsettled:
                text = f"the outcome of call {seen.call_id!r} of step {left.name!r}, which was given up"
                unknown.append(Waiting(text, seen.call_id, acted=True))
            elif seen is not None and seen.status is Status.DONE:
                await driver.note(await driver.did(left, seen))
                begun = left.name.removesuffix(COMMIT)
                done = [left.name] if begun == left.name else within(driver.chain, driver.lines, begun)
                await take_back(driver, done, Lane())
    if unknown:
        raise together(unknown)


async def _one(driver: "Driver", line: Line, lane: Lane) -> None:
    found, name = how(driver, line), line.name + UNDO
    now = await driver.calls.became(f"{driver.run.id}.{line.name}", line.tool)
    if now is not None and now.code is Code.CANCELLED:  # taken back, by us or with its session
        await driver.note(Line(name=name, state=StepState.DONE, message="by somebody else"))
        return
    if found is None:
        text = f"nothing says how {line.tool!r} is taken back"
        raise Failed(name, Code.COMPENSATION_FAILED.value, text)
    by, arguments = found
    for attempt in range(RETRIES + 1):
        seen = await driver.call(by, arguments, name, Lane(), after=[line.call_id])
        if seen.status is Status.DONE:
            await driver.calls.taken_back(f"{driver.run.id}.{line.name}", line.tool, seen.call_id)
            said: dict[str, Any] = {"call_id": seen.call_id, "arguments": arguments, "result": seen.data}
            await driver.note(Line(name=name, state=StepState.DONE, tool=by, **said))
            return
        if attempt < RETRIES:
            await driver.clock.sleep(RETRY_S * 2**attempt)
    text = f"{by!r} did not take {line.name!r} back: {seen.message or seen.code}"
    raise Failed(name, Code.COMPENSATION_FAILED.value, text)


def how(driver: "Driver", line: Line) -> tuple[str, Any] | None:
    """The tool that takes a step back, and its arguments; None where there is none."""
    step = _step_of(driver, line.name)
    if step is not None and step.undo is not None and line.tool == step.tool:
        scope = {"input": driver.run.input, **_results(driver), step.id: line.result}
        try:
            return step.undo.tool, filled(step.undo.arguments, scope, (*step.place, "undo", "with"))
        except Missing as error:
            raise Failed(line.name + UNDO, Code.COMPENSATION_FAILED.value, str(error)) from None
    contract = driver.calls.contract(line.tool, None)
    declared = None if contract is None else contract.transactional.compensation
    if declared is None:
        return None
    try:
        said = Template(declared.arguments, tool.RESULT).fill({"args": line.arguments, "result": line.result})
    except ExpressionError as error:
        raise Failed(line.name + UNDO, Code.COMPENSATION_FAILED.value, str(error)) from None
    namespace = line.tool.partition(".")[0]
    return declared.tool if "." in declared.tool else f"{namespace}.{declared.tool}", said


def _partial(driver: "Driver") -> dict[str, Any]:
    """What was done stays, so it is told; CHN-5."""
    gone = void(driver.chain, driver.lines)
    lines = [line for line in driver.lines.values() if "~" not in line.name and line.name not in gone]
    return {
        "completed": {line.name: line.result for line in lines if line.state is StepState.DONE},
        "failed": {line.name: line.message for line in lines if line.state is StepState.FAILED},
    }


def _pivot(driver: "Driver") -> str | None:
    """A step that is done for good, if there is one."""
    return next((line.name for line in _done(driver) if how(driver, line) is None), None)


def _done(driver: "Driver") -> list[Line]:
    """What changed something, the last one first."""
    gone = void(driver.chain, driver.lines)
    lines = [one for one in driver.lines.values() if one.state is StepState.DONE and one.writes]
    lines = [one for one in lines if one.name not in gone]
    return sorted(lines, key=lambda line: -line.number)


def _asks(driver: "Driver", name: str) -> bool:
    step = _step_of(driver, name)
    return step is not None and step.failure == "compensate"


def _step_of(driver: "Driver", name: str) -> Step | None:
    wanted = name.partition("#")[0].removesuffix(UNDO)
    return next((step for step in steps(driver.chain.body) if step.id == wanted), None)


def _results(driver: "Driver") -> dict[str, Any]:
    lines = sorted(driver.lines.values(), key=lambda line: line.number)
    known = [line for line in lines if "~" not in line.name and not given_up(driver, line)]
    return {line.name.partition("#")[0]: line.result for line in known}


def given_up(driver: "Driver", line: Line) -> bool:
    """Whether it tells of the failure of a branch, or of the run: what a step before it answered is known."""
    step = _step_of(driver, line.name) if line.state is StepState.FAILED else None
    return step is not None and step.failure != "continue"


async def note(driver: "Driver", why: Failed | Stopped) -> None:
    """The step that ended it is in the journal too, or those that ended its branches."""
    for line in why.lines() if isinstance(why, Failed) else ():
        if line.name not in driver.lines and _step_of(driver, line.name) is not None:
            await driver.note(line)
