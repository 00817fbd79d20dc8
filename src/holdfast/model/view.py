"""How do calls look to people who watch many of them: one line each, and counted?

All of it is made from the records, a moment after they are written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log2
from typing import NamedTuple

RUNNING = "running"
"""The status of a call that has an intent and no outcome yet."""
REPLAYED = "replayed"
"""How an answer that was given again is counted, whatever it said: nothing ran for it."""
RAN = frozenset({"done", "partial", "failed", "unknown"})
"""Whose latency tells how long tools take."""
BUCKETS_A_DOUBLING = 4
FASTEST = -40
"""The bucket of whatever took no time worth telling: about a microsecond."""


class CallRow(NamedTuple):
    """One call, on one line."""

    tenant: str
    call_id: str
    at: float
    updated_at: float
    tool: str
    version: str
    caller: str
    agent: str
    effect: str
    status: str
    code: str
    latency_ms: float | None
    attempts: int
    replayed: bool
    alarms: int
    task: str
    approval_id: str
    cost: int
    """In millionths."""

    @property
    def upstream(self) -> str:
        return self.tool.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which calls are looked for; newest first, a page at a time."""

    tool: str | None = None
    """A name, or the namespace of an upstream followed by `.*`."""
    caller: str | None = None
    agent: str | None = None
    status: str | None = None
    code: str | None = None
    effect: str | None = None
    task: str | None = None
    alarmed: bool = False
    since: float | None = None
    until: float | None = None
    before: str | None = None
    """The last call of the page before."""
    after: str | None = None
    """Only what came later than this call: then oldest first."""
    limit: int = 50


class Traffic(NamedTuple):
    """Calls of one tool that were answered alike within a minute, after about the same time."""

    minute: int
    tool: str
    """Empty where there is no tool of the name that was called."""
    status: str
    """Of the answer, or `replayed`."""
    code: str
    bucket: int
    calls: int


class Answered(NamedTuple):
    """Calls that were answered alike after about the same time: of one tool, or in one stretch of time."""

    of: str | int
    status: str
    bucket: int
    calls: int


class Spent(NamedTuple):
    """What calls cost on one day, in one of the parts that a cost has."""

    day: int
    task: str
    tool: str
    caller: str
    part: str
    currency: str
    calls: int
    cost: int
    """In millionths."""


def bucket_of(latency_ms: float) -> int:
    """Four buckets to each doubling: a quantile read from them is off by a tenth at most."""
    if latency_ms <= 0.001:
        return FASTEST
    return floor(BUCKETS_A_DOUBLING * log2(latency_ms))


def middle_of(bucket: int) -> float:
    """The latency a bucket stands for, in milliseconds."""
    return float(2.0 ** ((bucket + 0.5) / BUCKETS_A_DOUBLING))


def quantile(counts: Sequence[tuple[int, int]], share: float) -> float | None:
    """The latency that `share` of the calls stayed below, of (bucket, calls); None without calls."""
    total = sum(calls for _, calls in counts)
    if not total:
        return None
    left = share * total
    for bucket, calls in sorted(counts):
        left -= calls
        if left <= 0:
            return middle_of(bucket)
    return middle_of(max(bucket for bucket, _ in counts))
