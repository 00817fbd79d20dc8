"""What does a call cost when something has grown? `python -m bench.growth`, some minutes.

    python -m bench.growth --quick          smaller sizes, about two minutes
    python -m bench.growth --only tools     one of them
    python -m bench.growth --full           ten million records; a quarter of an hour and ten gigabytes

CPU of this process for whole calls on SQLite, 32 at once: the gateways of all sizes are open together and
measured in turn; each figure is the least of its rounds. `sweep` is one round of housekeeping, which runs
every two seconds whatever calls do.
"""

import argparse
import asyncio
import gc
import logging
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from bench import grown
from bench.kept import keep, machine
from bench.order import order
from bench.start import starts
from holdfast import Gateway

AT_ONCE = 32
SWEEPS = 3


@dataclass(frozen=True)
class Growth:
    what: str
    open: grown.Grown
    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    full: tuple[int, ...] = ()
    bounded: str = ""
    """Why it may grow with the size."""


GROWTHS = (
    Growth("tools", grown.tools, (10, 1_000, 10_000), (10, 100, 1_000)),
    Growth("policies, 10 of them the tool's", grown.policies, (10, 1_000, 10_000), (10, 100, 1_000)),
    Growth(
        "policies, all of them the tool's",
        grown.applicable,
        (1, 10, 100),
        (1, 10, 100),
        bounded="each is evaluated; an operator writes them, a caller cannot",
    ),
    Growth(
        "records in the log",
        grown.records,
        (1, 10_000, 1_000_000),
        (1, 1_000, 100_000),
        (1, 100_000, 10_000_000),
    ),
    Growth("open claims", grown.claims, (1, 10_000, 100_000), (1, 1_000, 10_000)),
    Growth("halts", grown.halts, (1, 100, 1_000), (1, 100, 1_000)),
)


@dataclass(frozen=True)
class Grew:
    what: str
    sizes: tuple[int, ...]
    read_us: tuple[float, ...]
    write_us: tuple[float, ...]
    sweep_ms: tuple[float, ...]
    bounded: str

    def order_of(self, costs: Sequence[float]) -> str:
        return order(list(zip(self.sizes, costs, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        orders = {name: self.order_of(getattr(self, name)) for name in ("read_us", "write_us", "sweep_ms")}
        return {**vars(self), "orders": orders}


async def measured(growth: Growth, sizes: tuple[int, ...], calls: int, rounds: int) -> Grew:
    place = Path(tempfile.mkdtemp(prefix="holdfast-growth-"))
    try:
        async with AsyncExitStack() as stack:
            gateways = []
            for size in sizes:
                folder = place / str(size)
                folder.mkdir()
                gateways.append(await stack.enter_async_context(growth.open(folder, size)))
            return await _measured(growth, sizes, gateways, calls, rounds)
    finally:
        gc.unfreeze()
        shutil.rmtree(place)


async def _measured(
    growth: Growth, sizes: tuple[int, ...], gateways: Sequence[Gateway], calls: int, rounds: int
) -> Grew:
    gc.collect()
    gc.freeze()  # as `holdfast serve` does once it is ready
    reads: list[list[float]] = [[] for _ in gateways]
    writes: list[list[float]] = [[] for _ in gateways]
    sweeps: list[list[float]] = [[] for _ in gateways]
    for number in range(rounds + 1):  # the first only warms up
        for gateway, *seen in zip(gateways, reads, writes, sweeps, strict=True):
            seen[0].append(await _spent(gateway, f"r{number}", calls, write=False))
            seen[1].append(await _spent(gateway, f"w{number}", calls, write=True))
            if number <= SWEEPS:
                seen[2].append(await _sweep(gateway))
    least = [tuple(min(seen[1:]) for seen in kind) for kind in (reads, writes)]
    swept = tuple(statistics.median(seen[1:]) for seen in sweeps)
    return Grew(growth.what, sizes, least[0], least[1], swept, growth.bounded)


async def _spent(gateway: Gateway, prefix: str, calls: int, *, write: bool) -> float:
    names = iter([f"{prefix}-{number}" for number in range(calls)])

    async def work() -> None:
        for name in names:
            if write:
                said = await gateway.call("b.mark", {"item": name}, principal=grown.AGENT, key=name)
            else:
                said = await gateway.call("b.look", {"item": name}, principal=grown.AGENT)
            assert said.status == "done", said

    start = time.process_time()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return (time.process_time() - start) / calls * 1e6


async def _sweep(gateway: Gateway) -> float:
    await gateway.tidy()  # what the calls before left to be done
    start = time.process_time()
    await gateway.tidy()
    return (time.process_time() - start) * 1e3


def _line(grew: Grew) -> str:
    lines = [f"\n{grew.what:<34}" + "".join(f"{size:>12,}" for size in grew.sizes) + f"{'ratio':>9}  order"]
    kinds = (
        ("read, CPU us", grew.read_us),
        ("write, CPU us", grew.write_us),
        ("sweep, CPU ms", grew.sweep_ms),
    )
    for name, costs in kinds:
        figures = "".join(f"{cost:>12.1f}" for cost in costs)
        lines.append(f"  {name:<32}{figures}{costs[-1] / costs[0]:>9.2f}  {grew.order_of(costs)}")
    return "\n".join((*lines, *([f"  ({grew.bounded})"] if grew.bounded else [])))


async def main(asked: argparse.Namespace) -> None:
    logging.basicConfig(level=logging.ERROR)
    print(machine())
    name = "growth-quick" if asked.quick or asked.only else "growth"
    found: list[Grew] = []
    for growth in GROWTHS:
        if asked.only is None or asked.only in growth.what:
            sizes = growth.quick if asked.quick else (asked.full and growth.full) or growth.sizes
            found.append(await measured(growth, sizes, asked.calls, asked.rounds))
            print(_line(found[-1]), flush=True)
    started = [] if asked.only else starts(quick=asked.quick)
    for start in started:
        print(start)
    keep(name, growth=[grew.to_dict() for grew in found], starts=[start.to_dict() for start in started])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.growth", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--full", action="store_true", help="ten million records")
    parser.add_argument("--only", help="a word of what is to grow")
    parser.add_argument("--calls", type=int, default=1_000, help="in one round, of each kind and size")
    parser.add_argument("--rounds", type=int, default=5)
    return parser


if __name__ == "__main__":
    uvloop.run(main(_parser().parse_args()))  # the loop `holdfast serve` uses
