"""Notices on their way out, in memory."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.model.approval import Answer
from holdfast.model.people import Notice, Tally, Untold
from holdfast.ports import Clock
from holdfast.stores.memory.shelf import Shelf

Name = tuple[str, str]


class MemoryOutbox:
    def __init__(self, shelf: Shelf, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock
        self._notices: dict[Name, Notice] = {}
        self._leased: dict[Name, float] = {}
        self._told: dict[Name, tuple[int, bool, float]] = {}

    async def put(self, notice: Notice) -> bool:
        if _name(notice) in self._notices:
            return False
        self._notices[_name(notice)] = notice
        return True

    async def take(self, limit: int, until: float) -> Sequence[Notice]:
        now = self._clock.now()
        due = sorted((n for n in self._waiting() if n.due_at <= now), key=lambda n: (n.due_at, _name(n)))
        return [self._lease(notice, until) for notice in due[:limit]]

    async def gather(self, notice: Notice, until: float) -> Sequence[Notice]:
        now = self._clock.now()
        same = [n for n in self._waiting() if (n.channel, n.to) == (notice.channel, notice.to)]
        free = [n for n in same if self._leased.get(_name(n), 0.0) <= now]
        return [self._lease(n, until) for n in sorted(free, key=lambda n: (n.at, n.id))]

    async def next_due(self) -> float | None:
        return min((notice.due_at for notice in self._waiting()), default=None)

    async def sent(self, notice: Notice) -> None:
        self._end(notice, sent_at=self._clock.now(), said="")

    async def again(self, notice: Notice, due_at: float | None, said: str) -> None:
        if due_at is None:
            self._end(notice, failed_at=self._clock.now(), said=said)
        else:
            self._end(notice, due_at=due_at, said=said)

    async def told_with(self, notices: Sequence[Notice], said: str) -> None:
        for notice in notices:
            self._end(notice, sent_at=self._clock.now(), said=said)

    async def told_to(self, notices: Sequence[Notice], since: float) -> Sequence[float]:
        now, times = self._clock.now(), []
        own, whose = {_name(notice) for notice in notices}, (notices[0].channel, notices[0].to)
        for name, other in self._notices.items():
            if name in own or (other.channel, other.to) != whose:
                continue
            if other.sent_at is not None and other.sent_at > since and not other.said:
                times.append(other.sent_at)
            elif _waits(other) and self._leased.get(name, 0.0) > now:
                times.append(now)
        return sorted(times)

    async def list(self, tenant: str, limit: int) -> Sequence[Notice]:
        own = [notice for notice in self._notices.values() if notice.tenant == tenant]
        return sorted(own, key=lambda notice: (-notice.at, notice.id))[:limit]

    async def tally(self, tenant: str) -> Sequence[Tally]:
        own = sorted((n for n in self._notices.values() if n.tenant == tenant), key=lambda n: (n.at, n.id))
        return [
            _tally(name, [n for n in own if n.channel == name]) for name in sorted({n.channel for n in own})
        ]

    async def forget(self, before: float) -> int:
        gone = [name for name, notice in self._notices.items() if notice.at < before and not _waits(notice)]
        for name in gone:
            del self._notices[name]
        self._told = {name: told for name, told in self._told.items() if not told[1] or told[2] >= before}
        return len(gone)

    async def untold(self, limit: int) -> Sequence[Untold]:
        found = []
        for name, asked in self._shelf.approvals.items():
            level, ended, _ = self._told.get(name, (-1, False, 0.0))
            pending = asked.approval.answer is Answer.PENDING
            if level < asked.approval.level if pending else name in self._told and not ended:
                found.append(Untold(tenant=name[0], approval_id=name[1], level=level))
        return found[:limit]

    async def told(self, tenant: str, approval_id: str, level: int, ended: bool) -> None:
        before, over, _ = self._told.get((tenant, approval_id), (-1, False, 0.0))
        self._told[tenant, approval_id] = max(before, level), over or ended, self._clock.now()

    def _waiting(self) -> Sequence[Notice]:
        return [notice for notice in self._notices.values() if _waits(notice)]

    def _lease(self, notice: Notice, until: float) -> Notice:
        taken = replace(notice, due_at=until, tries=notice.tries + 1)
        self._notices[_name(notice)], self._leased[_name(notice)] = taken, until
        return taken

    def _end(self, notice: Notice, **changes: float | str) -> None:
        held = self._notices.get(_name(notice))
        if held is not None and held.tries == notice.tries and _waits(held):
            self._notices[_name(notice)] = replace(held, **changes)  # type: ignore[arg-type]
            self._leased.pop(_name(notice), None)


def _name(notice: Notice) -> Name:
    return notice.tenant, notice.id


def _waits(notice: Notice) -> bool:
    return notice.sent_at is None and notice.failed_at is None


def _tally(channel: str, notices: Sequence[Notice]) -> Tally:
    troubled = [notice.said for notice in notices if notice.sent_at is None and notice.said]
    times = [notice.sent_at for notice in notices if notice.sent_at is not None]
    return Tally(
        channel=channel,
        sent=len(times),
        waiting=sum(map(_waits, notices)),
        failed=sum(notice.failed_at is not None for notice in notices),
        last_sent_at=max(times, default=None),
        said=troubled[-1] if troubled else "",
    )
