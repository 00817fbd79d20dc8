"""How are several workers kept serving on one socket?

The parent serves nothing itself. It starts a worker alone first, which tells whether this can work at all;
then the others. One that dies is started again, later and later if it keeps dying. SIGHUP replaces them one
by one, each by a new one that already serves; SIGTERM drains them all.
"""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Coroutine, Sequence
from typing import Any

from holdfast.cli.exits import Exit
from holdfast.cli.patience import Patience
from holdfast.cli.tally import Tally
from holdfast.cli.workers import Worker
from holdfast.model.errors import HoldfastError

log = logging.getLogger(__name__)

START_S = 120.0
"""How long a worker may take until it serves; slow MCP servers are waited for."""
PAUSE_S, LONGEST_PAUSE_S = 0.1, 30.0
"""Before a worker is started again: the first, doubled for each one that died soon, and the longest."""
SOON_S = 10.0
"""Who dies before this age probably dies again."""
GIVE_UP = 3
"""Workers that ended one after the other without ever serving, while nobody serves."""
FORCE_S = 5.0
"""From the second signal to the end."""


class Supervisor:
    def __init__(self, command: Sequence[str], bound: socket.socket, count: int, patience: Patience) -> None:
        self._command, self._bound, self._patience = command, bound, patience
        self._places: list[Worker | None] = [None] * count
        self._tally = Tally.made(count)
        self._turns = [asyncio.Lock() for _ in range(count)]
        self._alive: set[Worker] = set()
        self._soon = [0] * count
        self._unready = 0
        self._served = asyncio.Event()
        self._forced = asyncio.Event()
        self._over: asyncio.Future[int] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._told = asyncio.Event()
        """To drain."""
        self._rolling = self._again = False
        self._well = True
        self._terminal = _has_terminal()

    async def run(self) -> int:
        """Until told to stop, or until it makes no sense to go on; how it ended."""
        loop = asyncio.get_running_loop()
        self._over = loop.create_future()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        for place in range(len(self._places)):
            self._later(self._keep(place))
        return await self._over

    # --- keeping --------------------------------------------------------------------------

    async def _keep(self, place: int) -> None:
        """Keep one place filled."""
        if place:
            await self._served.wait()
        while not self._told.is_set() and not (self._over is None or self._over.done()):
            try:
                worker = await self._filled(place)
            except OSError as error:
                if self._told.is_set():
                    return
                if not self._served.is_set():
                    raise HoldfastError(f"a worker cannot be started: {error}") from None
                log.error("worker %d cannot be started: %s; it is tried again", place + 1, error)
                await asyncio.sleep(LONGEST_PAUSE_S)
                continue
            await worker.process.wait()
            if worker is self._places[place]:  # and no other is there in its place
                await self._died(place, worker)

    async def _filled(self, place: int) -> Worker:
        async with self._turns[place]:
            worker = self._places[place]
            if worker is None or worker.process.returncode is not None:
                worker = self._places[place] = await self._start(place)
            return worker

    async def _start(self, place: int) -> Worker:
        if self._told.is_set():
            raise OSError("the server is draining")
        first, alone = not self._served.is_set(), len(self._places) == 1
        worker = await Worker.start(place, self._command, self._bound, self._tally, first=first, alone=alone)
        self._alive.add(worker)
        self._later(self._watch(worker))
        if self._told.is_set():  # since a moment ago
            worker.send(signal.SIGTERM)
        return worker

    async def _watch(self, worker: Worker) -> None:
        await asyncio.wait((worker.ready,), timeout=START_S)
        if worker.serves:
            self._unready = 0
            self._served.set()
            log.info("%s serves", worker)
        elif not worker.ready.done():
            log.error("%s does not serve after %g s; it is killed", worker, START_S)
            worker.send(signal.SIGKILL)
        code = await worker.process.wait()
        worker.let_go()
        self._alive.discard(worker)
        if not any(one.number == worker.number for one in self._alive):  # none that took its place
            self._tally.gone(worker.number)
        if self._told.is_set() and code not in (0, -signal.SIGTERM):
            self._well = False
            log.error("%s %s while it was draining", worker, worker.fate)

    async def _died(self, place: int, worker: Worker) -> None:
        if self._told.is_set():
            return
        code, served = worker.process.returncode or 0, await worker.ready
        self._unready = 0 if served else self._unready + 1
        if not self._served.is_set() and code > 0:  # it has said why, and the next one would say the same
            self._end(code)
            return
        if self._unready >= GIVE_UP and not any(one.serves for one in self._alive):
            log.error("%s %s, like %d before it; giving up", worker, worker.fate, GIVE_UP - 1)
            self._end(code if code > 0 else Exit.FAILED)
            return
        self._soon[place] = self._soon[place] + 1 if worker.lived_s < SOON_S else 0
        pause_s = min(PAUSE_S * 2 ** self._soon[place], LONGEST_PAUSE_S)
        log.error("%s %s; it is started again in %g s", worker, worker.fate, pause_s)
        await asyncio.sleep(pause_s)

    # --- replacing ------------------------------------------------------------------------

    def _reload(self) -> None:
        """SIGHUP. From a terminal that was closed it means the end, as for any other program."""
        if self._terminal and not _has_terminal():
            self._stop()
        elif self._rolling:
            self._again = True
        elif not self._told.is_set():
            self._rolling = True
            self._later(self._roll())

    async def _roll(self) -> None:
        await self._served.wait()
        log.info("replacing %d workers, one by one", len(self._places))
        for place in range(len(self._places)):
            if not await self._replace(place):
                break
        else:
            log.info("every worker is replaced")
        self._rolling = False
        if self._again:
            self._again = False
            self._reload()

    async def _replace(self, place: int) -> bool:
        async with self._turns[place]:
            old = self._places[place]
            try:
                new = await self._start(place)
            except OSError as error:
                if self._told.is_set():
                    return False
                log.error("a new worker cannot be started: %s; those that serve stay as they are", error)
                return False
            if not await new.ready:
                await new.process.wait()
                log.error("%s %s before it served; those that serve stay as they are", new, new.fate)
                return False
            self._places[place] = new
        if old is not None:
            old.let_go()
            if not await old.end(self._patience.whole_s):
                log.error("%s did not drain within %g s; it was killed", old, self._patience.whole_s)
        return True

    # --- ending ---------------------------------------------------------------------------

    def _stop(self) -> None:
        if self._told.is_set():
            self._forced.set()
            for worker in self._alive:
                worker.send(signal.SIGTERM)
            return
        self._told.set()
        self._later(self._drain())

    async def _drain(self) -> None:
        self._bound.close()  # once every worker has closed it too, connections are refused
        log.info("draining %d workers", len(self._alive))
        for worker in self._alive:
            worker.send(signal.SIGTERM)
        gone, forced = (asyncio.ensure_future(one) for one in (self._gone(), self._forced.wait()))
        await asyncio.wait(
            (gone, forced), timeout=self._patience.whole_s, return_when=asyncio.FIRST_COMPLETED
        )
        if forced.done():
            await asyncio.wait((gone,), timeout=FORCE_S)
        for worker in self._alive:
            log.error("%s has not ended in time; it is killed", worker)
            worker.send(signal.SIGKILL)
        await gone
        self._end(Exit.DONE if self._well else Exit.FAILED)

    async def _gone(self) -> None:
        """Until no worker is left, nor one that was just being started."""
        while self._alive:
            await next(iter(self._alive)).process.wait()
            await asyncio.sleep(0)

    def _end(self, code: int) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(code)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        """What breaks in here must not leave places empty in silence."""
        self._tasks.discard(task)
        broke = None if task.cancelled() else task.exception()
        if broke is not None and self._over is not None and not self._over.done():
            self._over.set_exception(broke)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
