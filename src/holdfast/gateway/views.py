"""What has been called here, by whom, how did it end and how long did it take?

An operator sees what happened in their tenant, everybody else what was called in their name. Made from the
records a moment after they are written; whoever looks has the last moment taken in first.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.gateway.auditors import audits
from holdfast.gateway.operators import operates
from holdfast.model.bounds import UNBOUND
from holdfast.model.call import Principal
from holdfast.model.errors import Code, Forbidden, HoldfastError
from holdfast.model.value import value
from holdfast.model.view import RAN, Answered, CallRow, Wanted, quantile
from holdfast.model.visible import visible
from holdfast.ports import Audit, Ports
from holdfast.ports import Views as KeptViews

log = logging.getLogger(__name__)

BATCH = 512
FRESH_S = 0.1
"""How long somebody who looks waits at most for what was not taken in yet."""
SWEEP = 2048
"""Records taken in by one round of housekeeping: some 5 % of a processor, however busy the gateway is."""
WATCHED, WATCHED_S = 8 * SWEEP, 60.0
"""The same, for so long after somebody looked."""
MOST_ROWS = 500
MOST_SLOTS = 2000
MINUTE_S = 60
_FAILED = ("failed", "unknown")


@value()
class Page:
    rows: tuple[CallRow, ...]
    more: bool


@value()
class Slot:
    """What was answered in a stretch of time."""

    at: float
    calls: int
    failed: int
    """Those among them of which nobody knows how they ended, too."""
    refused: int
    held: int
    p50_ms: float | None
    """Of those that ran."""
    p95_ms: float | None


@value()
class ToolUse:
    tool: str
    calls: int
    failed: int
    p50_ms: float | None
    p95_ms: float | None


class Views:
    """Hung on the gateway as `views`."""

    def __init__(self, kept: KeptViews, audit: Audit, ports: Ports) -> None:
        self._kept = kept
        self._audit = audit
        self._ports = ports
        self._turn = asyncio.Lock()
        self._well = True
        self._looked_at = -WATCHED_S

    # --- looking --------------------------------------------------------------------------

    async def calls(self, by: Principal, wanted: Wanted) -> Page:
        """A page of calls, newest first; with `after`, oldest first."""
        limit = min(max(wanted.limit, 1), MOST_ROWS)
        theirs = self._narrowed(by, replace(wanted, limit=limit + 1))
        if theirs is None:
            return Page(rows=(), more=False)
        found = [self._veiled(by, row) for row in await self._found(by, theirs)]
        rows = tuple(row for row in found[:limit] if self._reaches(by, row.tool) and _asked_for(row, wanted))
        return Page(rows=rows, more=len(found) > limit and bool(rows))

    async def call(self, by: Principal, call_id: str) -> CallRow | None:
        """None when there is none, or it is not theirs."""
        row = await self._kept.call(by.tenant, call_id)
        if row is None or not self._reaches(by, row.tool):
            return None
        own = row.caller == by.user and (by.bounds is UNBOUND or row.agent == by.agent)
        return self._veiled(by, row) if own or operates(by, self._ports.people) else None

    async def traffic(self, by: Principal, since: float, until: float, step_s: int) -> Sequence[Slot]:
        """One slot for each step, empty ones too; a step is whole minutes."""
        step = max(-(-step_s // MINUTE_S), 1) * MINUTE_S
        first = int(since // step) * step
        starts = range(first, max(-int(-until // 1), first), step)
        if len(starts) > MOST_SLOTS:
            raise HoldfastError(f"that would be {len(starts)} steps; ask for at most {MOST_SLOTS}")
        kept = await self._kept.by_step(by.tenant, first, until, step, self._whose(by))
        by_start: dict[str | int, list[Answered]] = {}
        for one in kept:
            by_start.setdefault(one.of, []).append(one)
        return [_slot(start, by_start.get(start, ())) for start in starts]

    async def by_tool(self, by: Principal, since: float) -> Sequence[ToolUse]:
        """The most used first."""
        found: dict[str, list[Answered]] = {}
        for one in await self._kept.by_tool(by.tenant, since, self._whose(by)):
            if one.of:  # what is called as no tool is has no figures of its own
                found.setdefault(str(one.of), []).append(one)
        known = {tool: some for tool, some in found.items() if self._knows(by, tool, some)}
        used = [_use(tool, answered) for tool, answered in known.items()]
        return sorted(used, key=lambda use: (-use.calls, use.tool))

    # --- keeping up -----------------------------------------------------------------------

    async def fresh(self) -> None:
        """Take in what was recorded last, as far as that is quickly done.

        A store that takes no writes, or a record that cannot be taken in, keeps nobody from looking at what
        is there.
        """
        now = self._ports.clock.monotonic
        self._looked_at = now()
        async with self._turn:
            try:
                await self._audit.sequence()
                until = now() + FRESH_S
                while await self._kept.catch_up(BATCH) and now() < until:
                    pass
            except Exception as error:  # what is there can be looked at all the same
                text = "views: what was recorded last is not shown yet: %s"
                log.warning(text, error, exc_info=not _expected(error))

    async def tend(self) -> int:
        """One round of housekeeping: calls go on without this, whatever becomes of it."""
        watched = self._ports.clock.monotonic() - self._looked_at < WATCHED_S
        try:
            async with self._turn:
                taken = await self._kept.keep_up(WATCHED if watched else SWEEP)
            self._well = True
        except Exception as error:
            if self._well:  # said once, however long it lasts
                log.error("views: calls are not shown for now: %s", error, exc_info=not _expected(error))
            self._well = False
            return 0
        return taken

    # --- whose ----------------------------------------------------------------------------

    def _narrowed(self, by: Principal, wanted: Wanted) -> Wanted | None:
        """What they may see of it; None for nothing."""
        if operates(by, self._ports.people):
            return wanted
        if wanted.caller not in (None, by.user) or (wanted.alarmed and not self._audits(by)):
            return None
        if by.bounds is UNBOUND:
            return replace(wanted, caller=by.user)
        if wanted.agent not in (None, by.agent):
            return None
        return replace(wanted, caller=by.user, agent=by.agent)

    def _whose(self, by: Principal) -> str | None:
        if operates(by, self._ports.people):
            return None
        if by.bounds is not UNBOUND:
            raise Forbidden("figures are for people and operators; what was delegated shows single calls")
        return by.user

    async def _found(self, by: Principal, wanted: Wanted) -> Sequence[CallRow]:
        """Looking for what was not found finds what is hidden from them too."""
        found = await self._kept.calls(by.tenant, wanted)
        if wanted.code != Code.TOOL_NOT_FOUND or self._audits(by):
            return found
        denied = await self._kept.calls(by.tenant, replace(wanted, code=Code.PERMISSION_DENIED.value))
        both = [*found, *(row for row in denied if self._veiled(by, row).code != row.code)]
        return sorted(both, key=lambda row: (row.at, row.call_id), reverse=wanted.after is None)

    def _veiled(self, by: Principal, row: CallRow) -> CallRow:
        """As its caller was told: of alarms nothing, and what is hidden from them is not there."""
        if self._audits(by):
            return row
        row = row._replace(alarms=0) if row.alarms else row
        if row.status != "refused" or row.code != Code.PERMISSION_DENIED or self._sees(by, row.tool):
            return row
        return row._replace(code=Code.TOOL_NOT_FOUND.value, version="", effect="")

    def _audits(self, by: Principal) -> bool:
        return audits(by, self._ports.people)

    def _knows(self, by: Principal, tool: str, answered: Iterable[Answered]) -> bool:
        """What only ever refused them may be hidden from them."""
        used = any(one.status != "refused" for one in answered)
        return used or self._audits(by) or self._sees(by, tool)

    def _sees(self, by: Principal, tool: str) -> bool:
        found = self._ports.catalog.find(tool, None)
        return found is not None and visible(by, found.tool.contract)

    def _reaches(self, by: Principal, tool: str) -> bool:
        """What was delegated reaches as far back as forward."""
        return by.bounds is UNBOUND or self._sees(by, tool)


def _asked_for(row: CallRow, wanted: Wanted) -> bool:
    """Whether it still is what was looked for, once it is as its caller was told."""
    return wanted.code in (None, row.code) and wanted.effect in (None, row.effect)


def _slot(start: int, answered: Iterable[Answered]) -> Slot:
    kept = list(answered)
    p50, p95 = _latency(kept)
    return Slot(
        at=float(start),
        calls=sum(one.calls for one in kept),
        failed=_count(kept, *_FAILED),
        refused=_count(kept, "refused"),
        held=_count(kept, "held"),
        p50_ms=p50,
        p95_ms=p95,
    )


def _use(tool: str, answered: Sequence[Answered]) -> ToolUse:
    p50, p95 = _latency(answered)
    calls, failed = sum(one.calls for one in answered), _count(answered, *_FAILED)
    return ToolUse(tool=tool, calls=calls, failed=failed, p50_ms=p50, p95_ms=p95)


def _count(answered: Iterable[Answered], *statuses: str) -> int:
    return sum(one.calls for one in answered if one.status in statuses)


def _latency(answered: Iterable[Answered]) -> tuple[float | None, float | None]:
    ran = [(one.bucket, one.calls) for one in answered if one.status in RAN]
    return quantile(ran, 0.5), quantile(ran, 0.95)


def _expected(error: Exception) -> bool:
    return isinstance(error, HoldfastError)
