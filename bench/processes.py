"""What do processes cost? CPU and memory of a family of them, and what everybody else took meanwhile.

From `/proc` alone (Linux): CPU of the dead is in whoever waited for them, so nobody is forgotten.
"""

import os
import time
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
KERNEL_THREAD = 0x0020_0000
"""PF_KTHREAD: what the kernel does for us (disk, network) is nobody's disturbance."""


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    kernel: bool
    cpu_s: float
    """Its own and that of the children it has waited for."""
    rss: int


@dataclass(frozen=True)
class Snapshot:
    at: float
    processes: dict[int, Process]
    stolen_s: float
    """What other machines on the same host took from this one."""

    def family(self, root: int, without: Set[int] = frozenset()) -> frozenset[int]:
        """A process and all that come from it, except some and all that come from those."""
        children: dict[int, list[int]] = {}
        for process in self.processes.values():
            children.setdefault(process.parent, []).append(process.pid)
        found: set[int] = set()
        left = [root]
        while left:
            pid = left.pop()
            if pid in self.processes and pid not in without and pid not in found:
                found.add(pid)
                left += children.get(pid, [])
        return frozenset(found)

    def cpu_s(self, pids: Set[int]) -> float:
        return sum(self.processes[pid].cpu_s for pid in pids if pid in self.processes)

    def rss(self, pids: Set[int]) -> int:
        return sum(self.processes[pid].rss for pid in pids if pid in self.processes)


def snapshot() -> Snapshot:
    found = (_process(entry) for entry in PROC.iterdir() if entry.name.isdigit())
    return Snapshot(time.perf_counter(), {p.pid: p for p in found if p is not None}, _stolen_s())


def others(before: Snapshot, after: Snapshot, ours: Set[int]) -> float:
    """The share of one core that was not ours while it lasted; ours may have come and gone."""

    def theirs(seen: Snapshot) -> float:
        return sum(p.cpu_s for p in seen.processes.values() if not p.kernel and p.pid not in ours)

    spent = theirs(after) - theirs(before) + after.stolen_s - before.stolen_s
    return max(0.0, spent) / (after.at - before.at)


def command_line(pid: int) -> str:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _process(entry: Path) -> Process | None:
    try:
        text = (entry / "stat").read_text(errors="replace")
    except OSError:  # gone meanwhile
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return Process(
        pid=int(entry.name),
        parent=int(fields[1]),
        kernel=bool(int(fields[6]) & KERNEL_THREAD),
        cpu_s=sum(map(int, fields[11:15])) * TICK_S,
        rss=int(fields[21]) * PAGE,
    )


def _stolen_s() -> float:
    first = (PROC / "stat").read_text().partition("\n")[0].split()
    return int(first[8]) * TICK_S if len(first) > 8 else 0.0
