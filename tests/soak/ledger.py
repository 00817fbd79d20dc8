"""What does the database say, read past every gateway?"""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from holdfast.stores.boot import SystemBoot


class Row(NamedTuple):
    tool: str
    key: str
    state: str


IN_FLIGHT = """
SELECT count(*) FROM operation WHERE owner = ? AND (state IN ('claimed', 'dispatched') OR note <> '')
"""
"""What a worker had claimed and not finished; somebody else may have settled some of it meanwhile."""
ACTING = "SELECT count(*) FROM operation WHERE owner = ? AND state IN ('claimed', 'dispatched')"
ALL_ACTING = "SELECT count(*) FROM operation WHERE state IN ('claimed', 'dispatched')"
STUCK = "SELECT count(*) FROM operation WHERE state IN ('claimed', 'dispatched') AND lease_boot + ? < ?"
UNSETTLED = """
SELECT count(*) FROM operation WHERE state IN ('claimed', 'dispatched') OR (state = 'unknown' AND tool = ?)
"""
INTENTS = (
    "SELECT DISTINCT o.key FROM operation o JOIN record r USING (tenant, call_id) WHERE r.kind = 'intent'"
)


class LedgerFile:
    def __init__(self, path: Path) -> None:
        self._path = path

    def rows(self) -> list[Row]:
        return [Row(*row) for row in self._read("SELECT tool, key, state FROM operation")]

    def states(self, tool: str) -> Counter[str]:
        return Counter(row.state for row in self.rows() if row.tool == tool)

    def acting(self, worker: str) -> bool:
        return self._count(ACTING, worker) > 0

    def in_flight(self, worker: str) -> int:
        return self._count(IN_FLIGHT, worker)

    def all_in_flight(self) -> int:
        return self._count(ALL_ACTING)

    def stuck(self, beyond_lease_s: float) -> int:
        """Operations that still run this long after their lease."""
        return self._count(STUCK, beyond_lease_s, SystemBoot().now())

    def unsettled(self, probed: str) -> int:
        """What time alone must still bring to an end: running, or unknown although a probe could tell."""
        return self._count(UNSETTLED, probed)

    def keys_with_intent(self) -> set[str]:
        return {key for (key,) in self._read(INTENTS)}

    def write_locked(self) -> bool:
        """Whether somebody is in the middle of a transaction right now."""
        with closing(sqlite3.connect(self._path, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            connection.execute("ROLLBACK")
            return False

    def _count(self, statement: str, *parameters: object) -> int:
        [(count,)] = self._read(statement, *parameters)
        return int(count)

    def _read(self, statement: str, *parameters: object) -> list[tuple[str, ...]]:
        with closing(sqlite3.connect(self._path, timeout=30)) as connection:
            return connection.execute(statement, parameters).fetchall()
