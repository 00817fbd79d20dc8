"""How does a test start a program that says where it listens?"""

import os
import queue
import re
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
STARTING_S = 60
"""A machine that needs longer than this to start a program is not fit for this test."""
ENDING_S = 15


@contextmanager
def started(command: Sequence[str], says: str, log: Path) -> Iterator[str]:
    """The program runs while the block does; the value is what the pattern's group found in its output."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env=_environment(),
        )
    found: queue.Queue[str | None] = queue.Queue()
    reader = threading.Thread(target=_read, args=(process, re.compile(says), found))
    reader.start()
    try:
        yield _first(found, log)
    finally:
        _end(process)
        reader.join()


def _environment() -> dict[str, str]:
    """Nothing of what somebody has set for a Holdfast of their own; a traceback where one breaks."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return {**kept, "HOLDFAST_DEBUG": "1", "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)}


def _read(process: "subprocess.Popen[str]", says: re.Pattern[str], found: queue.Queue[str | None]) -> None:
    """To the end, so that the program never waits for a reader."""
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            if match := says.search(line):
                found.put(match[1])
    found.put(None)


def _first(found: queue.Queue[str | None], log: Path) -> str:
    try:
        said = found.get(timeout=STARTING_S)
    except queue.Empty:
        said = None
    if said is None:
        raise AssertionError(f"the program has not said where it listens:\n{log.read_text()[-4000:]}")
    return said


def _end(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.terminate()
    try:
        process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
