"""What do all claims obey, and has it changed since it was last read?

SQLite counts what other connections commit; what ours changes is changed under the brake. So one look at
that count, in the claims' own transaction, spares reading all halts again. Revocations may be many, and each
has a higher number than those before it: they are read again only where there is a new one.
"""

import sqlite3

from holdfast.stores.sql.engine import ACTIVE_VERSION, HALTS, REVOKED

Halts = dict[str, tuple[str, str]]

_LAST = "SELECT max(changed) FROM revocation"


class Standing:
    """Belongs to one connection, and holds from one of its transactions to the next."""

    __slots__ = ("_barred", "_halts", "_known", "_last", "_promoted", "_revoked", "_version")

    def __init__(self) -> None:
        self._version = -1
        self._known = False
        self._halts: Halts = {}
        self._last: int | None = None
        self._revoked: Halts = {}
        self._barred: Halts = {}
        self._promoted: tuple[str | None] | None = None

    def check(self, connection: sqlite3.Connection) -> None:
        """Once in every transaction that asks."""
        [version] = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self.forget()
            self._version = version

    def forget(self) -> None:
        self._known, self._promoted = False, None

    def halts(self, connection: sqlite3.Connection) -> Halts:
        """What is halted or revoked."""
        if not self._known:
            self._look(connection)
        return self._barred

    def promoted(self, connection: sqlite3.Connection) -> str | None:
        if self._promoted is None:
            self._promoted = (read_promoted(connection),)
        return self._promoted[0]

    def _look(self, connection: sqlite3.Connection) -> None:
        halts = _read(connection, HALTS)
        [last] = connection.execute(_LAST).fetchone()
        if last != self._last:
            self._revoked, self._last = _read(connection, REVOKED), last
        elif halts == self._halts:
            self._known = True
            return
        self._halts, self._barred = halts, self._revoked | halts
        self._known = True


def read_halts(connection: sqlite3.Connection) -> Halts:
    return _read(connection, f"{HALTS} UNION ALL {REVOKED}")


def read_promoted(connection: sqlite3.Connection) -> str | None:
    found = connection.execute(ACTIVE_VERSION).fetchall()
    return found[0][0] if found else None


def _read(connection: sqlite3.Connection, statement: str) -> Halts:
    return {name: (by, note) for name, by, note in connection.execute(statement).fetchall()}
