"""Jobs that go on at their upstream, in memory."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.model.job import JobState, Submitted
from holdfast.ports import Clock
from holdfast.stores.memory.shelf import Shelf
from holdfast.stores.worker import Workers


class MemoryJobs:
    def __init__(self, shelf: Shelf, clock: Clock, workers: Workers) -> None:
        self._shelf = shelf
        self._clock = clock
        self._workers = workers

    async def get(self, tenant: str, call_id: str) -> Submitted | None:
        found = self._shelf.jobs.get((tenant, call_id))
        return None if found is None else found[0]

    async def take(self, now: float, until: float, limit: int) -> Sequence[Submitted]:
        due = [job for job in self._open() if job.next_at <= now and self._is_free(job, now)]
        taken = []
        for job in sorted(due, key=lambda one: one.next_at)[:limit]:
            mine = replace(job, taken=(self._workers.id, until), polls=job.polls + 1)
            self._put(mine)
            taken.append(mine)
        return taken

    async def soonest(self, now: float, again_at: float) -> float | None:
        times = [job.next_at if job.next_at > now else again_at for job in self._open()]
        return min(times, default=None)

    async def note(
        self, job: Submitted, progress: float | None, ends_at: float | None, next_at: float
    ) -> bool:
        now = self._mine(job)
        if now is None:
            return False
        then = next_at if now.next_at == job.next_at else now.next_at
        known = replace(now, progress=progress, ends_at=ends_at, looked_at=self._clock.now())
        self._put(replace(known, next_at=then, taken=("", 0.0)))
        return True

    async def hurry(self, tenant: str, call_id: str, every_s: float) -> bool:
        job = await self.get(tenant, call_id)
        at = None if job is None else job.due(self._clock.now(), every_s)
        if job is None or at is None:
            return False
        self._put(replace(job, next_at=at, polls=0))
        return True

    async def cancel(self, tenant: str, call_id: str, why: str, give_up_at: float) -> bool:
        now = await self.get(tenant, call_id)
        if now is None or now.state is not JobState.RUNNING:
            return False
        at = self._clock.now()
        self._put(replace(now, state=JobState.CANCELLING, why=why, give_up_at=give_up_at, next_at=at))
        return True

    async def end(self, job: Submitted) -> None:
        if self._mine(job) is not None:
            del self._shelf.jobs[job.tenant, job.call_id]

    async def news(self, token: str) -> bool:
        found = [job for job, known in self._shelf.jobs.values() if known == token]
        for job in found:
            self._put(replace(job, next_at=min(job.next_at, self._clock.now())))
        return bool(found)

    def _open(self) -> list[Submitted]:
        return [job for job, _ in self._shelf.jobs.values()]

    def _is_free(self, job: Submitted, now: float) -> bool:
        by, until = job.taken
        return not by or until <= now or not self._workers.alive(by)

    def _mine(self, job: Submitted) -> Submitted | None:
        now, _ = self._shelf.jobs.get((job.tenant, job.call_id), (None, ""))
        return now if now is not None and now.taken == job.taken else None

    def _put(self, job: Submitted) -> None:
        place = (job.tenant, job.call_id)
        self._shelf.jobs[place] = (job, self._shelf.jobs[place][1])
