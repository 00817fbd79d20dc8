"""Did another process do something that concerns this one? Heard at once where the store can tell."""

import asyncio
from collections.abc import Callable

from holdfast.ports import Clock


class News:
    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None
        self._heard = False

    def hear(self, what: str) -> None:
        """Something changed; what it was is looked for where it always is."""
        self._heard = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def wait(self, clock: Clock, seconds: float) -> None:
        """Until something is heard, or the time is up."""
        if not self._heard:
            self._waiting = asyncio.get_running_loop().create_future()
            await clock.until(self._waiting, seconds)
        self._heard = False


def together(*several: News) -> Callable[[str], None]:
    """One listener for all of them."""

    def hear(what: str) -> None:
        for news in several:
            news.hear(what)

    return hear
