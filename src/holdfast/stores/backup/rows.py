"""How does one row take the place of another, whatever its table?"""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.stores.backup.snapshot import Row, Snapshot
from holdfast.stores.sql.engine import Transaction

KEYS = {
    "operation": ("tenant", "principal", "tool", "key"),
    "job": ("tenant", "call_id"),
    "upstream_session": ("tenant", "id"),
    "upstream_session_line": ("tenant", "session", "number"),
    "approval": ("tenant", "id"),
    "vote": ("tenant", "approval_id", "person"),
    "rate": ("tenant", "bucket"),
    "budget": ("tenant", "bucket"),
    "reservation": ("tenant", "call_id", "bucket"),
    "halt": ("tenant", "target"),
    "cancel": ("tenant", "call_id"),
    "token": ("tenant", "principal", "upstream"),
    "tenant_key": ("tenant",),
    "bundle": ("tenant", "version"),
    "promotion": ("tenant", "number"),
    "access_key": ("tenant", "id"),
    "access_grant": ("tenant", "id"),
    "revocation": ("tenant", "name"),
    "standing_rule": ("tenant", "id"),
    "plan": ("tenant", "id"),
    "plan_step": ("tenant", "plan", "number"),
    "session_label": ("tenant", "holder", "label", "principal", "lifted_at"),
}


class Table(NamedTuple):
    """A table with its columns in the order its rows are read in."""

    name: str
    columns: tuple[str, ...]

    @property
    def select(self) -> str:
        return f"SELECT {', '.join(self.columns)} FROM {self.name}"  # noqa: S608

    @property
    def _by_key(self) -> str:
        return " AND ".join(f"{name} = ?" for name in KEYS[self.name])

    def key(self, row: Row) -> Row:
        return tuple(row[self.columns.index(name)] for name in KEYS[self.name])

    def dict(self, row: Row) -> dict[str, object]:
        return dict(zip(self.columns, row, strict=True))

    async def find(self, transaction: Transaction, row: Row) -> Row | None:
        """The row of that key that is there now, and stays as it is until the transaction is over."""
        return await transaction.one(f"{self.select} WHERE {self._by_key} /* FOR UPDATE */", self.key(row))

    async def drop(self, transaction: Transaction, row: Row) -> None:
        await transaction.run(f"DELETE FROM {self.name} WHERE {self._by_key}", self.key(row))  # noqa: S608

    async def put(self, transaction: Transaction, row: Row) -> None:
        """In the place of the one of that key."""
        await self.drop(transaction, row)
        places = ", ".join("?" * len(self.columns))
        names = ", ".join(self.columns)
        await transaction.run(f"INSERT INTO {self.name} ({names}) VALUES ({places})", row)  # noqa: S608

    async def add(self, transaction: Transaction, rows: Sequence[Row]) -> int:
        """Those whose key is not there; how many those were."""
        added = 0
        for row in rows:
            if await self.find(transaction, row) is None:
                await self.put(transaction, row)
                added += 1
        return added


async def table(source: Snapshot, name: str) -> Table:
    return Table(name, tuple(await source.columns(name)))
