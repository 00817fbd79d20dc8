"""What does the upstream do with each call, and how far has it come?

The upstream asks here before and after every effect, over TCP, and does what it is told. So a scenario knows
that a call is between the two, and holds it there, without any sleeping.

    before KEY  ->  go
    after KEY   ->  answer, drop, error or hang
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from enum import StrEnum


class Point(StrEnum):
    BEFORE = "before"
    AFTER = "after"


class Ending(StrEnum):
    """What becomes of the upstream's answer once the effect has happened."""

    ANSWER = "answer"
    DROP = "drop"
    """The connection breaks; over stdio the server dies."""
    ERROR = "error"
    HANG = "hang"


ALWAYS_WELL: Callable[[str, int], Ending] = lambda key, visit: Ending.ANSWER  # noqa: E731


class Stage:
    """Every key's visits. The second time a key comes it is never held: only the first is in mid-call."""

    def __init__(self) -> None:
        self.port = 0
        self.ending = ALWAYS_WELL
        """What becomes of the answer, by key and by how many times that key was there."""
        self._held: dict[str, Point] = {}
        self._free: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._arrived: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._visits: Counter[tuple[str, str]] = Counter()
        self._open = 0
        self._changed = asyncio.Condition()

    def hold(self, key: str, point: Point) -> None:
        """The first call of this key stays at the point until it is released."""
        self._held[key] = point

    def release(self, *keys: str) -> None:
        """These keys go on; all of them when none is named."""
        for key in keys or tuple(self._held):
            self._free[key].set()

    async def arrived(self, key: str) -> None:
        """Returns once the key is held at its point."""
        await self._arrived[key].wait()

    async def all_arrived(self, keys: Iterable[str], within_s: float) -> int:
        """How many came: a gateway may let only some through at a time, or refuse some."""
        waits = [asyncio.create_task(self.arrived(key)) for key in keys]
        came, late = await asyncio.wait(waits, timeout=within_s)
        for wait in late:
            wait.cancel()
        return len(came)

    async def quiet(self, within_s: float) -> bool:
        """Whether nothing was under way any more before the time was over."""
        try:
            async with asyncio.timeout(within_s), self._changed:
                await self._changed.wait_for(lambda: self._open == 0)
        except TimeoutError:
            return False
        return True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One visit: a connection from before the effect until the answer was decided."""
        await self._move(1)
        try:
            while line := await reader.readline():
                word, _, key = line.decode().strip().partition(" ")
                writer.write(f"{await self._told(Point(word), key)}\n".encode())
                await writer.drain()
        except ConnectionError:
            pass  # the upstream died: that visit is over
        finally:
            writer.close()
            await self._move(-1)

    async def _told(self, point: Point, key: str) -> str:
        self._visits[point, key] += 1
        visit = self._visits[point, key]
        if visit == 1 and self._held.get(key) is point:
            self._arrived[key].set()
            await self._free[key].wait()
        return "go" if point is Point.BEFORE else self.ending(key, visit)

    async def _move(self, step: int) -> None:
        async with self._changed:
            self._open += step
            self._changed.notify_all()


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    stage = Stage()
    server = await asyncio.start_server(stage.serve, "127.0.0.1", 0, backlog=1024)
    stage.port = server.sockets[0].getsockname()[1]
    try:
        yield stage
    finally:
        stage.release()
        server.close()
