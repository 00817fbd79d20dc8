"""Where is the server while calls come in? `make flame` draws it: `bench/results/flame.svg`.

    python -m bench.flame --tool write       of writes
    python -m bench.flame --speech legacy    over another protocol

py-spy looks at the server from outside some hundred times a second, under load, and at those threads only
that hold the interpreter. It is not a dependency: it is installed, pinned, as the peers are.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.gateways import running_upstream
from bench.kept import RESULTS, ROOT
from bench.load import Orders
from bench.peers import holdfast
from bench.peers.installed import environment
from bench.processes import Snapshot
from bench.ring import load

RATE = 400
"""Looks a second: seldom enough that looking is not what is seen."""


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _parser().parse_args(arguments)
    program = environment("pyspy") / "bin" / "py-spy"
    RESULTS.mkdir(exist_ok=True)
    drawn = RESULTS / f"flame{asked.form}"
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, running_upstream() as (url, _):
        place = Path(folder)
        config = holdfast.configured(place, url)
        with holdfast.served(place, config, holdfast.SERVE) as endpoint:
            orders = Orders(
                url=endpoint.url,
                speech=asked.speech,
                tool=asked.tool,
                concurrency=asked.concurrency,
                seconds=asked.seconds + 1,
                warm_up=1.0,
                prefix="flame",
                keyed=asked.tool == "write",
            )
            spying: list[subprocess.Popen[bytes]] = []

            def look(_: Snapshot) -> None:
                if not spying:
                    spying.append(_spied(program, endpoint.pid, asked.seconds, drawn))

            _, _, seen = load(orders, look)
            if spying[0].wait() != 0:
                sys.exit("py-spy could not look: it must be allowed to trace processes of this user")
    print(f"{seen['calls'] / seen['seconds']:,.0f} calls/s while it was looked at")
    print(f"drawn in {drawn.relative_to(ROOT)}")


def _spied(program: Path, pid: int, seconds: float, drawn: Path) -> "subprocess.Popen[bytes]":
    form = "raw" if drawn.suffix == ".txt" else "flamegraph"
    command = (
        *(program, "record", "--pid", str(pid), "--duration", str(int(seconds)), "--rate", str(RATE)),
        *("--gil", "--nonblocking", "--format", form, "--output", drawn),
    )
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.flame", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tool", default="read", choices=("read", "cached", "write"))
    parser.add_argument("--speech", default="modern", choices=("modern", "legacy"))
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument(
        "--form", default=".svg", choices=(".svg", ".txt"), help="a picture, or stacks as text"
    )
    return parser


if __name__ == "__main__":
    main()
