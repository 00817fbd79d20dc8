"""Prints what a governed call costs in one process, without a server: beside the floor, watched, and logged.

    python -m bench       about half a minute; part of `make bench`
    python -m bench 2000  with another number of calls per figure

Figures are CPU of this process unless they say calls/s. Compare ratios: wall times are
noisy on a shared machine.
"""

import asyncio
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from bench.audit import audit
from bench.floor import Floor
from bench.tools import TOOLS
from bench.watched import watched
from holdfast import Gateway, Observation, Principal, testing
from holdfast.model.observation import Status
from holdfast.system import SystemClock

AGENT = Principal(user="ana", agent="bench", scopes=frozenset({"**"}), trust=60)
ROUNDS = 5
PLENTY: dict[str, Any] = {"limits": {"ingress": {"rate": 1e6, "burst": 1e6}}}
"""One caller makes all the calls; the limit is checked all the same."""
Flow = Callable[[str], Awaitable[Any]]


@dataclass(frozen=True)
class Cost:
    per_second: float
    cpu_us: float


async def measure(flow: Flow, calls: int, concurrency: int, prefix: str) -> Cost:
    """Median of some rounds; every call has a key of its own."""
    rounds = []
    for number in range(ROUNDS):
        names = iter([f"{prefix}-{number}-{i}" for i in range(calls // ROUNDS)])

        async def worker(names: Any = names) -> None:
            for name in names:
                await flow(name)

        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(worker() for _ in range(concurrency)))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        done = calls // ROUNDS
        rounds.append(Cost(done / wall, cpu / done * 1e6))
    return Cost(statistics.median(r.per_second for r in rounds), statistics.median(r.cpu_us for r in rounds))


async def lives(calls: int) -> None:
    rows: list[tuple[str, int, Cost]] = []
    async with testing.gateway(*TOOLS, namespace="b", clock=SystemClock(), config=PLENTY) as gateway:
        for concurrency in (1, 32):
            rows.append(
                ("read, memory", concurrency, await measure(reading(gateway), calls, concurrency, "r"))
            )
            write = writing(gateway)
            rows.append(
                ("write, memory", concurrency, await measure(write, calls, concurrency, f"w{concurrency}"))
            )
    with tempfile.TemporaryDirectory() as folder:
        config = {
            "store": f"sqlite:///{folder}/bench.db",
            "upstreams": {"b": {"functions": "bench.tools:TOOLS"}},
            **PLENTY,
        }
        floor = Floor(Path(folder))
        async with Gateway.open(config) as gateway:
            for concurrency in (1, 32):
                rows.append(
                    ("read, sqlite", concurrency, await measure(reading(gateway), calls, concurrency, "r"))
                )
                write = writing(gateway)
                cost = await measure(write, calls, concurrency, f"w{concurrency}")
                bare = await measure(floor.flow, calls, concurrency, f"f{concurrency}")
                rows += [("write, sqlite", concurrency, cost), ("bare two transactions", concurrency, bare)]
                share = cost.per_second / bare.per_second
                print(f"concurrency {concurrency:>2}: durable writes at {share:.0%} of the floor")
        floor.close()
    print(f"\n{'life of a call':<24}{'at once':>8}{'calls/s':>10}{'CPU us':>9}")
    for name, concurrency, cost in rows:
        print(f"{name:<24}{concurrency:>8}{cost.per_second:>10.0f}{cost.cpu_us:>9.0f}")


def reading(gateway: Gateway) -> Flow:
    return lambda name: done(gateway.call("b.look", {"item": name}, principal=AGENT))


def writing(gateway: Gateway) -> Flow:
    mark = {"colour": "blue"}
    return lambda name: done(gateway.call("b.mark", {"item": name, **mark}, principal=AGENT, key=name))


async def done(calling: Awaitable[Observation]) -> None:
    """What was turned away costs next to nothing, and would be the best figure of all."""
    seen = await calling
    if seen.status is not Status.DONE or seen.replayed:
        sys.exit(f"a call was not made: {seen.status} {seen.code} {seen.message}")


async def main(calls: int) -> None:
    machine = f"{platform.system()} {platform.machine()}"
    print(f"python {platform.python_version()} on {machine}, {calls} calls per figure")
    await watched(calls)
    print()
    await lives(calls)
    await audit(20 * calls)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000))  # the loop `holdfast serve` uses
