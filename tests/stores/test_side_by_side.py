"""Does a version that is running go on beside the next one, which has migrated the database? PPL-5."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import asyncpg
import pytest

from holdfast.model.errors import StoreError
from holdfast.model.vocabulary import State
from holdfast.ports import Begun
from holdfast.stores.postgres import migrate as postgres
from holdfast.stores.sqlite import migrate as sqlite
from holdfast.testing import ManualClock
from tests.postgres import empty_database
from tests.requirements import requirement
from tests.stored import DURABLE, durable, url_of
from tests.stores.calls import make_call, observed

NEXT = 9_000
ADDED = """
ALTER TABLE operation ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm';
CREATE TABLE later (tenant TEXT NOT NULL, what TEXT NOT NULL, PRIMARY KEY (tenant, what));
CREATE INDEX operation_mood ON operation (mood);
"""
"""What a migration within a major version may do."""


@asynccontextmanager
async def own_place(kind: str, folder: Path) -> AsyncIterator[None]:
    """A database that no later test gets: its shape is changed."""
    async with empty_database() if kind == "postgres" else nullcontext("") as url:
        (folder / "database.url").write_text(url)
        yield


async def upgrade(kind: str, folder: Path) -> None:
    """What the first process of the next version does."""
    if kind == "sqlite":
        sqlite.migrate(folder / "ledger.db", {**sqlite.shipped(), NEXT: ADDED})
        return
    connection = await asyncpg.connect(url_of(kind, folder))
    try:
        await postgres.migrate(connection, {**postgres.shipped(), NEXT: ADDED})
    finally:
        await connection.close()


@requirement("PPL-5")
@pytest.mark.parametrize("kind", DURABLE)
async def test_an_old_process_goes_on_beside_a_new_one_and_cannot_be_started_again(
    kind: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with own_place(kind, tmp_path):
        async with durable(kind, tmp_path, clock) as old:
            before = make_call(clock, "before")
            begun = await old.ledger.begin(before)
            assert isinstance(begun, Begun)
            before.operation = begun.operation
            await upgrade(kind, tmp_path)
            assert await old.ledger.finish(before, observed(before), State.COMMITTED)
            calls = [make_call(clock, f"after-{number}") for number in range(20)]
            for answer in await asyncio.gather(*map(old.ledger.begin, calls)):
                assert isinstance(answer, Begun)
            await old.controls.halt("all", "olga", "a look around")
            assert await old.audit.sequence() >= 22
        with pytest.raises(StoreError, match="newer than this holdfast knows"):
            async with durable(kind, tmp_path, clock):
                """It is refused before anything is read or written."""
