"""What is counted in the view of the calls, in memory."""

from collections import Counter
from collections.abc import Iterator, Sequence

from holdfast.model.signs import Costed, Exhausted, Latency, Repeat
from holdfast.model.sums import Group, Sum, summed
from holdfast.model.view import RUNNING, CallRow, Wanted
from holdfast.stores.memory.views import MemoryViews

_WELL = frozenset({"done", "partial"})
_NO_LOOP = frozenset({"done", "partial", "preview", "held"})
_EVERYTHING = 1_000_000_000


class MemorySigns:
    def __init__(self, views: MemoryViews) -> None:
        self._views = views

    async def latencies(self, tenant: str, since: float, until: float) -> Sequence[Latency]:
        counts: Counter[tuple[str, int]] = Counter()
        for row in await self._views.traffic(tenant, since // 60 * 60, until // 60 * 60):
            if row.status in _WELL:
                counts[row.tool, row.bucket] += row.calls
        return [Latency(tool, bucket, calls) for (tool, bucket), calls in counts.items()]

    async def repeats(self, tenant: str, since: float, least: int) -> Sequence[Repeat]:
        rows = [row for row in await self._since(tenant, since) if row.task and row.status != RUNNING]
        return [*self._alike(tenant, since, least), *_done(rows, least)]

    async def exhausted(self, tenant: str, since: float) -> Sequence[Exhausted]:
        return list(_exhausted(await self._since(tenant, since)))

    async def costs(self, tenant: str, since: float) -> Sequence[Costed]:
        tools: Counter[tuple[str, str, int]] = Counter()
        tasks: Counter[tuple[str, str]] = Counter()
        days: dict[tuple[str, str], int] = {}
        for row in await self._views.spending(tenant, since, float("inf")):
            if row.tool:
                tools[row.tool, row.currency, row.day] += row.cost
            if row.task:
                place = (row.task, row.currency)
                tasks[place] += row.cost
                days[place] = max(days.get(place, 0), row.day)
        found = [Costed(tool, "", currency, day, cost) for (tool, currency, day), cost in tools.items()]
        return [*found, *(Costed("", *place, days[place], cost) for place, cost in tasks.items())]

    async def sums(
        self, tenant: str, group: Group, since: float, until: float, caller: str | None, most: int
    ) -> Sequence[Sum]:
        rows = await self._views.spending(tenant, since, until)
        return summed([row for row in rows if caller in (None, row.caller)], group, tenant)[:most]

    def _alike(self, tenant: str, since: float, least: int) -> list[Repeat]:
        together: Counter[tuple[int, str, str]] = Counter()
        alike: Counter[tuple[int, str, str, str, str]] = Counter()
        for (minute, tool, status, code, _, caller), calls in self._views.answered(tenant, since):
            together[minute, caller, tool] += calls
            alike[minute, caller, tool, status, code] += calls
        found = [
            Repeat(caller, "", tool, status, code, calls, together[minute, caller, tool])
            for (minute, caller, tool, status, code), calls in alike.items()
            if tool and calls >= least and status not in _NO_LOOP
        ]
        return sorted(found, key=lambda one: (one.caller, one.tool, -one.calls, one.status, one.code))

    async def _since(self, tenant: str, since: float) -> Sequence[CallRow]:
        return await self._views.calls(tenant, Wanted(since=since, limit=_EVERYTHING))


def _done(rows: Sequence[CallRow], least: int) -> Iterator[Repeat]:
    together = Counter((row.caller, row.task, row.tool) for row in rows)
    done = Counter((row.caller, row.task, row.tool, row.code) for row in rows if row.status == "done")
    for (caller, task, tool, code), calls in sorted(done.items()):
        if calls >= least:
            yield Repeat(caller, task, tool, "done", code, calls, together[caller, task, tool])


def _exhausted(rows: Sequence[CallRow]) -> Iterator[Exhausted]:
    counts = Counter(
        (row.tool, row.version, row.attempts)
        for row in rows
        if row.status in ("failed", "unknown") and row.attempts > 1
    )
    for (tool, version, attempts), calls in sorted(counts.items()):
        yield Exhausted(tool, version, attempts, calls)
