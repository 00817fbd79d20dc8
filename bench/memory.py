"""Does the gateway's memory grow while it serves? `python -m bench.memory --minutes 30`

Reads, cached reads and writes over MCP, legacy and REST go on in turn; the memory of the server is looked at
every few seconds. The first fifth is warming up. A line is fitted through the rest: it is flat when it says
that it rises by less than a few megabytes an hour, or by less than the samples scatter.
"""

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.gateways import running_upstream
from bench.kept import keep, machine
from bench.load import Orders
from bench.peers import holdfast
from bench.processes import snapshot
from bench.ring import load

STINT_S = 5.0
"""How long one kind of load lasts; memory is looked at after each."""
WARM = 0.2
FLAT_MB_H = 4.0
"""A gateway that grows by less could serve for a month within the memory of a small machine."""
LEAST_H = 0.25
STINTS = (
    ("modern", "read", False),
    ("modern", "write", True),
    ("legacy", "read", False),
    ("rest", "b.read", False),
    ("modern", "cached", False),
    ("legacy", "write", True),
    ("jsonrpc", "b.write", True),
)


@dataclass(frozen=True)
class Fitted:
    """A line through samples of seconds and megabytes."""

    slope_mb_h: float
    scatter_mb: float
    """How far samples lie from the line, as a standard deviation."""
    hours: float

    @property
    def long_enough(self) -> bool:
        """Caches are bounded, but not full at once."""
        return self.hours >= LEAST_H

    @property
    def flat(self) -> bool:
        return self.slope_mb_h <= FLAT_MB_H or self.slope_mb_h * self.hours <= 2 * self.scatter_mb

    def __str__(self) -> str:
        said = "flat" if self.flat else "NOT flat" if self.long_enough else "too short to tell"
        return f"{self.slope_mb_h:+.1f} MB an hour, scattered by {self.scatter_mb:.1f} MB: {said}"


def fitted(samples: Sequence[tuple[float, float]]) -> Fitted:
    times, sizes = [at for at, _ in samples], [mb for _, mb in samples]
    line = statistics.linear_regression(times, sizes)
    off = [mb - (line.intercept + line.slope * at) for at, mb in samples]
    hours = (times[-1] - times[0]) / 3600
    return Fitted(line.slope * 3600, statistics.pstdev(off), hours)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.memory", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--concurrency", type=int, default=16)
    asked = parser.parse_args(arguments)
    print(machine())
    with tempfile.TemporaryDirectory(prefix="holdfast-memory-") as folder, running_upstream() as (url, _):
        place = Path(folder)
        config = holdfast.configured(place, url)
        with holdfast.served(place, config, holdfast.SERVE) as endpoint:
            samples, calls = _soaked(endpoint.url, endpoint.pid, asked.minutes * 60, asked.concurrency)
    whole = fitted(samples[int(len(samples) * WARM) :])
    said = (
        f"{asked.minutes:g} minutes, {calls:,} calls: {samples[0][1]:.0f} MB at first, "
        f"{samples[-1][1]:.0f} MB at the end; {whole}"
    )
    print(said)
    name = "memory" if asked.minutes >= 30 else "memory-quick"
    keep(name, said=said, flat=whole.flat, slope_mb_h=whole.slope_mb_h, calls=calls, samples=samples)
    return 1 if whole.long_enough and not whole.flat else 0


def _soaked(url: str, pid: int, seconds: float, concurrency: int) -> tuple[list[tuple[float, float]], int]:
    samples, calls, began = [], 0, time.monotonic()
    for number, (speech, tool, keyed) in enumerate(itertools.cycle(STINTS)):
        orders = Orders(
            url=url,
            speech=speech,
            tool=tool,
            concurrency=concurrency,
            seconds=min(STINT_S, seconds / 20),
            warm_up=0.1,
            prefix=f"m{number}",
            keyed=keyed,
            same=tool == "cached",
        )
        _, _, seen = load(orders, lambda _: None)
        assert not seen["faults"], seen["fault"]
        calls += seen["answered"]
        now = snapshot()
        samples.append((time.monotonic() - began, now.rss(now.family(pid)) / 2**20))
        print(f"\r{samples[-1][0]:6.0f} s {samples[-1][1]:8.1f} MB", end="", file=sys.stderr)
        if samples[-1][0] >= seconds:
            print(file=sys.stderr)
            return samples, calls
    raise AssertionError("a cycle does not end")


if __name__ == "__main__":
    sys.exit(main())
