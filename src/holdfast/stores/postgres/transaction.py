"""What does a job write with? Statements of one transaction; its records and bells go in last."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from holdfast.records.chain import GENESIS, Chain, Record
from holdfast.stores.postgres import columns
from holdfast.stores.postgres.connection import Connection
from holdfast.stores.postgres.dialect import said
from holdfast.stores.sql.engine import ACTIVE_VERSION, HALTS, OPEN_CHAIN, REVOKED, Row, Values

CHANNEL = "holdfast"
"""Where bells ring; the payload says what for."""
BRAKE = int.from_bytes(b"hf-brake", "big")
"""Claims share this lock; what they must obey is changed only by whoever has it alone."""
OFFICES = {
    "sequencer": int.from_bytes(b"hf-seque", "big"),
    "pruner": int.from_bytes(b"hf-prune", "big"),
    "views": int.from_bytes(b"hf-views", "big"),
}
_HALTS_OF = f"{HALTS} AND target = ANY (?1) UNION ALL {REVOKED} AND name = ANY (?1)"
_INSERT = "INSERT INTO record VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"


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
            await columns.insert(self._connection, statement, rows)

    def record(self, tenant: str, call_id: str, kind: str, at: float, body: str) -> None:
        self.pending.append(self.chain.append(tenant, call_id, kind, at, body))

    async def brake(self) -> None:
        await self._connection.execute("SELECT pg_advisory_xact_lock($1)", BRAKE)
        self._behind_brake = True

    async def alone(self, office: str) -> None:
        await self._connection.execute("SELECT pg_advisory_xact_lock($1)", OFFICES[office])

    async def turn(self, tenant: str, kind: str, *, alone: bool) -> None:
        name = int.from_bytes(blake2b(f"{tenant}\0{kind}".encode(), digest_size=8).digest(), signed=True)
        shared = "" if alone else "_shared"
        await self._connection.execute(f"SELECT pg_advisory_xact_lock{shared}($1)", name)

    async def halts(self, names: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        await self._keep_brake_off()
        found = await self.all(_HALTS_OF, (list(names),))
        return {target: (by, note) for target, by, note in found}

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
            await self._connection.executemany(_INSERT, self.pending)
        for what in sorted(self._bells):
            await self._connection.execute("SELECT pg_notify($1, $2)", CHANNEL, what)
