"""What waits to be written, and who waits for it?"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from holdfast.stores.postgres.batch import Part
from holdfast.stores.postgres.connection import Patience


class Job(NamedTuple):
    tenant: str
    durable: bool
    run: Callable[..., Awaitable[Any]]
    arguments: tuple[Any, ...]
    future: asyncio.Future[Any]
    patience: Patience
    part: Part | None
    """What it wants where that is plain: such jobs may be written together."""

    def tell(self, answer: Any) -> None:
        if not self.future.done():  # else whoever waited was cancelled
            self.future.set_result(answer)

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)
