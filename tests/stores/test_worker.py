"""Is a dead worker known to be dead, and a stopped one to be alive?"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.stores.boot import SystemBoot
from holdfast.stores.worker import ASK_AGAIN_S, LockedWorkers
from tests.requirements import requirement

WORKER = """
import sys
from pathlib import Path
from holdfast.stores.worker import LockedWorkers
workers = LockedWorkers(Path(sys.argv[1]))
workers.open()
print(workers.id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()


@requirement("IDM-4", "IDM-5")
def test_a_stopped_worker_is_alive_and_a_killed_one_is_dead(
    tmp_path: Path, child: tuple[subprocess.Popen[str], str]
) -> None:
    process, worker = child
    assert LockedWorkers(tmp_path).alive(worker)
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    assert LockedWorkers(tmp_path).alive(worker)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not LockedWorkers(tmp_path).alive(worker)
    assert list(tmp_path.iterdir()) == [], "what it left behind is removed"


@requirement("IDM-4")
def test_what_a_worker_left_that_died_before_it_had_a_name_is_removed_when_it_is_old(tmp_path: Path) -> None:
    left, coming = tmp_path / "w_left.new", tmp_path / "w_coming.new"
    for one in (left, coming):
        one.touch()
    os.utime(left, (0.0, 0.0))
    workers = LockedWorkers(tmp_path)
    workers.open()
    assert {path.name for path in tmp_path.iterdir()} == {"w_coming.new", f"{workers.id}.lock"}
    workers.close()


@requirement("IDM-4")
def test_a_worker_that_closes_is_gone_and_one_that_never_was_is_dead(tmp_path: Path) -> None:
    ours, other = LockedWorkers(tmp_path), LockedWorkers(tmp_path)
    ours.open()
    other.open()
    assert ours.alive(ours.id)
    assert other.alive(ours.id)
    ours.close()
    assert not LockedWorkers(tmp_path).alive(ours.id)
    assert not other.alive("w_never")
    other.close()


@requirement("IDM-4")
def test_death_is_believed_for_good_and_life_for_half_a_second(
    tmp_path: Path, child: tuple[subprocess.Popen[str], str]
) -> None:
    process, worker = child
    now = [100.0]
    workers = LockedWorkers(tmp_path, lambda: now[0])
    assert workers.alive(worker)
    process.kill()
    process.wait()
    assert workers.alive(worker), "asked a moment ago"
    now[0] += ASK_AGAIN_S
    assert not workers.alive(worker)
    now[0] -= ASK_AGAIN_S
    assert not workers.alive(worker)


@requirement("IDM-5")
def test_a_starting_worker_clears_away_the_dead_and_spares_the_living(
    tmp_path: Path, child: tuple[subprocess.Popen[str], str]
) -> None:
    process, worker = child
    starting = LockedWorkers(tmp_path)
    starting.open()
    assert {path.stem for path in tmp_path.iterdir()} == {worker, starting.id}
    process.kill()
    process.wait()
    third = LockedWorkers(tmp_path)
    third.open()
    assert {path.stem for path in tmp_path.iterdir()} == {starting.id, third.id}
    starting.close()
    third.close()


@requirement("IDM-8")
def test_the_boot_clock_is_shared_by_processes_and_not_the_wall_clock() -> None:
    boot = SystemBoot()
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "from holdfast.stores.boot import SystemBoot; b = SystemBoot(); print(b.id, b.now())",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert told[0] == boot.id
    assert float(told[1]) <= boot.now()
    assert boot.now() < time.time()
