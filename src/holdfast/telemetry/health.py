"""How well is a tool? TEL-4.

    health = 1 - (0.5 error + 0.3 latency + 0.2 timeout)

over the calls of a window that reached the tool, each term between 0 and 1:

- error: the share that failed by the tool's own fault. What a gate refused, what the caller cancelled or
  what the tool rightly declined is no fault of it.
- latency: how far the 99th percentile is above its baseline: nothing at the baseline, all of it at twice
  that, where an alert begins. The baseline is the tool's own 99th percentile over the day before the window,
  or what its contract promises. Without either it is S1's measure: how much of the allowed time was used.
- timeout: the share that overran its time. These are errors as well.

S1 divides the shares by a largest one that is tolerable. Here that is 1, so that a tool that always fails is
below one that fails half of the time. A tool that was not called is well: nothing is known against it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.model import defaults
from holdfast.model.contract import Contract
from holdfast.model.errors import TABLE, Code
from holdfast.model.signs import Latency
from holdfast.model.view import RAN, Traffic, bucket_of, quantile

ERROR, LATENCY, TIMEOUT = 0.5, 0.3, 0.2
"""What each term weighs; S1."""
_FAMILIES = frozenset({"UPSTREAM_FAILURE", "INTERNAL_TOOL_ERROR", "DEADLINE_EXCEEDED"})
FAULTS = frozenset(
    {code for code, entry in TABLE.items() if entry.family in _FAMILIES} - {Code.CANCELLED}
    | {Code.RESOURCE_EXHAUSTED}
)
"""What counts against a tool; a tool that says no is well."""

Counts = list[tuple[int, int]]
"""(bucket, calls)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a window says of one tool, or of everything an upstream has."""

    subject: str
    calls: int = 0
    """That reached it."""
    errors: int = 0
    timeouts: int = 0
    p99_ms: float | None = None
    baseline_ms: float | None = None
    latency: float = 0.0
    """The term of the score, 0 to 1."""

    @property
    def error_share(self) -> float:
        return self.errors / self.calls if self.calls else 0.0

    @property
    def timeout_share(self) -> float:
        return self.timeouts / self.calls if self.calls else 0.0

    @property
    def score(self) -> float:
        """1 is well, 0 could not be worse."""
        return score(self.error_share, self.latency, self.timeout_share)

    def shown(self) -> dict[str, Any]:
        """For programs."""
        return {
            "name": self.subject,
            "health": round(self.score, 3),
            "calls": self.calls,
            "errors": self.errors,
            "timeouts": self.timeouts,
            "p99_ms": None if self.p99_ms is None else round(self.p99_ms, 3),
            "baseline_ms": None if self.baseline_ms is None else round(self.baseline_ms, 3),
        }


def score(error: float, latency: float, timeout: float) -> float:
    return _clamped(1 - (ERROR * _clamped(error) + LATENCY * _clamped(latency) + TIMEOUT * _clamped(timeout)))


def latency_term(p99_ms: float | None, baseline_ms: float | None, limit_ms: float | None) -> float:
    """How slow is slow, from 0 to 1."""
    if p99_ms is None:
        return 0.0
    if baseline_ms:
        return _clamped((p99_ms / baseline_ms - 1) / (defaults.LATENCY_ALERT - 1))
    return _clamped(p99_ms / limit_ms) if limit_ms else 0.0


def of_tools(
    window: Iterable[Traffic], before: Iterable[Latency], contracts: Mapping[str, Contract]
) -> dict[str, Health]:
    """The health of every tool that a call reached, by name."""
    baselines = _baselines(before)
    return {
        tool: _of(tool, rows, baselines.get(tool), contracts.get(tool))
        for tool, rows in sorted(_by_tool(window).items())
    }


def of_upstreams(tools: Mapping[str, Health]) -> dict[str, Health]:
    """All tools of a namespace as one; its latency is that of its slowest tool, weighed by nothing."""
    groups: dict[str, list[Health]] = defaultdict(list)
    for tool, health in tools.items():
        groups[tool.partition(".")[0]].append(health)
    return {name: _together(name, group) for name, group in groups.items()}


def _of(tool: str, rows: Sequence[Traffic], baseline: float | None, contract: Contract | None) -> Health:
    promise = None if contract is None else contract.runtime
    limit_ms = None if promise is None else promise.timeout_s * 1000
    if baseline is None and promise is not None and promise.sla is not None:
        baseline = promise.sla.p99_ms
    p99 = quantile([(row.bucket, row.calls) for row in rows], 0.99)
    return Health(
        subject=tool,
        calls=sum(row.calls for row in rows),
        errors=sum(row.calls for row in rows if row.code in FAULTS and row.status != "done"),
        timeouts=sum(row.calls for row in rows if _overran(row, limit_ms)),
        p99_ms=p99,
        baseline_ms=baseline,
        latency=latency_term(p99, baseline, limit_ms),
    )


def _overran(row: Traffic, limit_ms: float | None) -> bool:
    """A write that is stopped at its deadline ends as unknown; one that broke off before it does too."""
    if row.code == Code.TIMEOUT:
        return True
    return row.code == Code.OUTCOME_UNKNOWN and limit_ms is not None and row.bucket >= bucket_of(limit_ms)


def _together(name: str, group: list[Health]) -> Health:
    called = [one for one in group if one.calls]
    slowest = max(called, key=lambda one: one.latency, default=Health(subject=name))
    return Health(
        subject=name,
        calls=sum(one.calls for one in group),
        errors=sum(one.errors for one in group),
        timeouts=sum(one.timeouts for one in group),
        p99_ms=max((one.p99_ms for one in called if one.p99_ms is not None), default=None),
        baseline_ms=slowest.baseline_ms,
        latency=slowest.latency,
    )


def _by_tool(rows: Iterable[Traffic]) -> dict[str, list[Traffic]]:
    found: dict[str, list[Traffic]] = defaultdict(list)
    for row in rows:
        if row.tool and row.status in RAN:
            found[row.tool].append(row)
    return found


def _baselines(before: Iterable[Latency]) -> dict[str, float]:
    """Of tools with enough calls for a 99th percentile to mean something."""
    counts: dict[str, Counts] = defaultdict(list)
    for tool, bucket, calls in before:
        counts[tool].append((bucket, calls))
    return {
        tool: p99
        for tool, found in counts.items()
        if sum(calls for _, calls in found) >= defaults.LEAST_LATENCIES
        and (p99 := quantile(found, 0.99)) is not None
    }


def _clamped(share: float) -> float:
    return min(max(share, 0.0), 1.0)
