"""Do the processes that share a database file agree on the time, and when is it taken anew?"""

import fcntl
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from holdfast.holding import taken
from holdfast.stores.sqlite.clock import SharedClock, agreed
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing import ManualClock
from tests.requirements import requirement

HOUR_S = 3600.0
NOON = 1_800_000_000.0


class Boot:
    """The machine's own time, which all processes share."""

    def __init__(self, id: str = "boot-1") -> None:
        self.id = id
        self.time = 500.0

    def now(self) -> float:
        return self.time


def opened(folder: Path, boot: Boot, says: float) -> closing[SharedClock]:
    """A process whose own clock says this has the store open."""
    return closing(agreed(folder / "clock", ManualClock(says), boot))


@requirement("IDM-8")
@pytest.mark.parametrize("skew_s", [-HOUR_S, 0.0, HOUR_S, 25 * HOUR_S])
def test_whoever_comes_later_takes_over_the_time_of_who_came_first(tmp_path: Path, skew_s: float) -> None:
    boot = Boot()
    with opened(tmp_path, boot, NOON) as first:
        boot.time += 60.0
        with opened(tmp_path, boot, NOON + 60.0 + skew_s) as second:
            assert first.now() == second.now() == NOON + 60.0


@requirement("IDM-8")
def test_a_wall_clock_that_jumps_moves_nothing(tmp_path: Path) -> None:
    boot, own = Boot(), ManualClock(NOON)
    with closing(agreed(tmp_path / "clock", own, boot)) as clock:
        own.jump(25 * HOUR_S)
        boot.time += 1.0
        assert clock.now() == NOON + 1.0


def test_the_time_is_taken_anew_when_nobody_has_the_store_open_any_more(tmp_path: Path) -> None:
    boot = Boot()
    with opened(tmp_path, boot, NOON - 10 * HOUR_S):
        pass
    with opened(tmp_path, boot, NOON) as first, opened(tmp_path, boot, NOON + HOUR_S) as second:
        assert (first.now(), second.now()) == (NOON, NOON)


@requirement("IDM-8")
def test_several_that_begin_at_once_agree_and_not_on_what_was_said_before(tmp_path: Path) -> None:
    boot = Boot()
    for _ in range(20):
        with opened(tmp_path, boot, NOON - 10 * HOUR_S):
            pass
        together, skews = threading.Barrier(4), (0.0, 1.0, 2.0, 3.0)

        def begin(skew_s: float, together: threading.Barrier = together) -> closing[SharedClock]:
            together.wait(60)
            return opened(tmp_path, boot, NOON + skew_s)

        with ThreadPoolExecutor(4) as pool, ExitStack() as stack:
            clocks = [stack.enter_context(one) for one in pool.map(begin, skews)]
            assert {clock.now() for clock in clocks} <= {NOON + skew_s for skew_s in skews}
            assert len({clock.now() for clock in clocks}) == 1


def test_what_was_to_be_said_by_one_that_was_killed_is_said_by_the_next(tmp_path: Path) -> None:
    """It had the file alone, and another one waits behind it."""
    boot = Boot()
    file = os.open(tmp_path / "clock", os.O_CREAT | os.O_RDWR)
    assert taken(file, fcntl.LOCK_EX)
    with ThreadPoolExecutor(1) as pool:
        behind = pool.submit(opened, tmp_path, boot, NOON)
        os.close(file)
        with behind.result(60) as clock, opened(tmp_path, boot, NOON + HOUR_S) as other:
            assert (clock.now(), other.now()) == (NOON, NOON)


def test_the_time_is_taken_anew_after_the_machine_was_started_again(tmp_path: Path) -> None:
    with opened(tmp_path, Boot("boot-1"), NOON):
        pass
    with opened(tmp_path, Boot("boot-2"), NOON + HOUR_S) as clock:
        assert clock.now() == NOON + HOUR_S


@pytest.mark.parametrize("said", ["", "boot-1", "boot-1 soon\n", "\xff\xff"])
def test_what_cannot_be_read_is_said_anew(tmp_path: Path, said: str) -> None:
    (tmp_path / "clock").write_text(said, encoding="latin-1")
    with opened(tmp_path, Boot(), NOON) as clock:
        assert clock.now() == NOON


@requirement("IDM-8")
async def test_two_stores_on_one_file_tell_the_same_time(tmp_path: Path) -> None:
    path, boot = tmp_path / "holdfast.db", Boot()
    early, late = ManualClock(NOON - HOUR_S), ManualClock(NOON + HOUR_S)
    async with (
        SqliteStore(path, early, boot=boot, one_clock=True) as first,
        SqliteStore(path, late, boot=boot, one_clock=True) as second,
    ):
        assert second.clock.now() == first.clock.now() == NOON - HOUR_S
    async with SqliteStore(path, late, boot=boot, one_clock=True) as again:
        assert again.clock.now() == NOON + HOUR_S
