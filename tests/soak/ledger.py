"""What does the database say, read past every gateway?"""

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import asyncpg

from holdfast.stores.boot import SystemBoot
from holdfast.stores.postgres.connection import LOST, Connection
from holdfast.stores.postgres.dialect import said
from tests.postgres import Postgres, database
from tests.soak.server import GREETING

STORES = ("sqlite", "postgres")


class Row(NamedTuple):
    tool: str
    key: str
    state: str


ROWS = "SELECT tool, key, state FROM operation WHERE tool <> ?"
IN_FLIGHT = """
SELECT count(*) FROM operation WHERE owner = ? AND (state IN ('claimed', 'dispatched') OR note <> '')
"""
"""What a worker had claimed and not finished; somebody else may have settled some of it meanwhile."""
OWNER = "SELECT owner FROM operation WHERE key = ?"
ACTING = "SELECT count(*) FROM operation WHERE owner = ? AND state IN ('claimed', 'dispatched')"
ALL_ACTING = "SELECT count(*) FROM operation WHERE state IN ('claimed', 'dispatched')"
STUCK = "SELECT count(*) FROM operation WHERE state IN ('claimed', 'dispatched') AND lease_boot + ? < ?"
UNSETTLED = """
SELECT count(*) FROM operation WHERE state IN ('claimed', 'dispatched') OR (state = 'unknown' AND tool = ?)
"""
INTENTS = (
    "SELECT DISTINCT o.key FROM operation o JOIN record r USING (tenant, call_id) WHERE r.kind = 'intent'"
)
WHY_UNKNOWN = "SELECT note, count(*) FROM operation WHERE state = 'unknown' AND tool <> ? GROUP BY note"
FAULTS = "SELECT writer, fault FROM chain_head WHERE fault <> ''"
BUDGETS = "SELECT calls_used, calls_reserved FROM budget"


STALLED_S = 1.0


class Ledger(ABC):
    """A store that gateways work on, seen from beside them."""

    url: str
    """What a configuration says to mean it."""
    one_writer: bool
    """Whether a transaction that does not go on keeps everybody else from writing."""

    async def rows(self) -> list[Row]:
        return [Row(*row) for row in await self._read(ROWS, GREETING)]

    async def states(self, tool: str) -> Counter[str]:
        return Counter(row.state for row in await self.rows() if row.tool == tool)

    async def owner_of(self, key: str) -> str | None:
        """The worker that ran the only operation with this key."""
        found = await self._read(OWNER, key)
        return found[0][0] if found else None

    async def acting(self, worker: str) -> bool:
        return await self._count(ACTING, worker) > 0

    async def in_flight(self, worker: str) -> int:
        return await self._count(IN_FLIGHT, worker)

    async def all_in_flight(self) -> int:
        return await self._count(ALL_ACTING)

    async def stuck(self, beyond_lease_s: float) -> int:
        """Operations that still run this long after their lease."""
        return await self._count(STUCK, beyond_lease_s, await self._now())

    async def unsettled(self, probed: str) -> int:
        """What time alone must still bring to an end: running, or unknown although a probe could tell."""
        return await self._count(UNSETTLED, probed)

    async def keys_with_intent(self) -> set[str]:
        return {key for (key,) in await self._read(INTENTS)}

    async def why_unknown(self) -> Counter[str]:
        """What those said who gave operations up; nothing where its own worker says that it is unknown."""
        return Counter(dict(await self._read(WHY_UNKNOWN, GREETING)))

    async def faults(self) -> list[tuple[Any, ...]]:
        """Chains of records that the sequencer found broken."""
        return await self._read(FAULTS)

    async def budget(self) -> tuple[int, int]:
        """Calls used and reserved of the only budget there is."""
        [(used, reserved)] = await self._read(BUDGETS)
        return used, reserved

    @abstractmethod
    async def settle_down(self) -> None:
        """Wait until nothing is written any more for a process that was killed a moment ago."""

    @abstractmethod
    async def stalled(self) -> bool:
        """Whether somebody has been in the middle of a transaction for a while, and does not go on."""

    @abstractmethod
    async def _now(self) -> float:
        """The time that leases are measured in."""

    @abstractmethod
    async def _read(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]: ...

    async def _count(self, statement: str, *parameters: object) -> int:
        [(count,)] = await self._read(statement, *parameters)
        return int(count)


class LedgerFile(Ledger):
    one_writer = True

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self._path = path

    async def settle_down(self) -> None:
        """Whatever a process writes to a file ends with the process."""

    async def stalled(self) -> bool:
        """A lock that nobody lets go of for a second is a stopped worker's."""
        end = monotonic() + STALLED_S
        while self._locked():
            if monotonic() >= end:
                return True
            await asyncio.sleep(0.01)
        return False

    def _locked(self) -> bool:
        with closing(sqlite3.connect(self._path, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            connection.execute("ROLLBACK")
            return False

    async def _now(self) -> float:
        return SystemBoot().now()

    async def _read(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._path, timeout=30)) as connection:
            return connection.execute(statement, parameters).fetchall()


NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"
AT_WORK = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
  AND extract(epoch FROM xact_start) < CAST(? AS DOUBLE PRECISION)
"""
WAITED_FOR = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND state = 'idle in transaction'
  AND extract(epoch FROM clock_timestamp() - state_change) > CAST(? AS DOUBLE PRECISION)
"""
SETTLING_S = 1.0
AWAY_S = 60.0
"""A database that is away for longer than this stays away."""


class LedgerDatabase(Ledger):
    """The connection is its own, is made again when the server was away, and waits for it."""

    one_writer = False

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close(timeout=5)

    async def settle_down(self) -> None:
        """What a dead process had sent is still carried out: a claim may appear after its worker's death."""
        killed_at, end = await self._now(), monotonic() + SETTLING_S
        while await self._count(AT_WORK, killed_at) and monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    async def stalled(self) -> bool:
        await asyncio.sleep(STALLED_S)  # the server says since when
        return await self._count(WAITED_FOR, STALLED_S / 2) > 0

    async def _now(self) -> float:
        [(now,)] = await self._read(NOW)
        return float(now)

    async def _read(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        text, values = said(statement, parameters)
        end = monotonic() + AWAY_S
        async with self._turn:
            while True:
                try:
                    return [tuple(row) for row in await (await self._connected()).fetch(text, *values)]
                except LOST:
                    if monotonic() > end:
                        raise
                await asyncio.sleep(0.05)  # a server that starts tells nobody

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            settings = {"search_path": "holdfast", "holdfast.tenant": "*"}
            self._connection = await asyncpg.connect(self.url, timeout=5, server_settings=settings)
        return self._connection


@asynccontextmanager
async def ledger_in(kind: str, folder: Path, *, durable: bool = False) -> AsyncIterator[Ledger]:
    """A fresh store of this kind; `durable`: what was acknowledged would survive a power cut."""
    if kind == "sqlite":
        yield LedgerFile(folder / "storm.db")
    elif durable:
        async with own_server() as server, reading(server.url) as ledger:
            yield ledger
    else:
        async with database() as url, reading(url) as ledger:
            yield ledger


@asynccontextmanager
async def own_server(
    *, durable: bool = True, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Postgres]:
    """A PostgreSQL that this test alone uses, and may stop."""
    server = Postgres(durable=durable, settings=settings)
    try:
        await asyncio.to_thread(server.start)
        yield server
    finally:
        await asyncio.to_thread(server.remove)


@asynccontextmanager
async def reading(url: str) -> AsyncIterator[LedgerDatabase]:
    ledger = LedgerDatabase(url)
    try:
        yield ledger
    finally:
        await ledger.close()
