"""One try at an upstream, within its bulkhead and its deadline.

A deadline cancels the work and not the call: the work is a task of its own, or an `Effort` where its upstream
needs no task. Work that cannot be cancelled (a thread) is left to finish: it keeps its slot in the bulkhead
and its late answer settles the operation.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.execution.asked import Asked
from holdfast.execution.effort import Effort, Work
from holdfast.execution.inject import injected, without
from holdfast.execution.result import Broke, Ran, Result, Trace
from holdfast.execution.runtime import Bulkhead, Runtime
from holdfast.execution.upstream_session import exchanged
from holdfast.model.answer import Answer
from holdfast.model.call import Call
from holdfast.model.costs import reported
from holdfast.model.current import not_to_be_shown
from holdfast.model.errors import Code, NoEffect
from holdfast.model.redaction import explained
from holdfast.model.trail import Try, outgoing, span_id
from holdfast.ports import Attempt, Clock, Injected

log = logging.getLogger(__name__)

Leave = Callable[..., None]
"""Give up the place at the upstream."""

CANCEL_GRACE_S = 0.1
"""How long cancelled work may take to say that it has stopped."""


async def attempt(call: Call, runtime: Runtime, number: int) -> Result:
    slots, clock = runtime.bulkhead(call.upstream), runtime.clock
    if not slots.enter():
        refused = await _queue(call, runtime, slots)
        if refused is not None:
            return refused
    given: tuple[Injected, ...] = ()
    if call.tool.contract.security.credentials:
        try:
            found = await injected(call, runtime)
        except BaseException:
            slots.release()
            raise
        if isinstance(found, Broke):
            slots.release()
            return found
        given = found
    left = call.deadline - clock.monotonic()
    if call.cancelled or left <= 0:
        slots.release()
        return _never_sent(call)
    call.attempts, call.dispatched_at = number, clock.now()
    own, began = (None, 0.0) if call.trail is None else (span_id(), clock.monotonic())
    peer = call.proposal.peer
    asked = None if peer is None else Asked(peer, call, clock, slots)
    work = runtime.upstreams[call.upstream].invoke(_describe(call, asked, number, left, own, given))
    leave = partial(_leave, slots, asked)
    result = await (_here if slots.taskless else _beside)(call, work, clock, left, leave)
    if call.trail is not None and own is not None:
        error = None if isinstance(result, Ran) else result.code.value
        call.trail.tries.append(Try(number, own, began, clock.monotonic(), error))
    return result


async def _here(call: Call, work: Work, clock: Clock, left: float, leave: Leave) -> Result:
    """Within the call's own task."""
    call.work = effort = Effort(work, call, clock, left)
    going_on = await effort
    if going_on is not None:
        call.work = going_on
        going_on.add_done_callback(leave)
        left = 0.0 if effort.late else call.deadline - clock.monotonic()
        return await _in_time(call, going_on, clock, left, told=effort.late)
    leave()
    if effort.cancelled() and not effort.stopped and _is_cancelled():
        raise asyncio.CancelledError  # not the work: the call itself
    return judge(call, effort)


async def _beside(call: Call, work: Work, clock: Clock, left: float, leave: Leave) -> Result:
    """In a task of its own."""
    call.work = task = asyncio.ensure_future(work)
    task.add_done_callback(leave)
    return await _in_time(call, task, clock, left)


async def _in_time(
    call: Call, work: "asyncio.Task[Any]", clock: Clock, left: float, *, told: bool = False
) -> Result:
    """Wait for it until the deadline; one that was `told` that its time is up is not told again."""
    longest = left
    while left > 0 and not await clock.until(work, min(left, longest)):
        left = call.deadline - clock.monotonic()  # asking the client something moves the deadline
    if not work.done():
        if not told:
            work.cancel()
        await clock.until(work, CANCEL_GRACE_S)
    return judge(call, work) if work.done() else _too_late(call, work)


def _leave(slots: Bulkhead, asked: Asked | None, _: object = None) -> None:
    slots.leave(lent=asked is not None and asked.lent)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _queue(call: Call, runtime: Runtime, slots: Bulkhead) -> Broke | None:
    if not slots.locked():
        await slots.acquire()
        return None
    turn = asyncio.ensure_future(slots.acquire())
    if await runtime.clock.until(turn, max(call.deadline - runtime.clock.monotonic(), 0.0)):
        return None
    turn.cancel()
    text = f"upstream {call.upstream!r} was busy until the deadline; nothing was sent"
    return Broke(trace=Trace.NONE, code=Code.TIMEOUT, message=text)


