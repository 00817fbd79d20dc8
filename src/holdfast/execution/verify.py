"""What really happened?

One place for every upstream: the answer against its schema, errors hidden inside a
success, sanity predicates, and postconditions read back from the target. Nothing
unverified is called verified, and a write whose answer proves nothing is unknown,
never failed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from holdfast import settlement
from holdfast.execution.result import Broke, Ran, Result, Trace
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.expression import Expression, ExpressionError
from holdfast.model.masking import masked
from holdfast.model.observation import Status
from holdfast.model.redaction import differences, withheld
from holdfast.model.vocabulary import Rung, Severity, State
from holdfast.ports import Ports


@dataclass(slots=True, kw_only=True)
class Judged:
    """The outcome, as far as it is known."""

    status: Status
    state: State
    data: Any = None
    code: Code | None = None
    message: str | None = None
    retry_after_ms: int | None = None
    rung: Rung = Rung.DISPATCHED
    warnings: list[str] = field(default_factory=list)
    cached_at: float | None = None
    native: Mapping[str, Any] | None = None
    steps: Mapping[str, Any] | None = None
    pending: Mapping[str, Any] | None = None
    session: Mapping[str, Any] | None = None
    """The session at the upstream that it is about."""


async def verify(call: Call, result: Result, ports: Ports) -> Judged:
    if isinstance(result, Broke):
        return _broken(result)
    judged = await _verified(call, result, ports)
    judged.steps = result.steps
    if call.decision.redact:
        _hush(judged, result.value, call.decision.redact)
    return judged


def _hush(judged: Judged, value: Any, redact: Sequence[str]) -> None:
    """What policy masks in the answer is not told beside it either; POL-1."""
    hidden = [*differences(value, masked(value, redact))]
    judged.message = None if judged.message is None else withheld(judged.message, hidden)
    judged.warnings = [withheld(warning, hidden) for warning in judged.warnings]


async def _verified(call: Call, result: Ran, ports: Ports) -> Judged:
    if result.unfinished:
        return _unfinished(result)
    if result.pending is not None:
        return _pending(call, result.pending, result.goes_on)
    fault = None if result.error else _output_fault(call, result.value)
    said = objected(call, result, fault)
    return said if said is not None else await accepted(call, result, ports)


def objected(call: Call, result: Ran, fault: str | None = None) -> Judged | None:
    """What the answer itself says against it."""
    if fault is None and call.tool.in_band is not None:
        said = _in_band(call, call.tool.in_band, result)
        if isinstance(said, Judged):
            return said
        fault = said
    if fault is not None:
        return invalid(call, fault)
    return None if result.error is None else _said_no(call, result)


async def verified_later(call: Call, result: Result, ports: Ports) -> Judged:
    """The same for what a job came to; whether it failed was said by its contract's `failed`."""
    if isinstance(result, Broke):
        return _broken(result)
    fault = None if result.error else _output_fault(call, result.value)
    if fault is not None:
        judged = invalid(call, fault)
    elif result.error is not None:
        judged = _said_no(call, result)
    else:
        judged = await accepted(call, result, ports)
    if call.decision.redact:
        _hush(judged, result.value, call.decision.redact)
    return judged


async def accepted(call: Call, result: Ran, ports: Ports) -> Judged:
    """The tool says that it is done: does it make sense, and can it be seen?"""
    tool = call.tool
    judged = Judged(
        status=Status.DONE,
        state=State.COMMITTED,
        data=result.value,
        rung=Rung.ACCEPTED,
        cached_at=result.cached_at,
        native=result.native,
    )
    insane = _sanity(call, result.value, judged.warnings) if tool.sanity else None
    if insane is not None:
        return invalid(call, insane)
    if tool.postconditions:
        await _postconditions(call, judged, ports)
    if call.decision.verify and call.writes and judged.status is Status.DONE:
        return await _shown(call, judged, ports)
    return judged


async def _shown(call: Call, judged: Judged, ports: Ports) -> Judged:
    """Policy wants the effect shown; until it is, nobody knows of it (VER-1)."""
    asked = call.decision.verify
    if "postconditions" in asked and judged.rung is not Rung.VERIFIED:
        return _unshown(call, "; ".join(judged.warnings) or "no postcondition held")
    if "probe" in asked and not await _seen_by_probe(call, ports):
        return _unshown(call, "the probe does not see the effect")
    if judged.rung is Rung.ACCEPTED:
        judged.rung = Rung.OBSERVED
    return judged


async def _seen_by_probe(call: Call, ports: Ports) -> bool:
    probe, own = call.tool.probe, call.operation
    if probe is None or own is None:
        return False
    claimed = await ports.ledger.find(own.ref)
    seen = None if claimed is None else await settlement.ask_probe(claimed, probe, ports)
    return seen is not None and seen.state is State.COMMITTED


def _unshown(call: Call, why: str) -> Judged:
    text = (
        f"the tool reported success, but policy wants it verified: {why}. ask again with the same key, "
        f"or settle it: holdfast settle {call.id} committed|no-effect"
    )
    return Judged(status=Status.UNKNOWN, state=State.UNKNOWN, code=Code.OUTCOME_UNKNOWN, message=text)


