"""Who waits while the log is folded back into the database? Nobody who writes."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from secrets import token_hex

import pytest

from holdfast.model.timeout import timeout
from holdfast.ports import Begun
from holdfast.stores.sqlite import writer
from holdfast.stores.sqlite.connection import connect
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.system import SystemClock
from tests.requirements import requirement
from tests.stores.calls import make_call

CLOCK = SystemClock()
PATIENCE_S = 30.0
ASIDE, BATCHES = "holdfast-fold", "holdfast-writer"


class Slow(sqlite3.Connection):
    """Folds beside the writer only when it may."""

    began: threading.Event
    may: threading.Event
    folded: list[str]
    """In which threads it was."""

    def execute(self, statement: str, *parameters: object) -> sqlite3.Cursor:
        if statement.startswith("PRAGMA wal_checkpoint"):
            name = threading.current_thread().name
            if name == ASIDE:
                self.began.set()
                assert self.may.wait(PATIENCE_S)
            self.folded.append(name)
        return super().execute(statement, *parameters)  # type: ignore[arg-type]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> type[Slow]:
    monkeypatch.setattr(writer, "CHECKPOINT_PAGES", 20)
    made = {"began": threading.Event(), "may": threading.Event(), "folded": []}
    return type("OfOneTest", (Slow,), made)


@pytest.fixture
async def store(tmp_path: Path, slow: type[Slow]) -> AsyncIterator[SqliteStore]:
    """Its log is being folded, and may not yet be."""
    async with SqliteStore(tmp_path / "a.db", CLOCK, connect=partial(connect, factory=slow)) as opened:
        while not slow.began.is_set():
            await claimed(opened)
        yield opened
        slow.may.set()


async def claimed(store: SqliteStore) -> None:
    async with timeout(PATIENCE_S):
        assert isinstance(await store.ledger.begin(make_call(CLOCK, token_hex(8))), Begun)


@requirement("PPL-6")
async def test_calls_are_claimed_while_the_log_is_folded_and_what_they_wrote_is_folded_after_it(
    store: SqliteStore, slow: type[Slow]
) -> None:
    for _ in range(20):
        await claimed(store)
    assert slow.folded == []  # once is enough, and it is still at it
    slow.may.set()
    assert store._writer._folding is not None
    await asyncio.to_thread(store._writer._folding.join, PATIENCE_S)
    while BATCHES not in slow.folded:
        await claimed(store)
    assert slow.folded[:3] == [ASIDE, ASIDE, BATCHES]


async def test_a_store_is_closed_only_when_nobody_folds_it_any_more(
    store: SqliteStore, slow: type[Slow]
) -> None:
    closing = asyncio.ensure_future(store._writer.close())
    done, _ = await asyncio.wait({closing}, timeout=0)
    assert not done
    slow.may.set()
    async with timeout(PATIENCE_S):
        await closing
    assert slow.folded[:2] == [ASIDE, ASIDE]
