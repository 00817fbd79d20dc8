"""Which jobs go on at their upstreams, and how far are they? EXE-6.

Every process with the store open asks after those that are due; which one does is settled there. So a job is
followed as long as one of them lives, and by another one if it dies.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any
from weakref import WeakValueDictionary

from holdfast import settlement
from holdfast.gateway.job_look import Again, JobLook
from holdfast.gateway.news import News
from holdfast.model import defaults
from holdfast.model.call import Principal, Proposal
from holdfast.model.errors import ConfigError, StoreError
from holdfast.model.job import JobState, Submitted, described, pending
from holdfast.model.observation import Observation, Status
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.peer import Peer
from holdfast.model.tool import Job
from holdfast.model.vocabulary import Environment
from holdfast.ports import Jobs, Ports
from holdfast.stores.rate import arrival, wait_ms

log = logging.getLogger(__name__)

Propose = Callable[[Proposal], Awaitable[Observation]]

AT_ONCE = 16
"""Jobs that one process asks after at the same time."""
NEWS_RATE = (200.0, 10.0)
"""Calls back in so many seconds; a job is asked after without them too."""
MOST_EARLY = 256
"""Words of strangers that are remembered: one may be that of a submission on its way into the ledger."""
WATCH_S = 0.5
"""Between two looks at an operation whose job another process may have seen the end of."""


LAST_S = 1.0
"""Before time is up for somebody who waits it is asked after once more: what they are told is not old."""


class JobDesk:
    """Hung on the gateway as `jobs`; the `Following` port. Bound once the ports exist."""

    def __init__(self, kept: Jobs, environment: Environment) -> None:
        self._kept = kept
        self._environment = environment
        self._news = News()
        self._polling: asyncio.Task[None] | None = None
        self._asking: set[asyncio.Task[None]] = set()
        self._watched: WeakValueDictionary[OperationRef, asyncio.Future[None]] = WeakValueDictionary()
        """What somebody here waits for, as long as they do."""
        self._stopping = False
        self._said_at: float | None = None
        self._early: dict[str, None] = {}

    def bind(self, ports: Ports) -> None:
        self._ports = ports

    def attach(self, propose: Propose, again: Again) -> None:
        """Once there is a gateway through which what cancels a job is called."""
        self._propose, self._again = propose, again
        self._look = JobLook(self._kept, self._ports, self.stop, again)

    def check(self, base_url: str | None) -> None:
        """Raises ConfigError where an upstream is to call back and cannot be told where."""
        tools = [listing.tool for listing in self._ports.catalog.list()]
        wanting = [
            tool.contract.tool
            for tool in tools
            if tool.job is not None and tool.job.said.callback is not None
        ]
        if wanting and not base_url:
            names = ", ".join(f"'{name}'" for name in wanting)
            raise ConfigError(
                f"{names}: 'job.callback' needs an address to give to the upstream; set 'base_url' to where "
                "it reaches this gateway, or leave 'callback' out: the job is asked after anyway"
            )

    # --- for calls ------------------------------------------------------------------------

    async def wait(self, operation: Operation, seconds: float, peer: Peer | None) -> Operation:
        clock = self._ports.clock
        end, told = clock.monotonic() + seconds, -1.0
        await self._hurry(operation)
        late = seconds <= LAST_S
        while True:
            changed = self._watch(operation.ref)  # before looking, so that nothing is missed in between
            operation = await self._ports.ledger.find(operation.ref) or operation
            left = end - clock.monotonic()
            if settlement.ongoing(operation) is None or left <= 0 or self._stopping:
                return operation
            if peer is not None and peer.progress:
                told = await self._progress(operation, peer, told)
            if left <= LAST_S and not late:
                late = True
                await self._hurry(operation)
            await clock.until(changed, min(left, WATCH_S))

    async def _hurry(self, operation: Operation) -> None:
        """Whoever asks is told how far it is by now, not how far it was when somebody last looked."""
        listing = self._ports.catalog.exact(operation.ref.tool, operation.version)
        job = None if listing is None else listing.tool.job
        if job is not None:
            await self._kept.hurry(operation.ref.tenant, operation.call_id, job.said.every_s)
        self.wake()

    async def told(self, operation: Operation) -> Observation:
        before = settlement.ongoing(operation)
        job = None if before is None else await self.get(operation)
        if before is None or before.pending is None or job is None:
            return await self._unfollowed(operation)
        now = pending(
            before.pending.get("id"),
            progress=job.progress,
            ends_at=job.ends_at,
            give_up_at=job.give_up_at,
            cancelling=job.why,
        )
        return replace(before, pending=now, message=described(now, operation.call_id))

    async def _unfollowed(self, operation: Operation) -> Observation:
        """No job of it is kept: it is a run's, it ended just now, or nobody will ever hear of its end."""
        told = settlement.ongoing(operation)
        if told is None or told.pending is None or told.pending.get("kind") != "job":
            return settlement.current(operation)
        now = await self._ports.ledger.find(operation.ref) or operation
        return settlement.current(now) if settlement.ongoing(now) is None else settlement.unknown(now)

    async def stop(self, by: Principal, job: Job, variables: dict[str, Any], call_id: str) -> bool:
        if job.cancel is None:
            return False
        seen = await self._propose(
            Proposal(
                tool=job.cancel.tool,
                arguments=job.cancel.arguments.fill(variables),
                principal=by,
                key=f"{call_id}.cancel",
                environment=self._environment,
                part_of=call_id,  # what the job has locked is not in its way
            )
        )
        if seen.status is not Status.DONE:
            log.warning("the job of call %s is not cancelled yet: %s %s", call_id, seen.code, seen.message)
        return seen.status is Status.DONE

    async def _progress(self, operation: Operation, peer: Peer, before: float) -> float:
        job = await self._kept.get(operation.ref.tenant, operation.call_id)
        if job is None or job.progress is None or job.progress <= before:
            return before
        told = {"progress": job.progress, "total": 1.0, "message": f"job {job.progress:.0%} done"}
        await peer.tell("notifications/progress", told)
        return job.progress

    # --- for people and upstreams ---------------------------------------------------------

    async def get(self, operation: Operation) -> Submitted | None:
        """The job of an operation, while it goes on."""
        job = await self._kept.get(operation.ref.tenant, operation.call_id)
        return None if job is None or job.state is JobState.ENDED else job

    async def cancel(self, operation: Operation, by: Principal) -> bool:
        """Have it cancelled from now on; False where that is not to be had."""
        listing = self._ports.catalog.exact(operation.ref.tool, operation.version)
        job = None if listing is None else listing.tool.job
        if job is None or job.cancel is None or settlement.ongoing(operation) is None:
            return False
        give_up_at = self._ports.clock.now() + defaults.JOB_CANCEL_S
        why = f"cancelled by {by.user!r}"
        asked = await self._kept.cancel(operation.ref.tenant, operation.call_id, why, give_up_at)
        self.wake()
        return asked

    def crowded(self) -> int | None:
        """Milliseconds until somebody without a name may say something again, or None."""
        now = self._ports.clock.now()
        wait = wait_ms(self._said_at, now, *NEWS_RATE)
        if wait is None:
            self._said_at = arrival(self._said_at or now, now, *NEWS_RATE)
        return wait

    async def called_back(self, word: str) -> bool:
        """An upstream says that there is news; what it is, is asked of its own tool."""
        token = sha256(word.encode()).hexdigest()
        known = await self._kept.news(token)
        if known:
            self.wake()
            return True
        self._early[token] = None
        if len(self._early) > MOST_EARLY:
            del self._early[next(iter(self._early))]
        return False

    async def submitted(self, word: str | None) -> None:
        token = "" if word is None else sha256(word.encode()).hexdigest()
        if token in self._early:
            del self._early[token]
            await self._kept.news(token)

    # --- asking after them ----------------------------------------------------------------

    def wake(self) -> None:
        """There is, or may be, something to ask after."""
        self._news.hear("jobs")
        if not self._stopping and (self._polling is None or self._polling.done()):
            self._polling = asyncio.create_task(self._keep_asking(), name="holdfast-jobs")

    async def tend(self) -> None:
        """Take up what others left behind, or have begun since."""
        if await self._kept.soonest(0.0, 0.0) is not None:
            self.wake()

    async def _keep_asking(self) -> None:
        """Until none is left."""
        while not self._stopping:
            try:
                soonest = await self._round()
            except StoreError as error:
                log.warning("jobs wait for the store: %s", error)
                soonest = self._ports.clock.now() + defaults.SWEEP_S
            if soonest is None and not self._asking:
                return
            left = defaults.SWEEP_S if soonest is None else soonest - self._ports.clock.now()
            await self._news.wait(self._ports.clock, max(left, 0.0))

    async def _round(self) -> float | None:
        now = self._ports.clock.now()
        room = AT_ONCE - len(self._asking)
        if room:
            for job in await self._kept.take(now, now + JobLook.LEASE_S, room):
                task = asyncio.create_task(self._asked(job))
                self._asking.add(task)
                task.add_done_callback(self._over)
        return await self._kept.soonest(now, now + defaults.SWEEP_S)

    async def _asked(self, job: Submitted) -> None:
        try:
            ref = await self._look.at(job)
        except StoreError as error:
            log.warning("job of call %s: %s", job.call_id, error)
        except Exception:
            log.exception("job of call %s could not be asked after; it is tried again", job.call_id)
        else:
            if ref is not None:
                self._rouse(ref)

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._asking.discard(task)
        self._news.hear("jobs")

    def _watch(self, ref: OperationRef) -> "asyncio.Future[None]":
        found = self._watched.get(ref)
        if found is None or found.done():
            found = self._watched[ref] = asyncio.get_running_loop().create_future()
        return found

    def _rouse(self, ref: OperationRef) -> None:
        """Somebody here may wait for it."""
        found = self._watched.pop(ref, None)
        if found is not None and not found.done():
            found.set_result(None)

    def close_soon(self) -> None:
        """Whoever waits is told that it goes on."""
        self._stopping = True
        for ref in list(self._watched):
            self._rouse(ref)

    async def close(self) -> None:
        self.close_soon()
        running = [task for task in (self._polling, *self._asking) if task is not None]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
