"""One look at a job: has it ended, and what does the ledger say then? EXE-6."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import orjson

from holdfast import settlement
from holdfast.approvals.release import principal_of, proposal_of
from holdfast.lifecycle import concluded
from holdfast.model import defaults
from holdfast.model.call import Call, Decision, Principal
from holdfast.model.current import Stored, serving
from holdfast.model.errors import Code, StoreError, remedy
from holdfast.model.job import Ended, Failed, GoesOn, JobState, Look, Submitted
from holdfast.model.keys import upstream_key
from holdfast.model.observation import Status
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.tool import Job, Tool
from holdfast.model.vocabulary import State
from holdfast.ports import Jobs, Ports, Settlement

log = logging.getLogger(__name__)

T = TypeVar("T")

Again = Callable[[Principal], Principal | None]
"""The same caller with today's rights, or None when there is no such caller any more."""
Stop = Callable[[Principal, Job, dict[str, Any], str], Awaitable[bool]]

JITTER = 0.2
"""Of a pause, by which it is shortened at most: what was begun together is not asked after together."""
MOST_DOUBLINGS = 30


class JobLook:
    LEASE_S: ClassVar[float] = 90.0
    """How long nobody else asks after a job that somebody does; longer than one look may take."""
    LIMIT_S: ClassVar[float] = 20.0
    """Of one reading, and of one call to cancel."""

    def __init__(self, kept: Jobs, ports: Ports, stop: Stop, again: Again) -> None:
        self._kept, self._ports, self._stop, self._again = kept, ports, stop, again

    async def at(self, job: Submitted) -> OperationRef | None:
        """Ask after it once; what it belongs to, where something about that has changed."""
        operation = await self._ports.ledger.find_call(job.tenant, job.call_id)
        if operation is None or settlement.ongoing(operation) is None:
            await self._kept.end(job)  # a person, or a look that ended halfway, has settled it
            return None if operation is None else operation.ref
        listing = self._ports.catalog.exact(operation.ref.tool, operation.version)
        if listing is None or listing.tool.job is None or operation.payload is None:
            return await self._unasked(job, operation)
        return await self._followed(job, operation, listing.tool, listing.tool.job)

    async def _unasked(self, job: Submitted, operation: Operation) -> OperationRef | None:
        """What says how to ask is gone: it may come back, until time is up."""
        if self._now < job.give_up_at:
            await self._kept.note(job, job.progress, job.ends_at, self._next(job, defaults.POLL_CAP_S))
            return None
        what = f"'{operation.ref.tool}' {operation.version}"
        note = f"nobody can be asked after its job: {what} is not in the catalog any more"
        await self._settle(job, operation, _unknown(operation, note))
        return operation.ref

    async def _followed(
        self, job: Submitted, operation: Operation, tool: Tool, how: Job
    ) -> OperationRef | None:
        said: dict[str, Any] = orjson.loads(operation.payload or b"{}")
        variables = {"args": said["arguments"], "key": upstream_key(operation.ref), "job": job.name}
        stopped = False
        with serving(Stored(tool, said["arguments"])):
            seen = await self._asked(job, how, variables)
            over = isinstance(seen, Ended | Failed)  # while nobody looked: there is nothing to stop any more
            if not over and job.state is JobState.RUNNING and self._now >= job.give_up_at:
                job = await self._given_up(job, how)
            if not over and job.state is JobState.CANCELLING:
                stopped = bool(await self._limited(self._stopped(job, operation, how, said, variables)))
                seen = await self._asked(job, how, variables) or seen
        if isinstance(seen, Ended | Failed):
            await self._settle(job, operation, await self._outcome(job, operation, tool, said, seen))
            return operation.ref
        if job.state is JobState.CANCELLING and self._now >= job.give_up_at:
            await self._settle(job, operation, _unheard(job, operation, stopped=stopped))
            return operation.ref
        return await self._noted(job, operation, how, seen)

    async def _given_up(self, job: Submitted, how: Job) -> Submitted:
        """Its time is over: from now on it is being cancelled."""
        why, until = f"not over after {how.said.max_wait_s:g} s", self._now + defaults.JOB_CANCEL_S
        if how.cancel is None:
            until = self._now  # nothing to wait for
        await self._kept.cancel(job.tenant, job.call_id, why, until)
        return await self._fresh(job)

    async def _fresh(self, job: Submitted) -> Submitted:
        return await self._kept.get(job.tenant, job.call_id) or job

    async def _stopped(
        self, job: Submitted, operation: Operation, how: Job, said: dict[str, Any], variables: dict[str, Any]
    ) -> bool:
        by = self._again(principal_of(job.tenant, said["principal"]))
        if by is None:
            log.warning("call %s: %r may no longer call here", job.call_id, operation.ref.principal)
            return False
        return await self._stop(by, how, variables, job.call_id)

    async def _asked(self, job: Submitted, how: Job, variables: dict[str, Any]) -> Look | None:
        return await self._limited(settlement.ask_job(job.tenant, how, variables, self._ports))

    async def _limited(self, work: Awaitable[T]) -> T | None:
        """None as well where it breaks: that must not keep its time from running out."""
        task = asyncio.ensure_future(work)
        try:
            in_time = await self._ports.clock.until(task, self.LIMIT_S)
        finally:
            if not task.done():
                task.cancel()
        try:
            return task.result() if in_time else None
        except StoreError:
            raise
        except Exception:
            log.exception("a job could not be asked after, or stopped; it is tried again")
            return None

    async def _outcome(
        self, job: Submitted, operation: Operation, tool: Tool, said: dict[str, Any], seen: Ended | Failed
    ) -> Settlement:
        call = self._call(job, operation, tool, said)
        found = await concluded(call, operation, seen, self._ports)
        if isinstance(seen, Failed) and job.state is JobState.CANCELLING:
            return _cancelled(found, operation, job.why)
        return found

    def _call(self, job: Submitted, operation: Operation, tool: Tool, said: dict[str, Any]) -> Call:
        """The call as it was when it was submitted, as far as its outcome rests on it."""
        told, now = settlement.unknown(operation), self._ports.clock
        call = Call(
            proposal=proposal_of(operation, said, principal_of(job.tenant, said["principal"])),
            id=operation.call_id,
            trace_id=operation.trace_id,
            nonce=operation.nonce,
            queued_at=operation.created_at,
            started=now.monotonic(),
            deadline=now.monotonic() + tool.contract.runtime.timeout_s,
        )
        call.tool, call.arguments, call.operation = tool, said["arguments"], operation
        call.key, call.key_source = operation.ref.key, operation.key_source
        redact = tuple(said.get("redact", ()))
        call.decision = Decision(told.policy_decision_id or "", True, redact=redact, verify=job.verify)
        return call

    async def _settle(self, job: Submitted, operation: Operation, found: Settlement) -> None:
        if await self._ports.ledger.settle(operation, found):
            self._ports.telemetry.settled(operation, found)
        await self._kept.end(job)

    async def _noted(
        self, job: Submitted, operation: Operation, how: Job, seen: Look | None
    ) -> OperationRef | None:
        progress, ends_at = job.progress, job.ends_at
        if isinstance(seen, GoesOn):
            progress = job.progress if seen.progress is None else seen.progress
            ends_at = job.ends_at if seen.ends_in_s is None else self._now + seen.ends_in_s
        await self._kept.note(job, progress, ends_at, self._next(job, self._pause(job, how)))
        return operation.ref if (progress, ends_at) != (job.progress, job.ends_at) else None

    def _pause(self, job: Submitted, how: Job) -> float:
        doublings = 0 if job.state is JobState.CANCELLING else min(job.polls, MOST_DOUBLINGS)
        return min(how.said.every_s * 2.0**doublings, how.said.slowest_s)

    def _next(self, job: Submitted, pause_s: float) -> float:
        soon = self._now + pause_s * (1 - JITTER * random.random())
        return max(min(soon, job.give_up_at), self._now)

    @property
    def _now(self) -> float:
        return self._ports.clock.now()


def _cancelled(found: Settlement, operation: Operation, why: str) -> Settlement:
    code = Code.CANCELLED if why.startswith("cancelled") else Code.TIMEOUT
    told = replace(
        settlement.unknown(operation),
        status=Status.FAILED,
        code=code,
        message=f"its job was cancelled ({why}); what it had done by then may be left",
        remedy=replace(remedy(code), retryable=False),
    )
    return replace(found, observation=told.to_json(), note=f"its job was cancelled: {why}")


def _unheard(job: Submitted, operation: Operation, *, stopped: bool) -> Settlement:
    """Its upstream does not say how it ended; what can honestly be said then."""
    if stopped:
        final = Settlement(state=State.FAILED_FINAL, observation=None, by="job")
        return _cancelled(final, operation, job.why)
    return _unknown(operation, f"its job could not be cancelled ({job.why})")


def _unknown(operation: Operation, note: str) -> Settlement:
    told = settlement.unknown(operation._replace(note=note))
    return Settlement(state=State.UNKNOWN, observation=told.to_json(), by="job", note=note)
