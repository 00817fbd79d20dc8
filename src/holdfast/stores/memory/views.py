"""Calls as people look at them, in memory."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import inf

from holdfast.model.view import Answered, CallRow, Spent, Traffic, Wanted
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.memory.audit import MemoryAudit
from holdfast.stores.projected import Line
from holdfast.stores.projection import DAY_S, MINUTE_S, Projection, numbers, seen

_EQUAL = ("caller", "agent", "status", "code", "effect", "task")


class MemoryViews:
    def __init__(self, audit: MemoryAudit) -> None:
        self._audit = audit
        self._mark = -1
        self._view = Projection()

    async def keep_up(self, most: int) -> int:
        return await self.catch_up(most)

    async def catch_up(self, most: int) -> int:
        last, entries = self._audit.after(self._mark, most)
        records = [(leaf, r.tenant, r.call_id, r.kind, r.at, r.body) for leaf, r in entries]
        self._view.take([one for record in records if (one := seen(*record)) is not None])
        taken, self._mark = last - self._mark, last
        return taken

    async def calls(self, tenant: str, wanted: Wanted) -> Sequence[CallRow]:
        place, known = _newest, self._view.lines.get((tenant, wanted.before or wanted.after or ""))
        found = [line for line in self._lines(tenant) if _is_wanted(line, wanted)]
        if wanted.before is not None:
            found = [line for line in found if known is not None and place(line) < place(known)]
        if wanted.after is not None:
            found = [line for line in found if line.leaf > (-1 if known is None else known.leaf)]
            found.sort(key=lambda line: line.leaf)
        else:
            found.sort(key=place, reverse=True)
        return [line.row() for line in found[: wanted.limit]]

    async def call(self, tenant: str, call_id: str) -> CallRow | None:
        line = self._view.lines.get((tenant, call_id))
        return line.row() if line is not None and line.tool else None

    async def traffic(self, tenant: str, since: float, until: float) -> Sequence[Traffic]:
        sums: Counter[tuple[int, str, str, str, int]] = Counter()
        for one in self._kept(tenant, since, until):
            sums[one.minute, one.tool, one.status, one.code, one.bucket] += one.calls
        return [Traffic(*key, calls=calls) for key, calls in sorted(sums.items())]

    async def by_step(
        self, tenant: str, since: float, until: float, step_s: int, caller: str | None = None
    ) -> Sequence[Answered]:
        step = max(step_s // MINUTE_S, 1)
        sums: Counter[tuple[int, str, int]] = Counter()
        for one in self._kept(tenant, since, until, caller):
            sums[one.minute // step * step * MINUTE_S, one.status, one.bucket] += one.calls
        return [Answered(*key, calls=calls) for key, calls in sorted(sums.items())]

    async def by_tool(self, tenant: str, since: float, caller: str | None = None) -> Sequence[Answered]:
        sums: Counter[tuple[str, str, int]] = Counter()
        for one in self._kept(tenant, since, inf, caller):
            sums[one.tool, one.status, one.bucket] += one.calls
        return [Answered(*key, calls=calls) for key, calls in sorted(sums.items())]

    async def spending(self, tenant: str, since: float, until: float) -> Sequence[Spent]:
        first, last = numbers(since, until, DAY_S)
        sums: dict[tuple[int, str, str, str, str, str], tuple[int, int]] = {}
        for key, (calls, cost) in self._view.spending.items():
            what = key[1:]
            if tenant in (key[0], EVERYWHERE) and first <= what[0] < last:
                before = sums.get(what, (0, 0))
                sums[what] = before[0] + calls, before[1] + cost
        return [Spent(*what, *both) for what, both in sorted(sums.items())]

    async def forget(self, tenant: str, before: float) -> int:
        view = self._view
        old = [name for name, line in view.lines.items() if name[0] == tenant and line.updated_at < before]
        for name in old:
            del view.lines[name]
        for key in [key for key in view.traffic if key[0] == tenant and key[1] < before // MINUTE_S]:
            del view.traffic[key]
        for paid in [key for key in view.spending if key[0] == tenant and key[1] < before // DAY_S]:
            del view.spending[paid]
        return len(old)

    def answered(self, tenant: str, since: float) -> list[tuple[tuple[int, str, str, str, int, str], int]]:
        """Calls by minute, tool, status, code, bucket and caller."""
        kept = self._view.traffic.items()
        return [(key[1:], calls) for key, calls in kept if key[0] == tenant and key[1] >= since // MINUTE_S]

    def _lines(self, tenant: str) -> Iterable[Line]:
        return (line for (owner, _), line in self._view.lines.items() if owner == tenant and line.tool)

    def _kept(self, tenant: str, since: float, until: float, caller: str | None = None) -> Iterable[Traffic]:
        first, last = numbers(since, until, MINUTE_S)
        for key, calls in self._view.traffic.items():
            ours = tenant in (key[0], EVERYWHERE) and caller in (None, key[6])
            if ours and first <= key[1] < last:
                yield Traffic(*key[1:6], calls)


def _newest(line: Line) -> tuple[float, str]:
    return line.at, line.call_id


def _is_wanted(line: Line, wanted: Wanted) -> bool:
    if wanted.tool is not None:
        own = f"{line.upstream}.*" if wanted.tool.endswith(".*") else line.tool
        if own != wanted.tool:
            return False
    equal = all(getattr(wanted, name) in (None, getattr(line, name)) for name in _EQUAL)
    since = wanted.since is None or line.at >= wanted.since
    until = wanted.until is None or line.at < wanted.until
    return equal and since and until and (line.alarms > 0 or not wanted.alarmed)