def _describe(
    call: Call, asked: Asked | None, number: int, left: float, own: str | None, given: tuple[Injected, ...]
) -> Attempt:
    principal, parent = call.proposal.principal, call.proposal.parent
    return Attempt(
        tool=call.tool,
        arguments=call.arguments if call.sent is None else call.sent,
        key=call.upstream_key,
        tenant=principal.tenant,
        call_id=call.id,
        trace_id=call.trace_id,
        deadline_s=left,
        number=number,
        traceparent=outgoing(call.trace_id, parent, own),
        tracestate=None if parent is None else parent.state,
        principal=principal.id,
        peer=asked,
        credentials=given,
    )


def judge(call: Call, work: "asyncio.Task[Any] | asyncio.Future[Any] | Effort") -> Result:
    """What a finished attempt proves, without the secrets that went with it."""
    result = _judged(call, work)
    if call.seat is not None:
        result = exchanged(call.seat, result)
    return without(result, call.injected) if call.injected else result


def _judged(call: Call, work: "asyncio.Task[Any] | asyncio.Future[Any] | Effort") -> Result:
    if work.cancelled():
        return _stopped(call)
    error = work.exception()
    if error is None:
        return _answered(call, work.result())
    if isinstance(error, NoEffect):
        return Broke(trace=Trace.NONE, code=error.code, message=str(error), native=error.native)
    log.warning(
        "call %s: %s raised %s\n%s",
        call.id,
        call.tool.contract.tool,
        type(error).__name__,
        explained(error, not_to_be_shown(call)),
    )
    for rule in call.tool.contract.error_contract.rules:
        if rule.match in {kind.__name__ for kind in type(error).__mro__}:
            said = f"{call.tool.contract.tool!r} failed: {rule.match}"
            return (
                _lost(call, said)
                if rule.effect == "unknown" and call.writes
                else Broke(trace=Trace(rule.effect), code=rule.code, message=said)
            )
    if call.writes:
        return _lost(call, f"{call.tool.contract.tool!r} broke off in the middle")
    unreachable = isinstance(error, OSError)  # ConnectionError, TimeoutError and their kin
    code = Code.DEPENDENCY_UNAVAILABLE if unreachable else Code.INTERNAL
    return Broke(
        trace=Trace.NONE,
        code=code,
        message=f"{call.tool.contract.tool!r} failed; the log says why",
        retry_after_ms=getattr(error, "retry_after_ms", None),
    )


def _answered(call: Call, said: Any) -> Ran:
    if isinstance(said, Answer):
        if said.cost is not None:
            call.reported = reported(said.cost)
        return Ran(
            value=said.data,
            native=said.native,
            error=said.error,
            unfinished=said.unfinished,
            code=said.code,
            untouched=said.untouched,
            pending=said.pending,
            goes_on=said.goes_on,
            steps=said.steps,
        )
    return Ran(value=said)


def _lost(call: Call, what: str) -> Broke:
    return Broke(
        trace=Trace.UNKNOWN,
        code=Code.OUTCOME_UNKNOWN,
        message=f"{what}; its effect may or may not have happened. ask again with the same key, "
        f"or settle it: holdfast settle {call.id} committed|no-effect",
    )


def _stopped(call: Call) -> Broke:
    if call.writes:
        return _lost(call, f"{call.tool.contract.tool!r} was stopped at its deadline")
    if call.cancelled:
        return Broke(trace=Trace.NONE, code=Code.CANCELLED, message="cancelled while it was reading")
    return Broke(
        trace=Trace.NONE, code=Code.TIMEOUT, message=f"{call.tool.contract.tool!r} did not answer in time"
    )


def _too_late(call: Call, work: "asyncio.Future[Any]") -> Broke:
    stopped = _stopped(call)
    late = work if isinstance(work, asyncio.Task) and call.writes else None
    return Broke(trace=stopped.trace, code=stopped.code, message=stopped.message, late=late)


def _never_sent(call: Call) -> Broke:
    if call.cancelled:
        return Broke(trace=Trace.NONE, code=Code.CANCELLED, message="cancelled before anything was sent")
    return Broke(trace=Trace.NONE, code=Code.TIMEOUT, message="the deadline passed before anything was sent")
