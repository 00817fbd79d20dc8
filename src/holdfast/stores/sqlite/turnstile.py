"""Which of several processes writes next?

SQLite lets one write at a time and tells nobody when it is done: whoever finds it taken must look again and
again. Here processes wait in the kernel, which wakes the next at once, and frees the turn of who dies. It is
a courtesy: whoever has no turn, or cannot get one in time, asks the database all the same.
"""

import asyncio
import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from holdfast.holding import let_go

PATIENCE_S = 1.0
"""A turn lasts milliseconds; who holds it longer is stopped, or its disk is."""


class Turnstile:
    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        self._loop = loop
        self._wanted: SimpleQueue[bool] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._then: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._coming = False  # the thread waits for a turn
        self._held = False
        self._closed = False

    def take(self) -> bool:
        """Whether it is ours now, without waiting."""
        if self._coming:
            return False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._held = True
        return True

    def wait(self, then: Callable[[], None]) -> None:
        """Call this when it is ours, or when that takes too long; `take` has failed."""
        if self._coming:  # it took too long before, and still does
            self._loop.call_soon(then)
            return
        self._then, self._coming = then, True
        self._timer = self._loop.call_later(PATIENCE_S, self._tell)
        if self._thread is None:
            self._thread = threading.Thread(target=self._queue, name="holdfast-turnstile", daemon=True)
            self._thread.start()
        self._wanted.put(True)

    def leave(self) -> None:
        """From any thread."""
        if self._held:
            self._held = False
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Nobody waits any more. A thread that still does keeps the file until it is woken."""
        self._closed = True
        if self._thread is None:
            let_go(self._file)
        else:
            self._wanted.put(False)

    def _queue(self) -> None:
        while self._wanted.get():
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                self._loop.call_soon_threadsafe(self._come)
            except RuntimeError:  # the loop is gone, and with it everybody who waited
                break
        let_go(self._file)

    def _come(self) -> None:
        if self._closed:  # the file may be closed too, and its number another's
            return
        self._coming, self._held = False, True
        if self._then is None:  # too late: they went on without it
            self.leave()
        self._tell()

    def _tell(self) -> None:
        then, self._then = self._then, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if then is not None:
            then()
