"""One round: one way of calling, so many at once, for seconds. What came of it, and who disturbed it?"""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from bench.contestant import Contestant, Endpoint
from bench.load import Orders
from bench.pace import Pace
from bench.processes import Snapshot, command_line, others, snapshot
from bench.running import ROOT

DISTURBED = 0.10
"""Of one core, taken by others: from here on a round says nothing."""
SLOW = 1.15
"""Times longer than at its best the machine takes for the same: from here on neither."""
TRIES = 2
"""A disturbed round is fought again: whoever disturbs mostly goes."""


@dataclass(frozen=True, kw_only=True)
class Round:
    contestant: str
    concurrency: int
    calls: int
    faults: int
    fault: str
    per_second: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    cpu_us: float | None
    """Of the gateway, per call."""
    around_us: float | None = None
    """Of the load and the upstream, which share the machine with it, per call."""
    rss_mb: float
    others: float
    """The share of a core that somebody else took meanwhile."""
    slower: float = 1.0
    """How many times longer the machine took for the same work before or after it than at its best."""
    reached: bool
    """Whether every answered call came to the upstream; not known for those who start their own or keep
    answers."""

    @classmethod
    def of(cls, kept: dict[str, Any]) -> "Round":
        """As it was kept; `quiet` is worked out again."""
        return cls(**{name: value for name, value in kept.items() if name != "quiet"})

    @property
    def quiet(self) -> bool:
        return self.others <= DISTURBED and self.slower <= SLOW

    @property
    def sound(self) -> bool:
        return self.calls > 0 and self.faults == 0 and self.reached


class Unmeasured(Exception):
    """The load could not even begin; says why."""


def nothing(who: Contestant, concurrency: int, why: str) -> Round:
    """The round of somebody who did not come to it."""
    return Round(
        contestant=who.name,
        concurrency=concurrency,
        calls=0,
        faults=1,
        fault=why,
        per_second=0.0,
        p50_ms=None,
        p95_ms=None,
        p99_ms=None,
        cpu_us=None,
        rss_mb=0.0,
        others=0.0,
        reached=True,
    )


class Ring:
    """Where rounds are fought: one upstream, and gateways of which all but one rest."""

    def __init__(
        self, upstream: str, gateways: frozenset[int], seconds: float, warm_up: float, tries: int = TRIES
    ) -> None:
        self._upstream, self._gateways, self._tries = upstream, gateways, tries
        self._seconds, self._warm_up = seconds, warm_up
        self._number = 0
        self.pace = Pace()

    def measure(self, who: Contestant, endpoint: Endpoint, concurrency: int) -> Round:
        """The last of a few tries, or the first that nobody disturbed."""
        for _ in range(self._tries):
            try:
                with alone(endpoint.pid, self._gateways):
                    before = self.pace.slower()
                    measured = self._measured(who, endpoint, concurrency)
                    measured = replace(measured, slower=round(max(before, self.pace.slower()), 3))
            except Unmeasured as error:
                return nothing(who, concurrency, str(error))
            if measured.quiet:
                break
        return measured

    def _measured(self, who: Contestant, endpoint: Endpoint, concurrency: int) -> Round:
        self._number += 1
        orders = Orders(
            url=endpoint.url,
            speech=who.speech,
            tool=f"{endpoint.prefix}{who.tool}",
            concurrency=concurrency,
            seconds=self._seconds,
            warm_up=self._warm_up,
            prefix=f"r{self._number}",
            headers=endpoint.headers,
            keyed=who.keyed,
            shared=who.shared,
            same=who.cached,
        )
        came = self._calls()
        servers: set[int] = set()
        before, after, seen = load(orders, lambda taken: servers.update(_own_upstreams(endpoint, taken)))
        resting = self._gateways - {endpoint.pid}
        roots = [os.getpid(), *([endpoint.database] if endpoint.database is not None else [])]
        ours = frozenset(
            pid for taken in (before, after) for root in roots for pid in taken.family(root, resting)
        )
        gateway = after.family(endpoint.pid, servers)
        spent = after.cpu_s(gateway) - before.cpu_s(before.family(endpoint.pid, servers))
        all_spent = after.cpu_s(ours) - before.cpu_s(ours)
        calls = int(seen["calls"])
        return Round(
            contestant=who.name,
            concurrency=concurrency,
            calls=calls,
            faults=seen["faults"],
            fault=seen.get("fault", ""),
            per_second=calls / seen["seconds"],
            p50_ms=seen["p50_ms"],
            p95_ms=seen["p95_ms"],
            p99_ms=seen["p99_ms"],
            cpu_us=spent / calls * 1e6 if calls else None,
            around_us=(all_spent - spent) / calls * 1e6 if calls else None,
            rss_mb=after.rss(gateway) / 2**20,
            others=others(before, after, ours),
            reached=bool(endpoint.own_upstream) or who.cached or self._calls() - came >= seen["answered"],
        )

    def _calls(self) -> int:
        with urllib.request.urlopen(self._upstream.removesuffix("/mcp") + "/calls", timeout=30) as said:
            return int(said.read())


@contextmanager
def alone(pid: int, gateways: Iterable[int]) -> Iterator[None]:
    """The others stand still: what they still have to do for their own round would disturb this one."""
    seen = snapshot()
    resting = [one for other in gateways if other != pid for one in seen.family(other)]
    try:
        _send(signal.SIGSTOP, resting)
        yield
    finally:
        _send(signal.SIGCONT, resting)


def _send(what: signal.Signals, pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, what)


def load(orders: Orders, look: Callable[[Snapshot], None]) -> tuple[Snapshot, Snapshot, dict[str, Any]]:
    """What was there when counting began, and when it ended; `look` sees both while everybody is alive."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.load"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(asdict(orders)))
        process.stdin.close()
        seen = []
        for expected in ("begin", "end"):
            if process.stdout.readline().strip() != expected:
                why = process.stderr.read().strip().rpartition("\n")[2]
                raise Unmeasured(f"the load did not {expected}: {why[-300:]}")
            seen.append(snapshot())
            look(seen[-1])
        said = process.stdout.readline()
    return seen[0], seen[1], json.loads(said)


def _own_upstreams(endpoint: Endpoint, seen: Snapshot) -> frozenset[int]:
    if not endpoint.own_upstream:
        return frozenset()
    return frozenset(
        pid
        for pid in seen.family(endpoint.pid)
        if pid != endpoint.pid and endpoint.own_upstream in command_line(pid)
    )
