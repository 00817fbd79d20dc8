"""What does a job write with? Statements of the one transaction that is open; records go in last."""

import sqlite3
from collections.abc import Sequence
from functools import cache
from itertools import chain

from holdfast.records.chain import GENESIS, Chain, Record
from holdfast.stores.sql.claim import CLAIM
from holdfast.stores.sql.engine import OPEN_CHAIN, Row, Values
from holdfast.stores.sql.outcome import FINISH
from holdfast.stores.sql.sequencer import ADD_RECORD
from holdfast.stores.sqlite.standing import Standing, read_halts, read_promoted

_AT_ONCE = (256, 64, 16, 4, 1)
"""Rows in one statement: each statement gives up the interpreter's lock and must wait to get it back."""


@cache
def _is_plain(statement: str) -> bool:
    """Whether it ends with the places of one row, and has no numbered ones."""
    _, _, row = statement.partition("VALUES ")
    return row.startswith("(") and row.endswith(")") and row.count("(") == 1 and "?1" not in row


@cache
def _of_rows(insert: str, rows: int) -> str:
    """The same INSERT for several rows. Statements are constants, so each is made and prepared once."""
    into, values, row = insert.partition("VALUES ")
    return f"{into}{values}{', '.join([row] * rows)}"


class NotPlain(Exception):
    """A job that was taken for a plain one is none: all of them must be run as what they are."""


class SqliteTransaction:
    """Records wait in `pending`, what plain jobs want in `claims` and `ends`.

    Nothing here ever waits: a job is over when it was started, on the event loop as in the thread.
    """

    __slots__ = ("_braked", "_checked", "_connection", "_standing", "chain", "claims", "ends", "pending")

    def __init__(self, connection: sqlite3.Connection, chain: Chain, standing: Standing) -> None:
        self._connection = connection
        self.chain = chain
        self.pending: list[Record] = []
        self.claims: list[Values] = []
        """Parameters of CLAIM, each for a key that nobody has."""
        self.ends: list[Values] = []
        """Parameters of FINISH, each for an attempt that is running."""
        self._standing = standing
        self._checked = False
        self._braked = False

    async def run(self, statement: str, values: Values = ()) -> int:
        return self._connection.execute(statement, values).rowcount

    async def one(self, statement: str, values: Values = ()) -> Row | None:
        row: Row | None = self._connection.execute(statement, values).fetchone()
        return row

    async def all(self, statement: str, values: Values = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    async def many(self, statement: str, rows: Sequence[Values]) -> None:
        if _is_plain(statement):
            self._insert(statement, rows)
        else:
            self._connection.executemany(statement, rows)

    def _insert(self, statement: str, rows: Sequence[Values]) -> None:
        done, execute = 0, self._connection.execute
        for count in _AT_ONCE:
            text = _of_rows(statement, count)
            while len(rows) - done >= count:
                execute(text, rows[done] if count == 1 else [*chain.from_iterable(rows[done : done + count])])
                done += count

    def record(self, tenant: str, call_id: str, kind: str, at: float, body: str) -> None:
        self.pending.append(self.chain.append(tenant, call_id, kind, at, body))

    def write_plain(self) -> None:
        """Write what plain jobs want, before anybody looks; raises NotPlain where one of them is not."""
        if self.claims:
            claims, self.claims = self.claims, []
            if self._connection.executemany(CLAIM, claims).rowcount != len(claims):
                raise NotPlain
        if self.ends:
            ends, self.ends = self.ends, []
            if self._connection.executemany(FINISH, ends).rowcount != len(ends):
                raise NotPlain

    def write_records(self) -> None:
        pending = self.pending
        if pending and pending[0].seq == 1:
            # So that the sequencer knows of us.
            self._connection.execute(OPEN_CHAIN, (self.chain.writer, GENESIS))
        self._insert(ADD_RECORD, pending)

    async def brake(self) -> None:
        """Nobody else writes now; but what was read before must be read again, and is not kept."""
        self._braked = True
        self._standing.forget()

    async def alone(self, office: str) -> None:
        """There is one writer at a time over all processes."""

    async def turn(self, tenant: str, kind: str, *, alone: bool) -> None:
        """It is ours: there is one writer at a time over all processes."""

    async def halts(self, names: Sequence[str]) -> dict[str, tuple[str, str]]:
        return self.halted()

    async def promoted(self) -> str | None:
        return self.in_force()

    def standing(self) -> tuple[str | None, dict[str, tuple[str, str]]]:
        """What every claim obeys."""
        return self.in_force(), self.halted()

    def halted(self) -> dict[str, tuple[str, str]]:
        """Of all names: what one call wants to know serves those that come with it."""
        if self._braked:
            return read_halts(self._connection)
        self._check()
        return self._standing.halts(self._connection)

    def in_force(self) -> str | None:
        """The version of the policies."""
        if self._braked:
            return read_promoted(self._connection)
        self._check()
        return self._standing.promoted(self._connection)

    def _check(self) -> None:
        if not self._checked:
            self._standing.check(self._connection)
            self._checked = True

    async def shred(self) -> None:
        self._connection.execute("PRAGMA secure_delete = ON")

    def ring(self, what: str) -> None:
        """Nobody listens: processes look again often enough."""

    def forget(self) -> None:
        """Something that was read once may have been taken back."""
        self._standing.forget()
