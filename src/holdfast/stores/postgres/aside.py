"""How does code that is not async read many rows, and may still be called by code that is?

An event loop runs in a thread of its own; the next chunk of rows is on its way while one is looked at.
"""

import asyncio
import sys
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import asyncpg
from asyncpg.cursor import Cursor

from holdfast.stores.postgres.connection import Connection

T = TypeVar("T")
_Cursor: TypeAlias = "Cursor[asyncpg.Record]"

CHUNK = 2_000
"""Rows fetched at once: some megabytes."""
_SWITCH_S = 0.0001
"""Both threads are busy with Python. At the usual 5 ms the socket would be full most of the time."""
_CLOSE_S = 5.0


class Loop:
    def __init__(self, name: str = "holdfast-rows") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.start(work).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def aside() -> Iterator[Loop]:
    loop, usual = Loop(), sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield loop
    finally:
        sys.setswitchinterval(usual)
        loop.close()


class Rows:
    """The rows behind a connection that is in a transaction. Several statements may be read at once."""

    def __init__(self, loop: Loop, connection: Connection) -> None:
        self._loop = loop
        self._connection = connection
        self._turn = asyncio.Lock()

    def one(self, statement: str, *values: object) -> Any:
        """The first value of the first row."""
        return next(self.all(statement, *values))[0]

    def all(self, statement: str, *values: object) -> Iterator[asyncpg.Record]:
        for rows in self.pages(statement, *values):
            yield from rows

    def pages(self, statement: str, *values: object) -> Iterator[list[asyncpg.Record]]:
        cursor = self._loop.run(self._open(statement, values))
        ahead = self._loop.start(self._fetch(cursor))
        while rows := ahead.result():
            ahead = self._loop.start(self._fetch(cursor))
            yield rows

    def close(self) -> None:
        self._loop.run(self._close())

    async def _open(self, statement: str, values: tuple[object, ...]) -> _Cursor:
        async with self._turn:
            return await self._connection.cursor(statement, *values)

    async def _fetch(self, cursor: _Cursor) -> list[asyncpg.Record]:
        async with self._turn:
            return await cursor.fetch(CHUNK)

    async def _close(self) -> None:
        async with self._turn:  # a chunk that nobody wants any more may be on its way
            await self._connection.close(timeout=_CLOSE_S)
