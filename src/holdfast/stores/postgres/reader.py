"""Rows that are committed, for one tenant at a time: the connection itself sees nobody else's (AUT-6)."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import asyncpg

from holdfast.model.errors import StoreError
from holdfast.model.timeout import timeout
from holdfast.stores.postgres.connection import (
    AWAY_S,
    CONNECT_S,
    LOST,
    READ_PATIENCE_S,
    Connection,
    Patience,
    connect,
    describe,
    hang_up,
)
from holdfast.stores.postgres.dialect import said
from holdfast.stores.sql.engine import Row, Values

READERS = 4
SPARES = 2
"""Kept for the next slow question: to open a connection takes longer than most answers."""
SLOW_S = 120
SLOW = {"statement_timeout": f"{SLOW_S}s"}


@dataclass(eq=False)
class _Seat:
    connection: "Connection | None" = None
    tenant: str | None = None


class PostgresReader:
    def __init__(
        self,
        url: str,
        readers: int = READERS,
        patience_s: float = READ_PATIENCE_S,
        away: Callable[[], bool] = lambda: False,
    ) -> None:
        """`away`: the server is known not to be there."""
        self._away = away
        self._url = url
        self._seats = [_Seat() for _ in range(readers)]
        self._free = list(self._seats)
        self._spare: list[_Seat] = []
        self._turns = asyncio.Semaphore(readers)
        self._patience_s = patience_s
        self._closed = False

    async def all(self, tenant: str, statement: str, values: Values = ()) -> list[Row]:
        patience = Patience(min(self._patience_s, AWAY_S) if self._away() else self._patience_s)
        while True:
            try:
                return await self._try(patience, tenant, *said(statement, values))
            except LOST as error:
                await patience.wait(error)
            except asyncpg.PostgresError as error:
                raise StoreError(f"the store cannot be read: {describe(error)}") from error

    async def slow(self, tenant: str, statement: str, values: Values = ()) -> list[Row]:
        """On a connection that nobody else waits for, and with more time."""
        text, used = said(statement, values)
        try:
            if self._spare:
                try:
                    return await self._slowly(self._spare.pop(), tenant, text, used)
                except LOST:  # it may have been lost while it lay there
                    pass
            return await self._slowly(_Seat(), tenant, text, used)
        except (asyncpg.PostgresError, *LOST) as error:
            raise StoreError(f"the store cannot be read: {describe(error)}") from error

    async def _slowly(self, seat: _Seat, tenant: str, statement: str, values: Values) -> list[Row]:
        if self._closed:
            raise StoreError("the store is closed; open it again")
        try:
            connection = await self._seated(seat, tenant, Patience(CONNECT_S), SLOW)
            rows = await connection.fetch(statement, *values, timeout=SLOW_S + 10)
        except BaseException:
            _leave(seat)
            raise
        if len(self._spare) < SPARES and not self._closed:
            self._spare.append(seat)
        else:
            await hang_up(connection)
        return [tuple(row) for row in rows]

    async def version(self) -> int | None:
        return None  # processes show that they are alive by writing

    @property
    def idle(self) -> bool:
        """Nobody waits for rows."""
        return len(self._free) == len(self._seats)

    async def close(self) -> None:
        self._closed = True
        for seat in (*self._seats, *self._spare):
            if seat.connection is not None:
                await hang_up(seat.connection)

    async def _try(self, patience: Patience, tenant: str, statement: str, values: Values) -> list[Row]:
        if self._closed:
            raise StoreError("the store is closed; open it again")
        async with timeout(max(patience.left, 0.05)), self._turns:
            seat = self._take(tenant)
            try:
                connection = await self._seated(seat, tenant, patience)
                rows = await connection.fetch(statement, *values)
            except BaseException as error:
                if not isinstance(error, asyncpg.PostgresError) or isinstance(error, LOST):
                    _leave(seat)  # cancelled or lost in the middle: nobody can use it again
                raise
            finally:
                self._free.append(seat)
            return [tuple(row) for row in rows]

    def _take(self, tenant: str) -> _Seat:
        """One that works for this tenant already, if there is one: else it must be told to first."""
        for place in range(len(self._free) - 1, -1, -1):
            if self._free[place].tenant == tenant:
                return self._free.pop(place)
        return self._free.pop(0)

    async def _seated(
        self, seat: _Seat, tenant: str, patience: Patience, settings: Mapping[str, str] | None = None
    ) -> Connection:
        if seat.connection is None or seat.connection.is_closed():
            seat.tenant = None
            seat.connection = await connect(self._url, max(patience.left, 0.1), settings)
        if seat.tenant != tenant:
            seat.tenant = None
            await seat.connection.execute("SELECT set_config('holdfast.tenant', $1, false)", tenant)
            seat.tenant = tenant
        return seat.connection


def _leave(seat: _Seat) -> None:
    if seat.connection is not None:
        seat.connection.terminate()
    seat.connection = seat.tenant = None
