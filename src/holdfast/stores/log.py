"""Where is the log of this store, and how is it read past every gateway?"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from holdfast.model.errors import StoreError
from holdfast.records.log import Leaf, Log
from holdfast.stores.sqlite import log as sqlite


class KeptLog(Log, Protocol):
    """A log in a store: parts of it can be read, and its tree is kept beside it."""

    def size(self) -> int: ...
    def node(self, level: int, place: int) -> bytes: ...
    def leaves(self) -> Iterator[Leaf]: ...
    def leaves_of(self, tenant: str | None, since: float) -> Iterator[Leaf]: ...


def opened(store: Path | str) -> AbstractContextManager[KeptLog]:
    """A database file by its path, or a PostgreSQL database by its URL."""
    if isinstance(store, Path):
        return sqlite.opened(store)
    try:
        from holdfast.stores.postgres import log as postgres
    except ModuleNotFoundError as missing:
        if missing.name != "asyncpg":
            raise
        raise StoreError(
            "a log in PostgreSQL needs the driver 'asyncpg': install holdfast[postgres]"
        ) from None
    return postgres.opened(store)
