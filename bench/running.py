"""How is a program started that answers over HTTP, and ended with everything it started?"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parent.parent
STARTING_S = 90.0
ENDING_S = 15.0


class Unstarted(Exception):
    """It does not run here; says why."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str | Path],
    port: int,
    log: Path,
    variables: Mapping[str, str] | None = None,
    look_s: float = 0.1,
) -> Iterator[int]:
    """The program listens on the port while the block runs; the value is its process id."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "PYTHON"))}
    with log.open("w") as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env={**kept, **(variables or {})},
            start_new_session=True,
        )
    try:
        _listening(process, port, log, look_s)
        yield process.pid
    finally:
        _end(process)


def _listening(process: "subprocess.Popen[bytes]", port: int, log: Path, look_s: float) -> None:
    until = time.monotonic() + STARTING_S
    while time.monotonic() < until:
        if process.poll() is not None:
            raise Unstarted(f"it ended with status {process.returncode}: {tail(log)}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(look_s)
        else:
            return
    raise Unstarted(f"it did not listen within {STARTING_S:.0f} s: {tail(log)}")


def tail(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return " / ".join(lines[-3:])[-400:] or "it said nothing"


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The program was started as a group of its own; nothing of it stays."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        pass
    except ProcessLookupError:
        process.wait()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
