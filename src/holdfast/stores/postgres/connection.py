"""How is the server reached, how long may anybody wait for it, and what does its silence mean?"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

import asyncpg

from holdfast.model.errors import StoreError

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

CONNECT_S = 5.0
STATEMENT_S = 15.0
"""No statement runs longer; nor does anybody wait longer for another transaction's lock."""
PATIENCE_S = 10.0
"""How long a write waits for a server that is away before it is given up; nothing of it was kept then."""
READ_PATIENCE_S = 5.0
AWAY_S = 0.5
"""How long anybody waits for a server that is known to be away, unless an outcome is to be written."""
AGAIN_S = 0.05
"""The pause before the server is tried again; it doubles up to half a second."""

SETTINGS = {
    "application_name": "holdfast",
    "search_path": "holdfast",
    "statement_timeout": f"{STATEMENT_S:.0f}s",
    "lock_timeout": f"{PATIENCE_S:.0f}s",
    # A process that was stopped in the middle of a transaction must not keep the others out.
    "idle_in_transaction_session_timeout": "5s",
    # A process that is merely stopped goes on answering these; a machine that is gone does not.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    # Where an answer is on its way keepalives do not run, and the kernel would try for a quarter of an hour.
    "tcp_user_timeout": "60000",
    "standard_conforming_strings": "on",  # literals are quoted for it
    "jit": "off",
}

LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TransactionTimeoutError,
    asyncpg.TooManyConnectionsError,
    OSError,
    TimeoutError,
)
"""The connection is gone, or as good as gone: whatever it was doing is over, or its answer never comes."""
CONFLICTS = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.UniqueViolationError,
)
"""Two transactions met; the one that lost wrote nothing and is run again."""


async def connect(
    url: str, timeout_s: float = CONNECT_S, settings: Mapping[str, str] | None = None
) -> Connection:
    """A connection of our own; raises what is in LOST, or StoreError for what trying again cannot mend."""
    try:
        return await asyncpg.connect(
            url,
            timeout=timeout_s,
            command_timeout=STATEMENT_S + 5,
            statement_cache_size=500,
            max_cacheable_statement_size=64 * 1024,
            server_settings={**SETTINGS, **(settings or {})},
        )
    except LOST:
        raise
    except (asyncpg.PostgresError, ValueError) as error:
        raise StoreError(f"the database cannot be opened: {error}") from error


async def hang_up(connection: Connection) -> None:
    """Close a connection, and never wait long for it."""
    try:
        await connection.close(timeout=1.0)
    except LOST:
        connection.terminate()


class Patience:
    """Tries until it works or the time is up."""

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._end = monotonic() + seconds
        self._seconds = seconds
        self._pause = AGAIN_S

    @property
    def left(self) -> float:
        return self._end - self._monotonic()

    async def wait(self, error: BaseException) -> None:
        """Before the next try; raises StoreError when there is no time for one."""
        if self.left <= self._pause:
            raise StoreError(
                f"the database was not to be had for {self._seconds:g} s: {describe(error)}"
            ) from error
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, 0.5)


def describe(error: BaseException) -> str:
    return str(error) or type(error).__name__
