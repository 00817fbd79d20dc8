"""Are the promises about speed kept in this run? Each is a ratio of two figures of the same run."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from bench.contestant import Contestant
from bench.report import Figures, figured
from bench.ring import Round

FASTEST = "the fastest peer"


@dataclass(frozen=True)
class Judged:
    goal: str
    wanted: str
    found: str
    verdict: str
    """`kept`, `not kept`, or `no conclusion`."""

    def __str__(self) -> str:
        return f"  {self.goal:<72}{self.wanted:>10}{self.found:>9}  {self.verdict}"


class Goals:
    def __init__(
        self,
        contestants: Sequence[Contestant],
        rounds: Sequence[Round],
        fsync_ms: float,
        cores: int | None = None,
    ) -> None:
        self._fsync_ms, self._cores = fsync_ms, cores or os.cpu_count() or 1
        self._by_name = {
            (figures.contestant.name, concurrency): figures
            for concurrency in (1, 32)
            for figures in figured(contestants, rounds, concurrency)
        }

    def judged(self) -> list[Judged]:
        """Those of which both sides were measured."""
        read, write = "holdfast read", "holdfast durable write"
        found = [
            self._rate(read, self._best(""), FASTEST, 1.2),
            self._rate(read, self._best("fastmcp"), "the best FastMCP", 5),
            self._rate(read, self._best("contextforge"), "the best ContextForge", 25),
            self._latency(read, 4, fsyncs=0),
            self._rate(write, self._best(""), FASTEST, 1.0),
            self._latency(write, 6, fsyncs=2),
            self._rate(f"{read}, over stdio", self._best(""), FASTEST, 1.2),
            self._latency(f"{read}, over stdio", 4, fsyncs=0),
            self._rate(f"{write}, over stdio", self._best(""), FASTEST, 1.0),
            self._latency(f"{write}, over stdio", 6, fsyncs=2),
            self._rate(f"{read}, two workers over stdio", self._best(""), FASTEST, 1.2),
            self._rate(f"{write}, two workers over stdio", self._best(""), FASTEST, 1.0),
            self._rate(f"{read}, two workers", self._by_name.get((read, 32)), "one worker", 1.6),
            self._rate(f"{write}, two workers", self._by_name.get((write, 32)), "one worker", 1.6),
        ]
        return [one for one in found if one.found != "-"]

    def limits(self) -> list[str]:
        """What a second worker could give at most where everybody shares the machine's cores."""
        return [said for name in ("holdfast read", "holdfast durable write") if (said := self._limit(name))]

    def _limit(self, name: str) -> str | None:
        one = self._by_name.get((name, 32))
        gateway, around = (None if one is None else one.median(what) for what in ("cpu_us", "around_us"))
        if one is None or gateway is None or around is None:
            return None
        most = self._cores * 1e6 / (gateway + around)
        return (
            f"{name}: a call takes {gateway:.0f} us of CPU in the gateway and {around:.0f} us in load and "
            f"upstream; {self._cores} cores carry at most {most:,.0f} of these a second, "
            f"{most / one.per_second:.2f} x one worker"
        )

    def _best(self, word: str) -> Figures | None:
        peers = [
            figures
            for (name, concurrency), figures in self._by_name.items()
            if concurrency == 32 and figures.contestant.peer and word in name
        ]
        return max(peers, key=lambda figures: figures.per_second, default=None)

    def _rate(self, name: str, other: Figures | None, called: str, wanted: float) -> Judged:
        goal, least = f"{name}, calls/s at 32, beside {called}", f">= {wanted:g} x"
        ours = self._by_name.get((name, 32))
        if ours is None or other is None or not other.per_second:
            return Judged(goal, least, "-", "no conclusion")
        ratio = ours.per_second / other.per_second
        return Judged(goal, least, f"{ratio:.2f} x", _verdict(ratio >= wanted, ours, other))

    def _latency(self, name: str, directs: float, *, fsyncs: int) -> Judged:
        """At concurrency 1: so many direct calls, and so often the disk."""
        ours, direct = self._by_name.get((name, 1)), self._by_name.get(("direct", 1))
        disk = f"{fsyncs} fsyncs + " if fsyncs else ""
        goal = f"{name}, p50 at 1, in ms: {disk}{directs:g} x direct"
        took, base = (None if f is None else f.median("p50_ms") for f in (ours, direct))
        if ours is None or direct is None or took is None or base is None:
            return Judged(goal, "-", "-", "no conclusion")
        most = fsyncs * self._fsync_ms + directs * base
        return Judged(goal, f"<= {most:.2f}", f"{took:.2f}", _verdict(took <= most, ours, direct))


def _verdict(kept: bool, *figures: Figures) -> str:
    if not all(one.conclusive for one in figures):
        return "no conclusion"
    return "kept" if kept else "not kept"
