"""What happened elsewhere? One connection that listens, tells that this process is alive, and asks the time.

Bells make what others did felt at once; nothing depends on them, for everything is looked for now and then as
well. Claims obey halts and policies by looking themselves.
"""

import asyncio
import hashlib
import logging
import platform
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import asyncpg

from holdfast.model.errors import StoreError
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.timeout import timeout
from holdfast.stores.boot import elapsed
from holdfast.stores.postgres import roll
from holdfast.stores.postgres.clock import DatabaseClock
from holdfast.stores.postgres.connection import (
    LOST,
    Connection,
    Patience,
    connect,
    describe,
    hang_up,
)
from holdfast.stores.postgres.roll import Roll, Seen
from holdfast.stores.postgres.transaction import CHANNEL

log = logging.getLogger(__name__)

WANT, ENDED = "want", "ended"
MOST_WANTED = 10_000
BEAT_S = 3.0
"""A heartbeat that takes longer has failed; well within the time after which others take us for dead."""
HURRY_S = 0.2
"""How soon a server that is away is tried again."""
RING_S = 1.0
"""Nobody who is about to wait is kept longer by the bell itself."""


class Bell:
    def __init__(self, url: str, roll: Roll, clock: DatabaseClock | None) -> None:
        self._url = url
        self._roll = roll
        self._clock = clock
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None
        self._wanted: dict[str, None] = {}  # in the order they came
        self._ringing = 0
        self._hurry = asyncio.Event()
        self._well = True
        self._beaten_at = float("-inf")
        self._next: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.rung: Callable[[str], None] = lambda what: None
        """Told of everything that was rung for, but for the ends of operations."""
        self.ended: Callable[[str], None] = lambda name: None
        """Told of operations that came to their end elsewhere."""

    async def open(self, patience: Patience) -> None:
        while True:
            try:
                await self._beat()
                break
            except LOST as error:
                await self._lose()
                await patience.wait(error)
            except asyncpg.PostgresError as error:
                await self._lose()
                raise StoreError(f"the database cannot be opened: {describe(error)}") from error
        self._beating = asyncio.create_task(self._keep_beating(), name="holdfast-bell")

    async def close(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            with suppress(asyncio.CancelledError):
                await self._beating
        if self._connection is not None:
            with suppress(asyncpg.PostgresError, *LOST):
                async with timeout(RING_S), self._turn:
                    await self._connection.execute(roll.LEAVE, self._roll.id)
            await hang_up(self._connection)

    @property
    def away(self) -> bool:
        """The last heartbeat failed."""
        return not self._well

    @property
    def idle(self) -> bool:
        """No bell is being rung."""
        return not self._ringing

    # -- waiting for operations --------------------------------------------------

    def name(self, ref: OperationRef) -> str:
        return name_of(ref)

    async def want(self, operation: Operation) -> None:
        """Ask the worker that runs an operation to ring when it ends."""
        await self._ring(f"{WANT} {operation.owner} {name_of(operation.ref)}")

    def tell(self, ref: OperationRef) -> None:
        """An operation has ended here: ring if anybody asked for it. Not part of any commit, which would make
        all commits of the whole database queue up for the bell.
        """
        name = name_of(ref) if self._wanted else ""
        if name in self._wanted:
            del self._wanted[name]
            task = asyncio.ensure_future(self._ring(f"{ENDED} {name}"))
            task.add_done_callback(_told)

    async def _ring(self, what: str) -> None:
        self._ringing += 1
        try:
            async with timeout(RING_S), self._turn:
                if self._connection is not None:  # else whoever waits looks again by and by
                    await self._connection.execute("SELECT pg_notify($1, $2)", CHANNEL, what)
        except (asyncpg.PostgresError, *LOST) as error:
            log.debug("a bell was not rung: %s", describe(error))
        finally:
            self._ringing -= 1

    def _heard(self, *said: Any) -> None:
        what = str(said[-1])
        kind, _, rest = what.partition(" ")
        if kind == ENDED:
            self.ended(rest)
        elif kind == WANT:
            owner, _, name = rest.partition(" ")
            if owner == self._roll.id:
                self._want(name)
        else:
            self.rung(what)

    def _want(self, name: str) -> None:
        """Some are asked for just after they have ended: nobody comes for those, and the oldest go."""
        self._wanted[name] = None
        if len(self._wanted) > MOST_WANTED:
            del self._wanted[next(iter(self._wanted))]

    # -- being alive -------------------------------------------------------------

    async def refreshed(self, since: float) -> None:
        """Until the last heartbeat began after `since`, and not long ago: the time and our place on the roll
        are known anew.
        """
        while self._beaten_at <= since or elapsed() - self._beaten_at > roll.GRACE_S:
            self._hurry.set()
            beat = self._next
            await asyncio.shield(beat)

    async def _keep_beating(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with timeout(self._roll.heartbeat_s if self._well else HURRY_S):
                    await self._hurry.wait()
            try:
                await self._beat()
            except (asyncpg.PostgresError, StoreError, *LOST) as error:
                if self._well:
                    log.error("the database is away: %s", describe(error))
                self._well = False
                if isinstance(error, LOST):  # a server that refuses, as with a full disk, leaves us our lock
                    await self._lose()
            else:
                if not self._well:
                    log.warning("the database is back")
                self._well = True

    async def _beat(self) -> None:
        self._hurry.clear()
        began = elapsed()
        await self._tell_and_look()
        self._beaten_at = began
        if not self._next.done():
            self._next.set_result(None)
        self._next = asyncio.get_running_loop().create_future()

    async def _tell_and_look(self) -> None:
        async with timeout(BEAT_S), self._turn:
            connection = await self._registered()
            if self._clock is not None:
                await self._clock.measure(connection)
            asked_at = elapsed()
            await connection.execute(roll.REGISTER, self._roll.id, platform.node())
            held = {lock for (lock,) in await connection.fetch(roll.HELD, roll.LOCKS)}
            rows = await connection.fetch(roll.LOOK)
            seen = {worker: Seen(seen_at, roll.lock_of(worker) in held) for worker, seen_at in rows}
            gone = self._roll.look(seen, asked_at)
            if gone:
                await connection.execute(roll.FORGET, gone)

    async def _registered(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._roll.lost()
            self._connection = None
            connection = await connect(self._url, settings={"holdfast.tenant": "*"})
            try:
                await connection.execute(
                    "SELECT pg_advisory_lock_shared($1::int, $2::int)",
                    roll.LOCKS,
                    roll.lock_of(self._roll.id),
                )
                await connection.add_listener(CHANNEL, self._heard)
            except BaseException:
                connection.terminate()
                raise
            self._connection = connection
        return self._connection

    async def _lose(self) -> None:
        self._roll.lost()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()


def name_of(ref: OperationRef) -> str:
    """An operation's name for everybody to hear: it tells nothing of whose it is."""
    return hashlib.blake2s("\0".join(ref).encode(), digest_size=16).hexdigest()


def _told(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a bell was not rung: %s", error)
