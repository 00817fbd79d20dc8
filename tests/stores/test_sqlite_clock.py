"""Do the processes that share a database file agree on the time, and when is it taken anew?"""

from pathlib import Path

import pytest

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


def opened(folder: Path, boot: Boot, says: float, *, alone: bool = False) -> SharedClock:
    """A process whose own clock says this opens the store."""
    return agreed(folder / "clock", ManualClock(says), boot, lambda: alone)


@requirement("IDM-8")
@pytest.mark.parametrize("skew_s", [-HOUR_S, 0.0, HOUR_S, 25 * HOUR_S])
def test_whoever_comes_later_takes_over_the_time_of_who_came_first(tmp_path: Path, skew_s: float) -> None:
    boot = Boot()
    first = opened(tmp_path, boot, NOON, alone=True)
    boot.time += 60.0
    second = opened(tmp_path, boot, NOON + 60.0 + skew_s)
    assert first.now() == second.now() == NOON + 60.0


@requirement("IDM-8")
def test_a_wall_clock_that_jumps_moves_nothing(tmp_path: Path) -> None:
    boot, own = Boot(), ManualClock(NOON)
    clock = agreed(tmp_path / "clock", own, boot, lambda: True)
    own.jump(25 * HOUR_S)
    boot.time += 1.0
    assert clock.now() == NOON + 1.0


def test_the_time_is_taken_anew_by_who_is_alone(tmp_path: Path) -> None:
    boot = Boot()
    opened(tmp_path, boot, NOON - 10 * HOUR_S, alone=True)
    assert opened(tmp_path, boot, NOON, alone=True).now() == NOON
    assert opened(tmp_path, boot, NOON + HOUR_S).now() == NOON


def test_the_time_is_taken_anew_after_the_machine_was_started_again(tmp_path: Path) -> None:
    opened(tmp_path, Boot("boot-1"), NOON, alone=True)
    assert opened(tmp_path, Boot("boot-2"), NOON + HOUR_S).now() == NOON + HOUR_S


@pytest.mark.parametrize("said", ["", "boot-1", "boot-1 soon\n", "\xff\xff"])
def test_what_cannot_be_read_is_said_anew(tmp_path: Path, said: str) -> None:
    (tmp_path / "clock").write_text(said, encoding="latin-1")
    assert opened(tmp_path, Boot(), NOON).now() == NOON


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
