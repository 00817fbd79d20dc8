"""Which worker takes a connection that comes to the socket of all?

The event loop's own server takes all connections that wait as soon as it hears of one: of thirty that come at
once one worker gets thirty, and the others sleep. Here a worker takes one, looks after what else it has to
do, and takes the next: they go to whoever has time for them. Who has more than the others leaves the next
few to them for a moment: a connection mostly stays, and what comes over it later is its worker's work.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable

from holdfast.cli.tally import Tally

log = logging.getLogger(__name__)

PAUSE_S = 1.0
"""Where the process has no descriptor left, before the next is tried: others may take it meanwhile."""
AHEAD = 2
"""How much more than another a worker has, beside a sixteenth, before it leaves some to others."""
LEAVE_S = 0.005
"""For how long: a thread that computes, in a worker that has just begun, keeps its loop as long as that."""
AFTER = 64
"""So many at most it takes then whatever others have. One at first, and twice as many each time when nobody
has come: they may have been stopped."""


class OneByOne:
    """Accepts until it is closed; the socket is not its own."""

    def __init__(
        self,
        bound: socket.socket,
        make: Callable[[], asyncio.Protocol],
        pause_s: float = PAUSE_S,
        *,
        has: Callable[[], int] = lambda: 0,
        tally: Tally | None = None,
    ) -> None:
        """`has` counts the connections that are being served; what others have is in the tally."""
        self._bound, self._make, self._pause_s = bound, make, pause_s
        self._has, self._tally = has, tally
        self._free = 0  # so many are taken whatever others have
        self._after = 1  # so many will be, when those with fewer were waited for
        self._least: int | None = None  # what one of them had then
        self._loop = asyncio.get_running_loop()
        self._taking: set[asyncio.Task[object]] = set()
        self._pause: asyncio.TimerHandle | None = None
        bound.setblocking(False)
        self.tell()
        self._listen()

    def tell(self) -> None:
        """Say how many it has: connections end unheard, and who had this place before says that it left."""
        if self._tally is not None:
            self._tally.say(self._own())

    async def close(self) -> None:
        """Nothing more is taken; what was taken is served from here on, or gone."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._bound)
        if self._tally is not None:
            self._tally.leave()
        if self._taking:
            await asyncio.wait(self._taking)

    def _listen(self) -> None:
        self._pause = None
        self._loop.add_reader(self._bound, self._take)

    def _ahead(self, tally: Tally) -> bool:
        """Whether the next is for somebody else."""
        self.tell()
        own, least = self._own(), tally.least()
        if least is None or own <= least + AHEAD + own // 16:
            self._free, self._least = 0, None
            return False
        if self._free:
            self._free -= 1
            return False
        self._after = min(2 * self._after, AFTER) if least == self._least else 1
        self._free, self._least = self._after, least
        return True

    def _own(self) -> int:
        return self._has() + len(self._taking)

    def _take(self) -> None:
        if self._tally is not None and self._ahead(self._tally):
            self._wait(LEAVE_S)
            return
        try:
            connection, _ = self._bound.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # somebody else was faster, or whoever came has gone
        except OSError as error:
            log.error("no connection can be accepted for now: %s", error.strerror or error)
            self._wait(self._pause_s)
            return
        connection.setblocking(False)
        with contextlib.suppress(OSError):  # whoever came has gone
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task: asyncio.Task[object] = self._loop.create_task(self._serve(connection))
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)

    def _wait(self, seconds: float) -> None:
        self._loop.remove_reader(self._bound)
        self._pause = self._loop.call_later(seconds, self._listen)

    async def _serve(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, connection)
        except OSError as error:
            log.debug("a connection was gone before it was served: %s", error)
            connection.close()
