"""What must a database offer so that its store can be copied, and put back?

A snapshot is all of a store at one moment, whoever writes meanwhile. A vessel is a new, empty store that is
filled before anybody sees it; until `launch` the old one is untouched. Both take SQLite's placeholders.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]
Values = Sequence[object]


class Snapshot(Protocol):
    @property
    def engine(self) -> str: ...
    @property
    def place(self) -> str:
        """Where it is, for messages."""
        ...

    async def shape(self) -> int:
        """Which shape its tables have: the same number for the same columns, on every engine."""
        ...

    async def columns(self, table: str) -> list[str]: ...
    async def all(self, statement: str, values: Values = ()) -> list[Row]: ...

    def stream(self, statement: str, values: Values = ()) -> AsyncIterator[list[Row]]:
        """Many rows, a few at a time."""
        ...

    async def close(self) -> None: ...


class Vessel(Protocol):
    async def build(self, shape: int) -> None:
        """Make empty tables of that shape, aside; raises StoreError for one this code does not know."""
        ...

    async def run(self, statement: str, values: Values = ()) -> int: ...
    async def all(self, statement: str, values: Values = ()) -> list[Row]: ...
    async def many(self, statement: str, rows: Sequence[Values]) -> None: ...

    async def upgrade(self) -> None:
        """Bring it to the shape this code works with."""
        ...

    async def kept(self) -> int:
        """The highest number that something is kept under which was there before; 0 when nothing is."""
        ...

    async def launch(self, number: int) -> str | None:
        """Put it where the store was; what was there is kept as of before `number`.

        Where that is now, or None when there was nothing.
        """
        ...

    async def abandon(self) -> None:
        """Clear away what was built; nothing happens after `launch`."""
        ...
