"""How is everything between two points done, or nothing of it? In one session of the upstream; CHN-5.

It is begun, worked in and committed by governed calls like any other. Whatever fails in it has it rolled back
before the failure goes on: until its commit nothing that was done there counts. What was committed is taken
back step by step, as the steps of any saga are.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.chains.declared import Arm, Branch, Chain, Node, Step, Transaction, steps, transactions
from holdfast.chains.lane import Failed, Lane, Seat, Stopped, Waiting
from holdfast.model.errors import Code
from holdfast.model.expression import Expression, ExpressionError
from holdfast.model.observation import Status
from holdfast.model.run import COMMIT, PERSON, ROLLBACK, Line, StepState
from holdfast.model.tool import ANSWER
from holdfast.model.upstream_session import SessionState

if TYPE_CHECKING:
    from holdfast.chains.drive import Driver, Scope

RETRIES = 3
RETRY_S = 1.0


async def transact(driver: "Driver", node: Transaction, scope: "Scope", lane: Lane) -> Mapping[str, Any]:
    name = node.begin.id + lane.suffix
    if (line := driver.lines.get(name + ROLLBACK)) is not None:
        raise _again(line)
    try:
        return await _forward(driver, node, scope, lane)
    except (Failed, Stopped) as ended:
        why = await _why(driver, name, ended, lane)
    await _roll_back(driver, node, name, why)
    raise why


async def _forward(driver: "Driver", node: Transaction, scope: "Scope", lane: Lane) -> Mapping[str, Any]:
    name, inner = node.begin.id + lane.suffix, Branch(arms=(Arm(when=None, body=node.body),))
    answer = await driver.step(node.begin, scope, lane, driver.share([node.begin, inner, node.begin], lane))
    lane.seat = _seat(driver, node.begin, answer, name)
    left_s = driver.share([inner, node.begin], lane)  # what ends it takes about as long as what begins it
    within = lane.part(None if left_s is None else driver.clock.monotonic() + left_s)
    after = await driver.body(node.body, {**scope, node.begin.id: answer}, within)
    if name + COMMIT not in driver.lines:
        await _commit(driver, lane.seat, name, lane, driver.share([node.begin], lane))
    return after


def void(chain: Chain, lines: Mapping[str, Line]) -> set[str]:
    """The lines of what was done in transactions that are not committed: nothing of it is there to undo."""
    return {
        one
        for node, name in _begun(chain, lines)
        if name + COMMIT not in lines
        for one in (name, *_inside(node, lines, name))
        if lines[one].state is StepState.DONE
    }


def rolled_back(chain: Chain, lines: Mapping[str, Line]) -> set[str]:
    """What was done in those that are known to be gone for good."""
    return {
        one
        for node, name in _begun(chain, lines)
        if name + ROLLBACK in lines
        for one in (name, *_inside(node, lines, name))
        if lines[one].state is StepState.DONE
    }


def within(chain: Chain, lines: Mapping[str, Line], begun: str) -> list[str]:
    """The lines of what was done in the transaction that this line began."""
    mine = [node for node in transactions(chain.body) if node.begin.id == _base(begun)]
    return [name for node in mine for name in _inside(node, lines, begun)]


async def close(driver: "Driver", body: tuple[Node, ...], lane: Lane) -> None:
    """Roll back what a branch that was given up has left open; what cannot be now is left to idle out."""
    for node in transactions(body):
        first = node.begin.id + lane.suffix
        for name in [name for name in driver.lines if name == first or name.startswith(f"{first}#")]:
            if "~" not in name and name + COMMIT not in driver.lines and name + ROLLBACK not in driver.lines:
                await _ended(driver, node, name, Stopped("its branch was given up"))


# --- its ends -----------------------------------------------------------------------------


def _seat(driver: "Driver", begin: Step, answer: Any, name: str) -> Seat:
    contract = driver.calls.contract(begin.tool, begin.version)
    part = None if contract is None else contract.transactional.session
    if contract is None or part is None or part.role != "begin":
        raise Failed(name, Code.TOOL_NOT_FOUND.value, f"{begin.tool!r} begins no session any more")
    try:
        session = Expression(part.handle, ANSWER).evaluate({"result": answer})
    except ExpressionError as error:
        raise Failed(name, Code.OUTPUT_INVALID.value, str(error)) from None
    return Seat(contract.identity.namespace, part.name, str(session))


async def _commit(driver: "Driver", seat: Seat, name: str, lane: Lane, left_s: float | None) -> None:
    contract = driver.calls.partner(seat.namespace, seat.name, "commit")
    if contract is None:
        text = f"no tool of {seat.namespace!r} commits session {seat.name!r} any more"
        raise Failed(name, Code.TOOL_NOT_FOUND.value, text)
    done = Line(name=name + COMMIT, state=StepState.DONE, tool=contract.tool, arguments=seat.given(contract))
    if await _unwanted(driver, done, lane):
        raise Stopped
    before = [driver.lines[one] for one in (name, *within(driver.chain, driver.lines, name))]
    after = [line.call_id for line in before if line.call_id and line.state is StepState.DONE]
    try:
        seen = await driver.call(contract.tool, done.arguments, done.name, lane, left_s, after)
    except Waiting as waiting:
        waiting.left = (done,)
        raise
    if seen.status is not Status.DONE:
        code = (seen.code or Code.INTERNAL).value
        raise Failed(name, code, f"it was not committed: {seen.message or code}")
    await driver.keep(replace(done, call_id=seen.call_id))


async def _unwanted(driver: "Driver", commit: Line, lane: Lane) -> bool:
    """Whether it was stopped before it was committed; what may have been committed is found out first."""
    if not lane.stopped and not await driver.journal.cancelled():
        return False
    return await driver.calls.became(f"{driver.run.id}.{commit.name}", commit.tool) is None


async def _why(driver: "Driver", name: str, ended: Failed | Stopped, lane: Lane) -> Failed | Stopped:
    """Whoever asks again for what was rolled back is told that it was cancelled, though nobody wanted that
    of this run.
    """
    if isinstance(ended, Failed) or lane.stopped or await driver.journal.cancelled():
        return ended
    return Failed(name, Code.STALE_STATE.value, "its session was rolled back before all of it was done")


async def _roll_back(driver: "Driver", node: Transaction, name: str, why: Failed | Stopped) -> None:
    """Before the failure goes on; where that cannot be done, a person decides."""
    if name not in driver.lines:  # it never began
        return
    for attempt in range(RETRIES + 1):
        state = await _ended(driver, node, name, why)
        if state is None or state.over:
            return
        if attempt < RETRIES:
            await driver.clock.sleep(RETRY_S * 2**attempt)
    seat = _seat(driver, node.begin, driver.lines[name].result, name)
    look = f"look: holdfast sessions show {seat.id}; resume the run, or abandon it"
    raise Waiting(f"{PERSON}: transaction {name!r} is not rolled back yet, and {why}; {look}")


async def _ended(
    driver: "Driver", node: Transaction, name: str, why: Failed | Stopped
) -> SessionState | None:
    """Try to roll it back, and keep what came of that; None where it is nowhere any more."""
    seat = _seat(driver, node.begin, driver.lines[name].result, name)
    state = await driver.calls.roll_back(seat.id, f"run {driver.run.id!r}: {why}")
    if state in (SessionState.COMMITTED, SessionState.UNDONE):
        await driver.keep(Line(name=name + COMMIT, state=StepState.DONE, message="by somebody else"))
    elif state is None or state.over:
        failed = why if isinstance(why, Failed) else Failed("", Code.CANCELLED.value, str(why))
        about = {"step": failed.step, "tool": failed.tool, "call_id": failed.call_id}
        said = Line(name=name + ROLLBACK, state=StepState.DONE, arguments=about)
        await driver.keep(replace(said, code=failed.code, message=failed.message))
    return state


def _again(line: Line) -> Failed | Stopped:
    """It was rolled back, and the run was interrupted before its failure went on."""
    about = dict(line.arguments)
    step = about.pop("step")
    return Failed(step, line.code, line.message, **about) if step else Stopped(line.message)


# --- lines --------------------------------------------------------------------------------


def _begun(chain: Chain, lines: Mapping[str, Line]) -> Iterator[tuple[Transaction, str]]:
    for node in transactions(chain.body):
        for name in lines:
            if _base(name) == node.begin.id and "~" not in name:
                yield node, name


def _inside(node: Transaction, names: Iterable[str], begun: str) -> list[str]:
    """Those of steps between this beginning and its end: in the same rounds of the loops around it."""
    ids, rounds = {step.id for step in steps(node.body)}, begun.removeprefix(node.begin.id)
    return [
        name
        for name in names
        if (base := _base(name)) in ids
        and "~" not in name
        and f"{name.removeprefix(base)}#".startswith(f"{rounds}#")
    ]


def _base(name: str) -> str:
    return name.partition("~")[0].partition("#")[0]
