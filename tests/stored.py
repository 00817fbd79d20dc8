"""A store of each kind in a test's folder: closed and opened again there, it is the same one."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg

from holdfast.records.chain import Record
from holdfast.stores.boot import Boot
from holdfast.stores.keyring import root_secret
from holdfast.stores.memory.store import MemoryStore, OneBoot
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing import ManualClock
from tests.postgres import database

DURABLE = ("sqlite", "postgres")
ALL = ("memory", *DURABLE)

Durable = SqliteStore | PostgresStore
Store = MemoryStore | Durable

_RECORDS = "SELECT * FROM {}record ORDER BY writer, seq"


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
async def stored(
    kind: str, folder: Path, clock: ManualClock, *, boot: Boot | None = None, **options: Any
) -> AsyncIterator[Store]:
    """The store in a place, with time in the test's hands."""
    if kind == "memory":
        yield MemoryStore(clock, boot=boot, **options)
        return
    async with durable(kind, folder, clock, boot=boot, **options) as store:
        yield store


@asynccontextmanager
async def durable(
    kind: str, folder: Path, clock: ManualClock, *, boot: Boot | None = None, **options: Any
) -> AsyncIterator[Durable]:
    """The same, where several may be open at once."""
    boot = boot or OneBoot(clock)
    if kind == "sqlite":
        opened: Durable = SqliteStore(folder / "ledger.db", clock, boot=boot, **options)
    else:
        keys = partial(root_secret, folder / "ledger.db.keys")
        opened = PostgresStore(url_of(kind, folder), keys, clock, boot=boot, **options)
    async with opened as store:
        clock.heed(lambda: not store.idle)
        yield store


def rows(kind: str, folder: Path, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """What the database itself says, past every store. Tables are called as they are in it: `{}operation`."""
    if kind == "sqlite":
        with closing(sqlite3.connect(folder / "ledger.db")) as connection, connection:
            return connection.execute(statement.format(""), values).fetchall()
    return asked(url_of(kind, folder), statement.format("holdfast."), *values)


def asked(url: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """What a PostgreSQL database answers to one who sees every tenant's rows; blocks."""

    async def ask() -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(url, server_settings={"holdfast.tenant": "*"})
        try:
            return [tuple(row) for row in await connection.fetch(statement, *values)]
        finally:
            await connection.close()

    with ThreadPoolExecutor(1) as aside:  # a loop may be running here
        return aside.submit(asyncio.run, ask()).result()


def records(kind: str, folder: Path) -> list[Record]:
    """Every record in the database, each writer's in order."""
    return [Record(*row) for row in rows(kind, folder, _RECORDS)]
