"""What does a second worker give where there is a core for it? `python -m bench.workers`

On a small machine two workers, the load and the upstream share the cores, and what is measured is how little
is left of them. Here every worker gets half a core and no more, by a control group: then all of them fit on
two, and what a second one does not give is lost in the gateway itself, at its store or between its processes.
Or it is not taken: a worker whose share is used up for the moment while it has the store keeps the other
waiting; so what each had is told too. One worker and two go in turn, 32 calls at once. Needs root, or control
groups that may be written.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.contestant import Endpoint
from bench.gateways import running_upstream
from bench.kept import keep, machine
from bench.load import Orders
from bench.peers import holdfast
from bench.processes import snapshot
from bench.ring import load

GROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 10_000
SHARE = 0.5
START_S, SETTLE_S = 60.0, 3.0
CALLS = (("read", False), ("write", True))


class NotHere(Exception):
    """Says what is missing."""


class Measured(NamedTuple):
    per_second: float
    share: float
    """Of a core, that each worker had: the kernel gives what was asked for only roughly."""


@contextmanager
def confined(pid: int) -> Iterator[None]:
    """The process gets its share of a core until this ends."""
    older = GROUPS / "cpu"
    group = (older if older.is_dir() else GROUPS) / f"holdfast-bench-{pid}"
    quota = int(PERIOD_US * SHARE)
    try:
        group.mkdir()
        if older.is_dir():
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        (group / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        raise NotHere(f"a control group cannot be had here ({error}); run as root") from error
    try:
        yield
    finally:
        (group.parent / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def serving(endpoint: Endpoint, count: int) -> frozenset[int]:
    """The processes that serve, once all of them do; who keeps several serving does nothing itself."""
    if count == 1:
        return frozenset({endpoint.pid})
    give_up = time.monotonic() + START_S
    while len(found := snapshot().family(endpoint.pid) - {endpoint.pid}) < count:
        if time.monotonic() > give_up:
            raise RuntimeError(f"{len(found)} of {count} workers came up in {START_S:g} s")
        time.sleep(0.1)
    time.sleep(SETTLE_S)
    return found


def measured(endpoint: Endpoint, count: int, tool: str, keyed: bool, seconds: float, name: str) -> Measured:
    orders = Orders(
        url=endpoint.url,
        speech="modern",
        tool=tool,
        concurrency=32,
        seconds=seconds,
        warm_up=0.6,
        prefix=name,
        keyed=keyed,
    )
    before, after, seen = load(orders, lambda _: None)
    if seen["faults"]:
        raise RuntimeError(f"a call was not answered as it should be: {seen['fault']}")
    spent = after.cpu_s(after.family(endpoint.pid)) - before.cpu_s(before.family(endpoint.pid))
    return Measured(seen["calls"] / seen["seconds"], spent / (after.at - before.at) / count)


def compared(seconds: float, rounds: int) -> dict[str, dict[str, list[Measured]]]:
    """By tool and number of workers."""
    found: dict[str, dict[str, list[Measured]]] = {tool: {"1": [], "2": []} for tool, _ in CALLS}
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, ExitStack() as stack:
        upstream, _ = stack.enter_context(running_upstream())
        endpoints = {}
        for count, opened in (("1", holdfast.opened), ("2", holdfast.two_workers)):
            place = Path(folder) / count
            place.mkdir()
            endpoint = endpoints[count] = stack.enter_context(opened(place, upstream))
            for pid in serving(endpoint, int(count)):
                stack.enter_context(confined(pid))
        for number in range(rounds):
            for tool, keyed in CALLS:
                for count, endpoint in endpoints.items():
                    name = f"w{number}{count}"
                    found[tool][count].append(measured(endpoint, int(count), tool, keyed, seconds, name))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.workers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="how long a round counts")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args(arguments)
    print(machine())
    try:
        found = compared(asked.seconds, asked.rounds)
    except NotHere as error:
        sys.exit(str(error))
    for tool, by in found.items():
        one, two = (statistics.median(m.per_second for m in by[count]) for count in ("1", "2"))
        had = " and ".join(f"{statistics.median(m.share for m in by[count]):.2f}" for count in ("1", "2"))
        print(
            f"{tool:6} one worker {one:7,.0f}/s   two {two:7,.0f}/s   {two / one:.2f} x (wanted: 1.6 x)"
            f"   each had {had} of a core"
        )
    keep(
        "workers",
        share=SHARE,
        calls=_each(found, lambda m: m.per_second),
        shares=_each(found, lambda m: round(m.share, 3)),
    )


def _each(
    found: Mapping[str, Mapping[str, Sequence[Measured]]], told: Callable[[Measured], float]
) -> dict[str, dict[str, list[float]]]:
    return {tool: {count: [*map(told, all_)] for count, all_ in by.items()} for tool, by in found.items()}


if __name__ == "__main__":
    main()