def _broken(result: Broke) -> Judged:
    if result.trace is Trace.UNKNOWN:
        return Judged(
            status=Status.UNKNOWN, state=State.UNKNOWN, code=Code.OUTCOME_UNKNOWN, message=result.message
        )
    state = State.NO_EFFECT if result.trace is Trace.NONE else State.FAILED_FINAL
    return Judged(
        status=Status.FAILED,
        state=state,
        code=result.code,
        message=result.message,
        retry_after_ms=result.retry_after_ms,
        native=result.native,
    )


def _unfinished(result: Ran) -> Judged:
    """The tool waits for its client: the same operation is proposed again with what was asked for."""
    text = "the tool asks something of you before it goes on; answer it and call again"
    return Judged(
        status=Status.PARTIAL, state=State.NO_EFFECT, data=result.value, native=result.native, message=text
    )


def _pending(call: Call, why: str, goes_on: Mapping[str, Any] | None) -> Judged:
    """Not lost: it goes on without this call, and what comes of it is found out later."""
    if goes_on is not None:
        state = State.UNKNOWN if call.writes else State.NO_EFFECT
        return Judged(
            status=Status.PARTIAL, state=state, message=why, rung=Rung.ACCEPTED, pending=dict(goes_on)
        )
    if call.writes:
        return Judged(status=Status.UNKNOWN, state=State.UNKNOWN, code=Code.OUTCOME_UNKNOWN, message=why)
    return Judged(status=Status.FAILED, state=State.NO_EFFECT, code=Code.TIMEOUT, message=why)


def _said_no(call: Call, result: Ran) -> Judged:
    """An answer that says failure is the tool's last word, unless its contract knows better; VER-1."""
    return Judged(
        status=Status.FAILED,
        state=State.FAILED_FINAL if call.writes and not result.untouched else State.NO_EFFECT,
        data=result.value,
        code=result.code or Code.INTERNAL,
        message=f"{call.tool.contract.tool!r} answered with an error: {result.error}",
        rung=Rung.ACCEPTED,
        native=result.native,
    )


def _output_fault(call: Call, value: Any) -> str | None:
    try:
        orjson.dumps(value)
    except TypeError as error:
        return f"the answer is not JSON data: {error}"
    output = call.tool.output
    if output is None or output.is_valid(value):
        return None
    if call.decision.redact:  # a fault quotes what is wrong, in part or in other words
        return "the answer does not fit its schema, and policy masks some of it: its faults are not told"
    faults = output.errors(value)
    return "the answer does not fit its schema: " + "; ".join(
        f"{f.path or '/'}: {f.message}" for f in faults[:5]
    )


def invalid(call: Call, fault: str) -> Judged:
    """A read with a bad answer failed; of a write with a bad answer nobody knows."""
    call.misfit = True
    if call.writes:
        text = (
            f"{fault}; the effect may or may not have happened. ask again with the same key, or settle it: "
            f"holdfast settle {call.id} committed|no-effect"
        )
        return Judged(status=Status.UNKNOWN, state=State.UNKNOWN, code=Code.OUTCOME_UNKNOWN, message=text)
    return Judged(status=Status.FAILED, state=State.NO_EFFECT, code=Code.OUTPUT_INVALID, message=fault)


def _in_band(call: Call, in_band: Expression, result: Ran) -> Judged | str | None:
    """A success that says failure; VER-1+."""
    try:
        name = in_band.evaluate({"result": result.value})
    except ExpressionError as error:
        return str(error)
    if not name:
        return None
    for rule in call.tool.contract.error_contract.rules:
        if rule.match == name:
            trace = Trace(rule.effect)
            if trace is Trace.UNKNOWN and not call.writes:
                trace = Trace.NONE
            said = f"{call.tool.contract.tool!r} answered {name!r}"
            return _broken(Broke(trace=trace, code=rule.code, message=said))
    return f"the answer says {str(name)!r}, which the contract does not know"


def _sanity(call: Call, value: Any, warnings: list[str]) -> str | None:
    for rule in call.tool.sanity:
        try:
            if rule.holds.holds({"args": call.arguments, "result": value}):
                continue
            said = rule.message
        except ExpressionError as error:
            said = f"{rule.message} ({error})"
        if rule.severity is Severity.CRITICAL:
            return said
        warnings.append(said)
    return None


async def _postconditions(call: Call, judged: Judged, ports: Ports) -> None:
    """Read the target back; a target that is not as promised is a mismatch for a person."""
    variables: dict[str, Any] = {"args": call.arguments, "result": judged.data}
    judged.rung = Rung.VERIFIED
    for post in call.tool.postconditions:
        if post.delay_s:
            await ports.clock.sleep(post.delay_s)
        try:
            seen = await ports.reader.read(
                call.principal.tenant, post.read.tool, post.read.arguments.fill(variables)
            )
            if seen.status is not Status.DONE:
                raise ExpressionError(f"{post.read.tool!r} answered {seen.status.value}")
            holds = post.holds.holds(variables | {"state": seen.data})
        except ExpressionError as error:
            judged.rung = Rung.ACCEPTED
            judged.warnings.append(f"could not be verified: {error}")
            continue
        if not holds:
            judged.status, judged.state = Status.FAILED, State.FAILED_FINAL
            judged.code = Code.COMPENSATION_REQUIRED if post.compensate else Code.EFFECT_MISMATCH
            judged.message = f"the tool reported success, but {post.message}"
            judged.rung = Rung.ACCEPTED
            return
