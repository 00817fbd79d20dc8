"""What do all claims obey, and has it changed since it was last read?

SQLite counts what other connections commit; what ours changes is changed under the brake. So one look at
that count, in the claims' own transaction, spares reading all halts again.
"""

import sqlite3

from holdfast.stores.sql.engine import ACTIVE_VERSION, HALTS

Halts = dict[str, tuple[str, str]]


class Standing:
    """Belongs to one connection, and holds from one of its transactions to the next."""

    __slots__ = ("_halts", "_promoted", "_version")

    def __init__(self) -> None:
        self._version = -1
        self._halts: Halts | None = None
        self._promoted: tuple[str | None] | None = None

    def check(self, connection: sqlite3.Connection) -> None:
        """Once in every transaction that asks."""
        [version] = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self.forget()
            self._version = version

    def forget(self) -> None:
        self._halts = self._promoted = None

    def halts(self, connection: sqlite3.Connection) -> Halts:
        if self._halts is None:
            self._halts = read_halts(connection)
        return self._halts

    def promoted(self, connection: sqlite3.Connection) -> str | None:
        if self._promoted is None:
            self._promoted = (read_promoted(connection),)
        return self._promoted[0]


def read_halts(connection: sqlite3.Connection) -> Halts:
    return {target: (by, note) for target, by, note in connection.execute(HALTS).fetchall()}


def read_promoted(connection: sqlite3.Connection) -> str | None:
    found = connection.execute(ACTIVE_VERSION).fetchall()
    return found[0][0] if found else None
