"""Does nobody wait for ever for a file, and does nobody have one who only was copied with it?"""

import fcntl
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.holding import held, keep, let_go, taken
from holdfast.stores.worker import LockedWorkers
from tests.requirements import requirement

PARENT = """
import os, sys
from pathlib import Path
from holdfast.stores.worker import LockedWorkers
workers = LockedWorkers(Path(sys.argv[1]))
workers.open()
there, tell = os.pipe()
if os.fork():
    os.read(there, 1)
    print(workers.id, flush=True)
    os.kill(os.getpid(), 9)
os.write(tell, b".")
sys.stdin.read()
"""


@contextmanager
def copied() -> Iterator[None]:
    """A process that was forked here and does nothing, as those of a pool that a tool has made."""
    awaited, going = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads: the child waits for none
        child = os.fork()
    if not child:
        os.close(going)
        os.read(awaited, 1)
        os._exit(0)
    try:
        yield
    finally:
        os.close(going)
        os.close(awaited)
        os.waitpid(child, 0)


def free(path: Path) -> bool:
    file = os.open(path, os.O_CREAT | os.O_RDWR)
    try:
        return taken(file, fcntl.LOCK_EX)
    finally:
        os.close(file)


@requirement("PPL-6")
def test_one_has_a_file_and_who_waits_too_long_is_told(tmp_path: Path) -> None:
    with held(tmp_path / "one"):
        assert not free(tmp_path / "one")
        with pytest.raises(OSError, match="does not let go"), held(tmp_path / "one", 0.0):
            pass
    assert free(tmp_path / "one")


@requirement("PPL-6")
def test_a_file_is_let_go_though_a_process_was_forked_meanwhile(tmp_path: Path) -> None:
    with held(tmp_path / "one"):
        child = copied()
        child.__enter__()
    assert free(tmp_path / "one")
    child.__exit__(None, None, None)


@requirement("PPL-6")
def test_what_is_kept_for_life_is_not_kept_by_a_copy(tmp_path: Path) -> None:
    file = os.open(tmp_path / "one", os.O_CREAT | os.O_RDWR)
    assert taken(file, fcntl.LOCK_EX)
    keep(file)
    with copied():
        assert not free(tmp_path / "one")
        let_go(file)
        assert free(tmp_path / "one")


@requirement("IDM-4", "IDM-5")
def test_a_worker_that_died_is_dead_though_a_process_that_it_forked_lives(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        worker = parent.stdout.readline().strip()
        parent.wait()
        assert worker
        assert not LockedWorkers(tmp_path).alive(worker)
