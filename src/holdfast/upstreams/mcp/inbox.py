"""What has come for one request, and has not been looked at yet?"""

import asyncio
from collections import deque
from typing import Any

Item = dict[str, Any] | Exception


class Inbox:
    """One looks, others put: a queue without what several readers and a limit would need."""

    __slots__ = ("_items", "_reader")

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._reader: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Item) -> None:
        self._items.append(item)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def next(self) -> Item:
        while not self._items:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self._items.popleft()
