"""What do the rounds of a comparison say, and where do they say nothing?"""

import os
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.contestant import Contestant
from bench.ring import DISTURBED, SLOW, Round

COLUMNS = (
    ("", 37),
    ("calls/s", 8),
    ("/direct", 8),
    ("/best", 6),
    ("p50 ms", 8),
    ("/direct", 8),
    ("p95 ms", 8),
    ("p99 ms", 8),
    ("CPU us", 8),
    ("RSS MB", 7),
    ("quiet", 6),
    ("faults", 6),
)
"""What is told of each, and how wide; `/direct` and `/best` are ratios to the direct call and best peer."""


@dataclass(frozen=True)
class Figures:
    """The medians of one contestant's rounds at one concurrency: of the quiet ones where there are any."""

    contestant: Contestant
    rounds: tuple[Round, ...]

    @property
    def counted(self) -> tuple[Round, ...]:
        return tuple(r for r in self.rounds if r.quiet) or self.rounds

    @property
    def conclusive(self) -> bool:
        return any(r.quiet for r in self.rounds) and all(r.sound for r in self.counted)

    def median(self, name: str) -> float | None:
        values = [value for r in self.counted if (value := getattr(r, name)) is not None]
        return statistics.median(values) if values else None

    @property
    def per_second(self) -> float:
        return statistics.median(r.per_second for r in self.counted)


def figured(contestants: Sequence[Contestant], rounds: Sequence[Round], concurrency: int) -> list[Figures]:
    """Of each that was measured with so many calls at once."""
    found = (
        Figures(who, tuple(r for r in rounds if r.contestant == who.name and r.concurrency == concurrency))
        for who in contestants
    )
    return [figures for figures in found if figures.rounds]


def table(contestants: Sequence[Contestant], rounds: Sequence[Round], concurrency: int, noisy: bool) -> str:
    """Ratios only of what was measured undisturbed, unless noise is allowed."""
    found = figured(contestants, rounds, concurrency)
    direct = next((f for f in found if f.contestant.name == "direct"), None)
    peers = [f for f in found if f.contestant.peer]
    best = max(peers, key=lambda f: f.per_second, default=None)
    lines = [f"\n{concurrency} at once", _line([heading for heading, _ in COLUMNS])]
    for figures in found:
        cells = [
            figures.contestant.name + ("" if figures.conclusive else " ?"),
            _number(figures.per_second, 0),
            _ratio(figures, direct, "per_second", noisy),
            _ratio(figures, best, "per_second", noisy),
            _number(figures.median("p50_ms"), 2),
            _ratio(figures, direct, "p50_ms", noisy),
            _number(figures.median("p95_ms"), 2),
            _number(figures.median("p99_ms"), 2),
            _number(figures.median("cpu_us"), 0),
            _number(figures.median("rss_mb"), 0),
            f"{sum(r.quiet for r in figures.rounds)}/{len(figures.rounds)}",
            str(sum(r.faults for r in figures.rounds)),
        ]
        lines.append(_line(cells))
    if best is not None:
        lines.append(f"best peer: {best.contestant.name}")
    return "\n".join(lines)


def doubts(rounds: Sequence[Round]) -> list[str]:
    """What a reader must know before believing the table."""
    found = []
    loud = [r for r in rounds if not r.quiet]
    if loud:
        most, slowest = max(r.others for r in loud), max(r.slower for r in loud)
        found.append(
            f"{len(loud)} of {len(rounds)} rounds were disturbed: others took more than {DISTURBED:.0%} of a "
            f"core (up to {most:.0%}), or the machine took more than {SLOW:g} x its best time for the same "
            f"(up to {slowest:.2f} x); nothing is concluded from those"
        )
    for r in rounds:
        if r.fault:
            found.append(
                f"{r.contestant}, {r.concurrency} at once: {r.faults} faults, such as {r.fault[:160]!r}"
            )
        if not r.reached:
            found.append(f"{r.contestant}, {r.concurrency} at once: calls were answered that no upstream saw")
    return found


def weaker(pace_ms: Sequence[float], machine: str, kept: Mapping[str, Any] | None) -> list[str]:
    """Whether this run never met the machine as fast as the run that is kept, on one of the same kind."""
    if kept is None or kept["machine"] != machine or len(kept.get("pace_ms", ())) != len(pace_ms):
        return []
    most = max(now / before for now, before in zip(pace_ms, kept["pace_ms"], strict=True))
    if most <= SLOW:
        return []
    return [
        f"at its best the machine took {most:.2f} x what it took on {kept['at'][:10]} for the same; compare "
        "nothing but ratios with that run"
    ]


def fsync_ms(folder: Path, times: int = 100) -> float:
    """How long this disk takes to keep a few bytes, in the middle."""
    took = []
    with (folder / "fsync").open("wb") as file:
        for _ in range(times):
            file.write(b"x" * 4096)
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - start)
    return statistics.median(took) * 1000


def _ratio(one: Figures, other: Figures | None, name: str, noisy: bool) -> str:
    if other is None or not (noisy or (one.conclusive and other.conclusive)):
        return "-"
    ours, theirs = one.median(name), other.median(name)
    return "-" if ours is None or not theirs else f"{ours / theirs:.2f}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _line(cells: Sequence[str]) -> str:
    first, *rest = cells
    widths = [width for _, width in COLUMNS]
    padded = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
    return " ".join((first.ljust(widths[0]), *padded)).rstrip()
