"""How does something go round after round, whatever happens to the store?"""

import logging
from collections.abc import Awaitable, Callable

from holdfast.model.errors import StoreError

log = logging.getLogger(__name__)


class Rounds:
    """`waits` and `failed` say what happens to it without the store, and when anything else goes wrong."""

    def __init__(self, work: Callable[[], Awaitable[object]], *, waits: str, failed: str) -> None:
        self._work, self._waits, self._failed = work, waits, failed
        self._well = True

    async def next(self) -> None:
        """One round; what it raises is told to the log, and that the store is away once."""
        try:
            await self._work()
            self._well = True
        except StoreError as error:
            if self._well:
                log.error("%s: %s", self._waits, error)
            self._well = False
        except Exception:
            log.exception("%s; it is tried again", self._failed)
