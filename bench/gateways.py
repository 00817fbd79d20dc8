"""How fast is Holdfast beside other gateways, in one run, on one upstream?

    python -m bench.gateways                        about a quarter of an hour
    python -m bench.gateways --quick                without the others: a minute
    python -m bench.gateways --extras               other eras and settings too
    python -m bench.gateways --only holdfast        those whose name has the word in it, and direct

Every gateway runs in its own environment and stands still until its turn; rounds go round in turn, so that a
slow minute hurts all alike. `CPU us` is the gateway's own per call and `RSS` its memory, with its children;
in the row `direct` they are the upstream's. A round in which other processes took more than a tenth of a
core, or the machine was slower than it can be, is fought again, and else shown, but nothing is concluded from
it: a `?`, and no ratio. `bench/results/` keeps the results.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

from bench.contestant import Endpoint, Open
from bench.contestants import chosen
from bench.goals import Goals
from bench.kept import found, keep, machine, versions
from bench.peers.installed import Uninstalled
from bench.report import doubts, fsync_ms, table, weaker
from bench.ring import TRIES, Ring, Round
from bench.running import ROOT, Unstarted


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _asked(arguments)
    contestants = chosen(asked.only, peers=not asked.quick, extras=asked.extras)
    print(machine())
    print(", ".join(f"{name} {number}" for name, number in versions().items()))
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, ExitStack() as stack:
        place = Path(folder)
        disk = fsync_ms(place)
        upstream, pid = stack.enter_context(running_upstream())
        opened, missing = _open(stack, place, upstream, {who.open for who in contestants if who.open})
        untold = {who.name: missing[who.open] for who in contestants if who.open in missing}
        for name, why in untold.items():
            print(f"! {name} is not measured: {why}")
        gateways = frozenset(endpoint.pid for endpoint in opened.values())
        tries = 1 if asked.quick else TRIES  # whoever is in a hurry takes what there is
        ring = Ring(upstream, gateways, asked.seconds, asked.warm_up, tries)
        opened[None] = Endpoint(url=upstream, pid=pid)
        fit = [(who, opened[who.open]) for who in contestants if who.open in opened]
        rounds: list[Round] = []
        for number in range(asked.rounds):
            for concurrency in asked.concurrency:
                rounds += [ring.measure(who, endpoint, concurrency) for who, endpoint in fit]
            print(f"round {number + 1} of {asked.rounds} done", file=sys.stderr)
        disk = min(disk, fsync_ms(place))  # again at the end: it is compared with what was in between
    print(f"fsync {disk:.2f} ms (median)")
    for concurrency in asked.concurrency:
        print(table(contestants, rounds, concurrency, asked.noisy))
    goals = Goals(contestants, rounds, disk)
    print("\n".join(("", "promises", *map(str, goals.judged()), *goals.limits())))
    pace = ring.pace.best_ms
    for doubt in (*doubts(rounds), *weaker(pace, machine(), found(asked.keep))):
        print(f"! {doubt}")
    keep(
        asked.keep,
        fsync_ms=round(disk, 3),
        pace_ms=pace,
        cores=os.cpu_count(),
        not_measured=sorted(untold),
        rounds=[{**asdict(r), "fault": "", "quiet": r.quiet} for r in rounds],
    )


def _open(
    stack: ExitStack, place: Path, upstream: str, openers: set[Open]
) -> tuple[dict[Open | None, Endpoint], dict[Open | None, str]]:
    """All at once, each in a folder of its own; what cannot be had is told, not skipped."""
    opened: dict[Open | None, Endpoint] = {}
    missing: dict[Open | None, str] = {}

    def enter(number: int, opener: Open) -> None:
        home = place / str(number)
        home.mkdir()
        try:
            opened[opener] = stack.enter_context(opener(home, upstream))
        except (Uninstalled, Unstarted, OSError, subprocess.SubprocessError) as error:
            missing[opener] = " ".join(str(error).split())

    with ThreadPoolExecutor(len(openers) or 1) as pool:
        for done in [pool.submit(enter, number, opener) for number, opener in enumerate(openers)]:
            done.result()
    return opened, missing


@contextmanager
def running_upstream(tools: int = 0) -> Iterator[tuple[str, int]]:
    """The upstream's URL and process; with so many more tools than it needs."""
    command = [sys.executable, "-m", "bench.upstream", "http", str(tools)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.gateways", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="Holdfast alone, one short round")
    parser.add_argument("--seconds", type=float, help="how long a round counts")
    parser.add_argument("--warm-up", type=float, default=0.6, help="how long it runs before that")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--concurrency", type=_numbers, help="such as 1,32")
    parser.add_argument("--only", help="words in the names of what is wanted, such as holdfast,airlock")
    parser.add_argument("--extras", action="store_true", help="other eras and settings too")
    parser.add_argument("--noisy", action="store_true", help="give ratios of disturbed rounds too")
    parser.add_argument("--keep", help="the name under which results are kept")
    asked = parser.parse_args(arguments)
    seconds, rounds, concurrency = (1.0, 1, [1, 32]) if asked.quick else (4.0, 3, [1, 8, 32])
    asked.seconds = asked.seconds or seconds
    asked.rounds = asked.rounds or rounds
    asked.concurrency = asked.concurrency or concurrency
    asked.keep = asked.keep or ("quick" if asked.quick or asked.only else "gateways")
    return asked


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
