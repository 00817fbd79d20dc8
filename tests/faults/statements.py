"""An SQLite whose Nth statement fails, in every way a statement can.

The statements are SQLite's own and the connection is a real one: only the answer is bad.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

from holdfast.stores.sqlite.connection import Connect, connect

Way = Literal["before", "after", "rolled back"]
WAYS: Final[tuple[Way, ...]] = ("before", "after", "rolled back")
"""It was not done; it was done and nobody is told; it was not done and took its transaction with it."""
AUDIT: Final = ("INTO record", "chain_head", "tree_leaf", "tree_node", "tree_checkpoint")
"""What writes to the log have in them."""


@dataclass
class Fuse:
    """Counts statements over all connections of one store; the Nth fails, and `lasting` more after it."""

    number: int
    way: Way
    only: tuple[str, ...] = ()
    """Counts statements that have one of these in them; all, where there are none."""
    lasting: int = 0
    seen: int = field(default=0, init=False)
    what: str = field(default="", init=False)
    """The statement that failed."""
    over: bool = field(default=False, init=False)

    def blows(self, statement: str) -> bool:
        if self.over or (self.only and not any(part in statement for part in self.only)):
            return False
        self.seen += 1
        if not self.number <= self.seen <= self.number + self.lasting:
            return False
        self.what = self.what or " ".join(statement.split())[:100]
        return True

    @property
    def blown(self) -> bool:
        return bool(self.what)


def failing(fuse: Fuse) -> Connect:
    """How a store gets connections that fail by this fuse."""

    class Failing(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if not fuse.blows(sql):
                return super().execute(sql, parameters)
            if fuse.way == "after":
                super().execute(sql, parameters).fetchall()
            elif fuse.way == "rolled back" and self.in_transaction:
                super().execute("ROLLBACK")
            raise sqlite3.OperationalError("disk I/O error")

        def executemany(self, sql: str, parameters: Sequence[Any], /) -> sqlite3.Cursor:  # type: ignore[override]
            if fuse.blows(sql):
                raise sqlite3.OperationalError("disk I/O error")
            return super().executemany(sql, parameters)

    return partial(connect, factory=Failing)
