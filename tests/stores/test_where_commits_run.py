"""Where does a commit that waits for the disk run? Never on the loop where it keeps others waiting."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from secrets import token_hex

import pytest

from holdfast.ports import Begun
from holdfast.stores.sqlite import writer
from holdfast.stores.sqlite.connection import connect
from holdfast.stores.sqlite.store import SqliteStore
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


@pytest.fixture(autouse=True)
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its disk is quick or slow, and its loop idle or busy, whatever they are here."""
    disk, loop = request.param
    monkeypatch.setattr(writer, "QUICK_S", {"quick": 60.0, "slow": 0.0}[disk])
    monkeypatch.setattr(writer, "IDLE_S", {"idle": 60.0, "busy": 0.0}[loop])


def on(disk: str, loop: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("machine", [(disk, loop)], indirect=True, ids=[f"{disk} and {loop}"])


HERE = threading.main_thread().name
ASIDE = "holdfast-writer"


async def claimed(store: SqliteStore, count: int) -> None:
    """So many new operations at once."""
    calls = [make_call(CLOCK, token_hex(8)) for _ in range(count)]
    begun = await asyncio.gather(*(store.ledger.begin(call) for call in calls))
    assert {type(one) for one in begun} == {Begun}


@requirement("AUD-5")
@on("quick", "idle")
async def test_a_commit_that_keeps_nobody_waiting_is_made_where_it_is(
    store: SqliteStore, threads: list[str]
) -> None:
    for _ in range(3):
        await claimed(store, 1)
    assert threads == [ASIDE, ASIDE, HERE, HERE]  # opening begins a log, the first tells of the disk


@on("quick", "busy")
async def test_a_commit_of_few_keeps_nobody_else_waiting(store: SqliteStore, threads: list[str]) -> None:
    for count in range(1, writer.MANY):
        await claimed(store, count)
    assert set(threads) == {ASIDE}


@on("quick", "busy")
async def test_a_commit_of_many_is_made_where_it_is(store: SqliteStore, threads: list[str]) -> None:
    for count in (1, writer.MANY):
        await claimed(store, count)
    assert threads == [ASIDE, ASIDE, HERE]


@on("slow", "idle")
async def test_a_slow_disk_keeps_only_those_waiting_who_write(store: SqliteStore, threads: list[str]) -> None:
    for count in (1, 1, 2, writer.MANY, 1):
        await claimed(store, count)
    assert set(threads) == {ASIDE}
