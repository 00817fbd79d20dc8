"""Where does a commit that waits for the disk run? Never on the loop where it keeps others waiting."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.ports import Begun
from holdfast.stores.sqlite import writer
from holdfast.stores.sqlite.connection import connect
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.stores.sqlite.writer import ALONE_BEFORE
from holdfast.system import SystemClock
from tests.requirements import requirement
from tests.stores.calls import make_call

CLOCK = SystemClock()


class Watched(sqlite3.Connection):
    """Says in which thread it commits."""

    threads: list[str]

    def execute(self, statement: str, *parameters: object) -> sqlite3.Cursor:
        if statement == "COMMIT":
            self.threads.append(threading.current_thread().name)
        return super().execute(statement, *parameters)  # type: ignore[arg-type]


@pytest.fixture
def threads() -> list[str]:
    return []


@pytest.fixture
async def store(tmp_path: Path, threads: list[str]) -> AsyncIterator[SqliteStore]:
    watched = type("OfOneTest", (Watched,), {"threads": threads})
    async with SqliteStore(tmp_path / "a.db", CLOCK, connect=partial(connect, factory=watched)) as opened:
        yield opened


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "QUICK_S", 0.0)


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it takes here."""
    monkeypatch.setattr(writer, "QUICK_S", 60.0)


async def claimed(store: SqliteStore, key: str) -> None:
    assert isinstance(await store.ledger.begin(make_call(CLOCK, key)), Begun)


HERE = threading.main_thread().name
ASIDE = "holdfast-writer"


@requirement("AUD-5")
@pytest.mark.usefixtures("quick_disk")
async def test_a_job_that_is_alone_is_committed_where_it_is(store: SqliteStore, threads: list[str]) -> None:
    for number in range(ALONE_BEFORE + 3):
        await claimed(store, f"k{number}")
    assert threads == [*[ASIDE] * ALONE_BEFORE, HERE, HERE, HERE]


@pytest.mark.usefixtures("quick_disk")
async def test_jobs_that_come_together_are_committed_aside(store: SqliteStore, threads: list[str]) -> None:
    for number in range(2 * ALONE_BEFORE):
        await claimed(store, f"k{number}")
    threads.clear()
    for number in range(10):
        await asyncio.gather(claimed(store, f"a{number}"), claimed(store, f"b{number}"))
    assert set(threads) == {ASIDE}


@pytest.mark.usefixtures("quick_disk")
async def test_one_job_after_several_is_not_taken_to_be_alone(store: SqliteStore, threads: list[str]) -> None:
    for number in range(2 * ALONE_BEFORE):
        await claimed(store, f"k{number}")
    await asyncio.gather(claimed(store, "a"), claimed(store, "b"))
    threads.clear()
    for number in range(ALONE_BEFORE):
        await claimed(store, f"l{number}")
    assert set(threads) == {ASIDE}


@pytest.mark.usefixtures("slow_disk")
async def test_a_slow_disk_does_not_keep_the_loop_waiting(store: SqliteStore, threads: list[str]) -> None:
    for number in range(5 * ALONE_BEFORE):
        await claimed(store, f"k{number}")
    assert set(threads) == {ASIDE}
