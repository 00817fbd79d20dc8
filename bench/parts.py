"""Where do the microseconds of a call go? `python -m bench.parts`, half a minute.

The whole server under load, on a real SQLite store: once as it is, for the total, and once with every part
watched. What watching costs is taken away, so the parts must sum to the total of the one that nobody watched;
the table says how nearly they do. What it costs under load is told by a third server, which watches
everything twice: what that takes more than the second is what one watching takes.
"""

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.contestant import Endpoint
from bench.gateways import running_upstream
from bench.kept import keep, machine
from bench.load import Orders
from bench.parts_server import GATES
from bench.peers import holdfast
from bench.processes import others
from bench.ring import DISTURBED, alone, load
from bench.running import ROOT
from bench.stopwatch import REST

WATCHED_SERVE = (sys.executable, "-m", "bench.parts_server", "serve")
CLOSE = 0.15
"""How nearly the parts must sum to the total."""
ORDER = (
    ("event loop", REST),
    ("http in", "http in"),
    ("http out", "http out"),
    ("protocol", "protocol"),
    ("propose", "propose"),
    ("receive", "receive"),
    ("life of a call", "life of a call"),
    *((f"gate {gate}", gate) for gate in GATES),
    ("begin", "begin"),
    ("run", "run"),
    ("upstream", "upstream"),
    ("verify", "verify"),
    ("observe", "observe"),
    ("finish", "finish"),
    ("telemetry", "telemetry"),
    ("store, on the loop", "store, on the loop"),
    ("store thread", "store"),
    ("other threads", "others"),
)
WRITES_S = 10.0


@dataclass(frozen=True)
class Parts:
    """Microseconds of one call, in the mean of some rounds: means of parts add up, medians do not."""

    tool: str
    parts: dict[str, float]
    total: float
    disturbed: float

    @property
    def sum(self) -> float:
        return sum(self.parts.values())

    @property
    def off(self) -> float:
        return self.sum / self.total - 1

    def to_dict(self) -> dict[str, Any]:
        close = abs(self.off) <= CLOSE
        return {**vars(self), "sum": self.sum, "off": self.off, "close": close}


@dataclass
class Looked:
    """Microseconds of one call on the loop by part, in the mean of all rounds, as they were seen."""

    spent: Counter[str] = field(default_factory=Counter)
    looking: Counter[str] = field(default_factory=Counter)
    """What looking would have cost each part where nothing else is done."""
    apart: Counter[str] = field(default_factory=Counter)
    """In other threads, where nobody looks."""


def parted(once: Looked, twice: Looked) -> Counter[str]:
    """What each part costs that nobody looks at."""
    thought, found = once.looking.total(), twice.spent.total() - once.spent.total()
    dearer = max(1.0, found / thought) if thought else 1.0
    parts = Counter({part: max(0.0, us - dearer * once.looking[part]) for part, us in once.spent.items()})
    return parts + once.apart


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.parts", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--speech", default="modern")
    parser.add_argument("--keep", default="parts")
    asked = parser.parse_args(arguments)
    print(f"{machine()}\n")
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, ExitStack() as stack:
        ring = _Ring(stack, Path(folder), asked)
        tables = [ring.measured(tool) for tool in ("read", "write")]
    print(_table(tables))
    for place in ring.missing:
        print(f"! {place} is not there any more: its time is in the part around it")
    keep(asked.keep, concurrency=asked.concurrency, tables=[one.to_dict() for one in tables])


class _Ring:
    def __init__(self, stack: ExitStack, place: Path, asked: argparse.Namespace) -> None:
        self._asked, self._report, self._number = asked, place / "parts.json", 0
        self.missing: list[str] = []
        upstream, _ = stack.enter_context(running_upstream())
        served = []
        once = {"BENCH_PARTS": str(self._report), "PYTHONPATH": str(ROOT)}
        twice = once | {"BENCH_TWICE": "1"}
        for name, command, variables in (
            ("plain", holdfast.SERVE, once),
            ("watched", WATCHED_SERVE, once),
            ("watched twice", WATCHED_SERVE, twice),
        ):
            (place / name).mkdir()
            config = holdfast.configured(place / name, upstream)
            served.append(stack.enter_context(holdfast.served(place / name, config, command, variables)))
        self._plain, self._watched, self._twice = served
        self._gateways = [one.pid for one in served]

    def measured(self, tool: str) -> Parts:
        totals, loud, once, twice = [], [], Looked(), Looked()
        for _ in range(self._asked.rounds):
            total, disturbed = self._total(tool)
            totals.append(total)
            loud.append(disturbed)
            for seen, endpoint in ((once, self._watched), (twice, self._twice)):
                self._look(seen, tool, endpoint)
        parts = parted(once, twice)
        return Parts(tool, {title: parts[part] for title, part in ORDER}, statistics.mean(totals), max(loud))

    def _total(self, tool: str) -> tuple[float, float]:
        with alone(self._plain.pid, self._gateways):
            before, after, seen = load(self._orders(tool, self._plain), lambda taken: None)
        family = after.family(self._plain.pid)
        ours = before.family(os.getpid()) | after.family(os.getpid())
        spent = after.cpu_s(family) - before.cpu_s(family)
        return spent / seen["calls"] * 1e6, others(before, after, ours)

    def _look(self, seen: Looked, tool: str, endpoint: Endpoint) -> None:
        signals = iter((signal.SIGUSR1, signal.SIGUSR2))
        self._report.unlink(missing_ok=True)
        with alone(endpoint.pid, self._gateways):
            load(self._orders(tool, endpoint), lambda _: os.kill(endpoint.pid, next(signals)))
            until = time.monotonic() + WRITES_S
            while not self._report.exists() and time.monotonic() < until:
                time.sleep(0.05)
        said = json.loads(self._report.read_text())
        self.missing = said["missing"]
        each = 1000 * said["calls"] * self._asked.rounds
        apart = {"store": said["store"], "others": said["others"]}
        seen.spent.update({part: ns / each for part, ns in said["spent"].items()})
        seen.looking.update({part: ns / each for part, ns in said["looking"].items()})
        seen.apart.update({part: ns / each for part, ns in apart.items()})

    def _orders(self, tool: str, endpoint: Endpoint) -> Orders:
        self._number += 1
        return Orders(
            url=endpoint.url,
            speech=self._asked.speech,
            tool=tool,
            concurrency=self._asked.concurrency,
            seconds=self._asked.seconds,
            warm_up=0.5,
            prefix=f"p{self._number}",
            keyed=tool == "write",
        )


def _table(tables: Sequence[Parts]) -> str:
    lines = [f"{'CPU us of a call':<22}" + "".join(f"{one.tool:>10}" for one in tables)]
    for title, _ in ORDER:
        lines.append(f"  {title:<20}" + "".join(f"{one.parts[title]:>10.1f}" for one in tables))
    lines.append(f"{'sum of the parts':<22}" + "".join(f"{one.sum:>10.1f}" for one in tables))
    lines.append(f"{'measured unwatched':<22}" + "".join(f"{one.total:>10.1f}" for one in tables))
    lines.append(f"{'difference':<22}" + "".join(f"{one.off:>+10.1%}" for one in tables))
    for one in tables:
        close = "within" if abs(one.off) <= CLOSE else "NOT within"
        lines.append(f"{one.tool}: the parts sum to the total {close} {CLOSE:.0%}")
        if one.disturbed > DISTURBED:
            lines.append(f"! {one.tool}: others took up to {one.disturbed:.0%} of a core meanwhile")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
