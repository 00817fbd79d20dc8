"""On which stores do whole gateways run in the tests?

A place is what a configuration says under `store`. Whoever parametrises a test by `STORES` runs it on each.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

STORES = ("sqlite",)


@asynccontextmanager
async def place(kind: str, folder: Path) -> AsyncIterator[str]:
    """A fresh, empty store of this kind, until the block ends."""
    assert kind in STORES
    yield f"sqlite:///{folder}/holdfast.db"
