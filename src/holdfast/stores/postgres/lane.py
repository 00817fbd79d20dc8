"""How does one job become one durable transaction?

A lane is a connection that stays, and the chain of records that is written through it. What fails before its
commit was never written, and is tried again while there is time. A commit whose answer is lost may have
happened: that is for whoever asked to find out (IDM-4).
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import asyncpg

from holdfast.model.errors import HoldfastError, StoreError
from holdfast.records.chain import GENESIS, Chain, Record
from holdfast.stores.postgres.connection import (
    CONFLICTS,
    LOST,
    Connection,
    Patience,
    connect,
    describe,
    hang_up,
)
from holdfast.stores.postgres.dialect import quoted, said, translated
from holdfast.stores.sql.engine import (
    ACTIVE_VERSION,
    HALTS,
    OPEN_CHAIN,
    AmbiguousCommit,
    Row,
    Transaction,
    Values,
    Withdrawn,
)

log = logging.getLogger(__name__)

CHANNEL = "holdfast"
"""Where bells ring; the payload says what for."""
BRAKE = int.from_bytes(b"hf-brake", "big")
"""Claims share this lock; what they must obey is changed only by whoever has it alone."""
OFFICES = {
    "sequencer": int.from_bytes(b"hf-seque", "big"),
    "pruner": int.from_bytes(b"hf-prune", "big"),
}
TRIES = 8
"""How often a job that meets others is run before it is given up."""

INSERT = "INSERT INTO record VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
_TIP = """
SELECT seq, hash FROM (
  (SELECT seq, hash FROM record WHERE writer = $1 ORDER BY seq DESC LIMIT 1)
  UNION ALL SELECT seq, hash FROM chain_head WHERE tenant = '*' AND writer = $1
) tip ORDER BY seq DESC LIMIT 1
"""


class PostgresTransaction:
    def __init__(self, connection: Connection, chain: Chain) -> None:
        self._connection = connection
        self.chain = chain
        self.pending: list[Record] = []
        self._bells: set[str] = set()
        self._behind_brake = False

    async def run(self, statement: str, values: Values = ()) -> int:
        text, used = said(statement, values)
        status = await self._connection.execute(text, *used)
        return int(status.rpartition(" ")[2]) if status[-1:].isdigit() else 0

    async def one(self, statement: str, values: Values = ()) -> Row | None:
        text, used = said(statement, values)
        row = await self._connection.fetchrow(text, *used)
        return None if row is None else tuple(row)

    async def all(self, statement: str, values: Values = ()) -> list[Row]:
        text, used = said(statement, values)
        return [tuple(row) for row in await self._connection.fetch(text, *used)]

    async def many(self, statement: str, rows: Sequence[Values]) -> None:
        if rows:
            await self._connection.executemany(translated(statement)[0], rows)

    def record(self, tenant: str, call_id: str, kind: str, at: float, body: str) -> None:
        self.pending.append(self.chain.append(tenant, call_id, kind, at, body))

    async def brake(self) -> None:
        await self._connection.execute("SELECT pg_advisory_xact_lock($1)", BRAKE)
        self._behind_brake = True

    async def alone(self, office: str) -> None:
        await self._connection.execute("SELECT pg_advisory_xact_lock($1)", OFFICES[office])

    async def halts(self) -> Mapping[str, tuple[str, str]]:
        await self._keep_brake_off()
        return {target: (by, note) for target, by, note in await self.all(HALTS)}

    async def promoted(self) -> str | None:
        await self._keep_brake_off()
        found = await self.one(ACTIVE_VERSION)
        return None if found is None else str(found[0])

    async def _keep_brake_off(self) -> None:
        """In a statement of its own: the next one sees what was committed before the lock was had."""
        if not self._behind_brake:
            await self._connection.execute("SELECT pg_advisory_xact_lock_shared($1)", BRAKE)
            self._behind_brake = True

    async def shred(self) -> None:
        """Rows that are gone are overwritten when the table is vacuumed, after this transaction."""

    def ring(self, what: str) -> None:
        self._bells.add(what)

    async def complete(self) -> None:
        """What goes in last."""
        if self.pending:
            if self.pending[0].seq == 1:
                await self.run(OPEN_CHAIN, (self.chain.writer, GENESIS))  # so that the sequencer knows of us
            await self._connection.executemany(INSERT, self.pending)
        for what in sorted(self._bells):
            await self._connection.execute("SELECT pg_notify($1, $2)", CHANNEL, what)


class Lane:
    def __init__(self, url: str, name: str) -> None:
        self.chain = Chain(name)
        self._url = url
        self._connection: Connection | None = None
        self._chain_known = True  # a new name has no records yet

    async def run(
        self, tenant: str, durable: bool, job: Callable[[Transaction], Awaitable[Any]], patience: Patience
    ) -> Any:
        """What the job answers once it is committed."""
        tries = 0
        while True:
            try:
                connection = await self._connected(patience)
                return await self._transact(connection, tenant, durable, job)
            except CONFLICTS as error:
                tries += 1
                if tries == TRIES or patience.left <= 0:
                    raise StoreError(f"the store did not take the write: {describe(error)}") from error
            except LOST as error:
                await self.drop()
                await patience.wait(error)

    async def drop(self) -> None:
        """Let go of the connection; the next job makes another."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await hang_up(connection)

    async def _connected(self, patience: Patience) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._url, max(patience.left, 0.1))
        if not self._chain_known:
            await self._find_tip(self._connection)
        return self._connection

    async def _transact(
        self, connection: Connection, tenant: str, durable: bool, job: Callable[[Transaction], Awaitable[Any]]
    ) -> Any:
        mark = self.chain.mark()
        transaction = PostgresTransaction(connection, self.chain)
        try:
            await connection.execute(_opening(tenant, durable))
            answer = await job(transaction)
            await transaction.complete()
        except BaseException as error:
            self.chain.reset(mark)
            if isinstance(error, asyncpg.UniqueViolationError):
                self._chain_known = False  # it may be our own place that is taken
            await self._roll_back(connection)
            if isinstance(error, Withdrawn):
                return error.answer
            if _goes_on(error):
                raise
            raise StoreError(f"the store did not take the write: {describe(error)}") from error
        await self._commit(connection, bool(transaction.pending))
        return answer

    async def _commit(self, connection: Connection, recorded: bool) -> None:
        try:
            await connection.execute("COMMIT")
        except BaseException as error:
            self._chain_known = not recorded
            await self.drop()
            raise AmbiguousCommit(f"the store may not have taken the write: {describe(error)}") from error

    async def _roll_back(self, connection: Connection) -> None:
        try:
            await connection.execute("ROLLBACK")
        except (asyncpg.PostgresError, *LOST):
            await self.drop()

    async def _find_tip(self, connection: Connection) -> None:
        """Where our chain ends: a commit that nobody heard of may have happened."""
        await connection.execute("SELECT set_config('holdfast.tenant', '*', false)")
        row = await connection.fetchrow(_TIP, self.chain.writer)
        self.chain.reset((0, GENESIS) if row is None else (row[0], bytes(row[1])))
        self._chain_known = True


def _opening(tenant: str, durable: bool) -> str:
    """One trip: begin, for whom, and how safely."""
    begin = f"BEGIN; SET LOCAL holdfast.tenant = {quoted(tenant)}"
    return begin if durable else f"{begin}; SET LOCAL synchronous_commit = off"


def _goes_on(error: BaseException) -> bool:
    """What is ours, and what may be tried again."""
    return isinstance(error, (HoldfastError, *CONFLICTS, *LOST)) or not isinstance(error, Exception)
