"""What time is it? The database's time, whatever the clocks of the machines around it say (IDM-8).

The difference between the server's clock and this machine's monotonic one is measured again and again; in
between, time goes on as fast as it does here. Nobody's wall clock is looked at.
"""

import logging

from holdfast.ports import Clock
from holdfast.stores.clock import Passing
from holdfast.stores.postgres.connection import Connection

log = logging.getLogger(__name__)

WORTH_TELLING_S = 2.0
DOUBTFUL_S = 0.5
_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"


class DatabaseClock(Passing):
    def __init__(self, machine: Clock) -> None:
        super().__init__(machine)
        self._ahead: float | None = None

    async def measure(self, connection: Connection) -> None:
        """The server looked at its clock somewhere between the question and the answer."""
        asked = self._machine.monotonic()
        said = await connection.fetchval(_NOW)
        answered = self._machine.monotonic()
        if self._ahead is not None and answered - asked > DOUBTFUL_S:
            return  # too vague to be better than what is known
        ahead = said - (asked + answered) / 2
        if self._ahead is not None and abs(ahead - self._ahead) > WORTH_TELLING_S:
            log.warning(
                "the database's clock moved by %.1f s; leases and windows move with it", ahead - self._ahead
            )
        self._ahead = ahead

    def now(self) -> float:
        if self._ahead is None:
            raise RuntimeError("the database was not asked for the time yet")
        return self._machine.monotonic() + self._ahead


class DatabaseBoot:
    """Time since a start that all machines share: the server's clock has no other."""

    id = "database"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.now()
