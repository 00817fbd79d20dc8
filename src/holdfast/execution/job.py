"""What becomes of a tool that only submits? EXE-6.

What a write has submitted goes on without the call: the outcome is not known yet, and the job is written down
with just that. A read is nobody's to follow once its caller has gone: it is asked after here, and cancelled
when there is no more time.
"""

import asyncio
import logging
import secrets
from dataclasses import replace
from hashlib import sha256
from typing import Any

from holdfast import settlement
from holdfast.execution.observe import shown
from holdfast.execution.promised import promised
from holdfast.execution.result import Broke, Ran, Result, Trace
from holdfast.execution.verify import Judged, invalid, objected, verified_later, verify
from holdfast.model.call import Call
from holdfast.model.current import serving
from holdfast.model.errors import NO_REMEDY, Code, remedy
from holdfast.model.expression import ExpressionError
from holdfast.model.job import Ended, Failed, body, described, name_of, pending
from holdfast.model.masking import masked
from holdfast.model.moment import iso
from holdfast.model.observation import Observation, Outcome, Provenance, Status, Timing
from holdfast.model.operation import Operation
from holdfast.model.sequel import NewJob
from holdfast.model.tool import Job
from holdfast.model.vocabulary import Rung, State
from holdfast.ports import Ports, Settlement

log = logging.getLogger(__name__)

WORD_BYTES = 32


async def judged(call: Call, result: Result, ports: Ports) -> Judged:
    """How far an answer brings the call: all the way, or as far as a job."""
    job = call.tool.job
    if job is None or isinstance(result, Broke) or result.unfinished or result.pending is not None:
        return await verify(call, result, ports)
    said = objected(call, result)
    if said is not None:
        return said
    try:
        name = name_of(job, call.arguments, result.value)
    except ExpressionError as error:
        return invalid(call, f"the answer names no job: {error}")
    if call.writes:
        return _goes_on(call, job, name, _told_name(call, job, name, result.value), ports)
    return await _followed(call, job, name, ports)


def submitting(call: Call, ports: Ports) -> None:
    """Tell the upstream where it can say that there is news: an address of this call alone."""
    job = call.tool.job
    if job is None or job.said.callback is None:
        return
    if not ports.base_url:  # of a tool that was found after the start; it is asked after all the same
        log.warning("%s cannot be told where to call back: set 'base_url'", call.tool.contract.tool)
        return
    call.callback = secrets.token_urlsafe(WORD_BYTES)
    call.injected = (*call.injected, call.callback)
    given = call.arguments if call.sent is None else call.sent
    call.sent = {**given, job.said.callback: f"{ports.base_url}/v1/jobs/{call.callback}"}


def _goes_on(call: Call, job: Job, name: str, told: str | None, ports: Ports) -> Judged:
    now, said = ports.clock.now(), job.said
    give_up_at = now + said.max_wait_s
    word = call.callback or secrets.token_urlsafe(WORD_BYTES)
    begun = NewJob(
        body=body(name, call.decision.verify),
        token=sha256(word.encode()).hexdigest(),
        next_at=now + said.every_s,
        give_up_at=give_up_at,
    )
    call.sequels = (*call.sequels, begun)
    what = pending(told, give_up_at=give_up_at)
    return Judged(
        status=Status.PARTIAL,
        state=State.UNKNOWN,
        message=described(what, call.id),
        rung=Rung.ACCEPTED,
        pending=what,
    )


def _told_name(call: Call, job: Job, name: str, answer: Any) -> str | None:
    """Not where policy masks it, or it is one of the arguments that are not shown."""
    try:
        masks = call.decision.redact
        if masks and name_of(job, call.arguments, masked(answer, masks)) != name:
            return None
    except ExpressionError:
        return None
    return name if shown(call, name) == name else None


# --- a read, followed by its own call -----------------------------------------------------------------------


async def _followed(call: Call, job: Job, name: str, ports: Ports) -> Judged:
    seconds = min(settlement.patience(call, ports), job.said.max_wait_s)
    call.work = asking = asyncio.ensure_future(_asked(call, job, name, ports))  # so that it can be cancelled
    in_time = await ports.clock.until(asking, seconds)
    if in_time and not asking.cancelled():
        return await verified_later(call, _result(call, asking.result()), ports)
    asking.cancel()
    stopped = await _stopped(call, job, name, ports)
    left = "it was cancelled" if stopped else "it may go on at its upstream"
    code = Code.TIMEOUT if not in_time else Code.CANCELLED
    text = f"the job was not over in time; {left}" if not in_time else f"cancelled by its caller; {left}"
    return Judged(status=Status.FAILED, state=State.NO_EFFECT, code=code, message=text)


async def _asked(call: Call, job: Job, name: str, ports: Ports) -> Ended | Failed:
    pause = job.said.every_s
    while True:
        await ports.clock.sleep(pause)
        pause = min(2 * pause, job.said.slowest_s)
        seen = await settlement.ask_job(call.principal.tenant, job, _variables(call, name), ports)
        if isinstance(seen, Ended | Failed):
            return seen


async def _stopped(call: Call, job: Job, name: str, ports: Ports) -> bool:
    if job.cancel is None or ports.jobs is None:
        return False
    return await ports.jobs.stop(call.principal, job, _variables(call, name), call.id)


def _variables(call: Call, name: str) -> dict[str, Any]:
    return {"args": call.arguments, "key": call.upstream_key or "", "job": name}


# --- a write, once its job has ended ------------------------------------------------------------------------


async def concluded(call: Call, operation: Operation, look: Ended | Failed, ports: Ports) -> Settlement:
    """What the end of a job makes of the operation that submitted it; `call` is as it was then."""
    with serving(call):
        found = await verified_later(call, _result(call, look), ports)
    told = _observed(call, operation, found, ports)
    labels = call.tool.contract.labels if found.state is State.COMMITTED else ()
    note = "its job ended" if found.status is Status.DONE else "its job did not end well"
    return Settlement(state=found.state, observation=told.to_json(), by="job", note=note, labels=labels)


def _result(call: Call, look: Ended | Failed) -> Result:
    if isinstance(look, Ended):
        return Ran(value=look.result)
    why, tool = look.why, call.tool
    for rule in tool.contract.error_contract.rules:
        if rule.match == why:
            trace = Trace(rule.effect)
            if trace is Trace.UNKNOWN and not tool.writes:
                trace = Trace.NONE
            return Broke(trace=trace, code=rule.code, message=f"the job of {tool.contract.tool!r}: {why}")
    if call.decision.redact:
        why = "policy masks some of what it says"
    return Ran(value=None, error=f"its job failed: {why}")


def _observed(call: Call, operation: Operation, found: Judged, ports: Ports) -> Observation:
    """What was told when it was submitted, with how it ended."""
    before, always = settlement.unknown(operation), promised(call.tool.contract)
    now, done = iso(ports.clock.now()), found.status is Status.DONE
    queued = before.timing or Timing(now, None, now)
    redact = call.decision.redact
    return replace(
        before,
        status=found.status,
        code=found.code,
        message=None if found.message is None else shown(call, found.message),
        remedy=NO_REMEDY if found.code is None else remedy(found.code, found.retry_after_ms),
        data=found.data if not redact else masked(found.data, redact),
        warnings=(*before.warnings, *[text for one in found.warnings if (text := shown(call, one))]),
        outcome=Outcome(found.rung, always.strength),
        provenance=Provenance(always.tool, always.version, now, "live", 1.0) if done else None,
        timing=replace(queued, completed_at=now),
        mutations=tuple([dict(change) for change in always.mutations]) if done else (),
        pending=None,
    )
