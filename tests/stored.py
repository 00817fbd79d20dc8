"""A store of each kind in a test's folder: closed and opened again there, it is the same one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.stores.keyring import root_secret
from holdfast.stores.memory.store import MemoryStore, OneBoot
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing import ManualClock
from tests.postgres import database

DURABLE = ("sqlite", "postgres")
ALL = ("memory", *DURABLE)

Store = MemoryStore | SqliteStore | PostgresStore


@asynccontextmanager
async def place(kind: str, folder: Path) -> AsyncIterator[str]:
    """Makes `folder` a place for stores of this kind; PostgreSQL's is a database of its own."""
    if kind != "postgres":
        yield kind
        return
    async with database() as url:
        (folder / "database.url").write_text(url)
        yield kind


def url_of(kind: str, folder: Path) -> str:
    """What a configuration says to mean the store in this place."""
    if kind == "postgres":
        return (folder / "database.url").read_text()
    return f"sqlite:///{folder / 'ledger.db'}"


@asynccontextmanager
async def stored(kind: str, folder: Path, clock: ManualClock, **options: Any) -> AsyncIterator[Store]:
    """The store in a place, with time in the test's hands."""
    if kind == "memory":
        yield MemoryStore(clock, **options)
    elif kind == "sqlite":
        async with SqliteStore(folder / "ledger.db", clock, boot=OneBoot(clock), **options) as store:
            yield store
    else:
        keys, boot = partial(root_secret, folder / "ledger.db.keys"), OneBoot(clock)
        async with PostgresStore(url_of(kind, folder), keys, clock, boot=boot, **options) as opened:
            yield opened
