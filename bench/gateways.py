"""How fast is Holdfast beside other gateways, in one run, on one upstream?

    python -m bench.gateways                        not quite six minutes
    python -m bench.gateways --seconds 1 --rounds 1 a try
    python -m bench.gateways --extras               other eras and settings too
    python -m bench.gateways --only holdfast        those whose name has the word in it, and direct

Every gateway runs in its own environment and idles until its turn; rounds go round in turn, so that a slow
minute hurts all alike. `CPU us` is the gateway's own per call and `RSS` its memory, with its children; in the
row `direct` they are the upstream's. A round in which other processes took more than a tenth of a core is
shown, but nothing is concluded from it: a `?`, and no ratio. `bench/results/gateways.json` keeps the results.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.contestant import Contestant, Endpoint, Open
from bench.peers import airlock, contextforge, fastmcp, holdfast, supergateway
from bench.peers.installed import HERE, Uninstalled
from bench.report import doubts, fsync_ms, machine, table
from bench.ring import Ring, Round
from bench.running import ROOT, Unstarted

RESULTS = ROOT / "bench" / "results" / "gateways.json"


CONTESTANTS = (
    Contestant(name="direct", open=None, era="modern"),
    Contestant(name="holdfast read", open=holdfast.opened, era="modern"),
    Contestant(name="holdfast durable write", open=holdfast.opened, era="modern", tool="write", keyed=True),
    Contestant(name="fastmcp proxy", open=fastmcp.connected, era="legacy", peer=True),
    Contestant(name="contextforge", open=contextforge.opened, era="legacy", peer=True),
    Contestant(name="mcp-airlock", open=airlock.opened, era="modern", peer=True),
    Contestant(name="supergateway", open=supergateway.opened, era="legacy", peer=True, shared=True),
)
EXTRAS = (
    Contestant(name="direct, legacy", open=None, era="legacy"),
    Contestant(name="holdfast read, legacy", open=holdfast.opened, era="legacy"),
    Contestant(name="holdfast write, legacy", open=holdfast.opened, era="legacy", tool="write", keyed=True),
    Contestant(name="mcp-airlock write", open=airlock.opened, era="modern", tool="write", peer=True),
    Contestant(name="fastmcp, modern", open=fastmcp.connected, era="modern", peer=True),
    Contestant(name="fastmcp by default", open=fastmcp.fresh, era="legacy", peer=True),
    Contestant(name="supergateway, own session", open=supergateway.opened, era="legacy", peer=True),
)


def versions() -> dict[str, str]:
    found = {name: version(name) for name in ("holdfast", "mcp", "uvicorn")}
    for pins in sorted(HERE.glob("*.in")):
        found.update(re.findall(r"^([\w-]+)==(\S+)$", pins.read_text(), re.MULTILINE))
    found.update(json.loads((HERE / "package.json").read_text())["dependencies"])
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _parser().parse_args(arguments)
    chosen = _chosen(asked.only, asked.extras)
    print(machine())
    print(", ".join(f"{name} {number}" for name, number in versions().items()))
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, ExitStack() as stack:
        place = Path(folder)
        disk = fsync_ms(place)
        print(f"fsync {disk:.2f} ms (median)")
        upstream, pid = stack.enter_context(_upstream())
        opened, missing = _open(stack, place, upstream, {who.open for who in chosen if who.open})
        untold = {who.name: missing[who.open] for who in chosen if who.open in missing}
        for name, why in untold.items():
            print(f"! {name} is not measured: {why}")
        gateways = frozenset(endpoint.pid for endpoint in opened.values())
        ring = Ring(upstream, gateways, asked.seconds, asked.warm_up)
        opened[None] = Endpoint(url=upstream, pid=pid)
        fit = [(who, opened[who.open]) for who in chosen if who.open in opened]
        rounds: list[Round] = []
        for number in range(asked.rounds):
            for concurrency in asked.concurrency:
                rounds += [ring.measure(who, endpoint, concurrency) for who, endpoint in fit]
            print(f"round {number + 1} of {asked.rounds} done", file=sys.stderr)
    for concurrency in asked.concurrency:
        print(table(chosen, rounds, concurrency, asked.noisy))
    for doubt in doubts(rounds):
        print(f"! {doubt}")
    _keep(rounds, disk, sorted(untold))


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
def _upstream() -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", "bench.upstream", "http"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()


def _keep(rounds: Sequence[Round], disk: float, missing: Sequence[str]) -> None:
    """The figures only: no path, no host, nothing of who ran it."""
    kept = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "fsync_ms": round(disk, 3),
        "not_measured": missing,
        "rounds": [{**asdict(r), "fault": "", "quiet": r.quiet} for r in rounds],
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"\nkept in {RESULTS.relative_to(ROOT)}")


def _chosen(only: str | None, extras: bool) -> list[Contestant]:
    every = [*CONTESTANTS, *(EXTRAS if extras else ())]
    if only is None:
        return every
    words = only.split(",")
    return [who for who in every if who.name == "direct" or any(word in who.name for word in words)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.gateways", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="how long a round counts")
    parser.add_argument("--warm-up", type=float, default=0.6, help="how long it runs before that")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=_numbers, default=[1, 8, 32], help="such as 1,32")
    parser.add_argument("--only", help="words in the names of what is wanted, such as holdfast,airlock")
    parser.add_argument("--extras", action="store_true", help="other eras and settings too")
    parser.add_argument("--noisy", action="store_true", help="give ratios of disturbed rounds too")
    return parser


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
