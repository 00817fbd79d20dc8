"""Under which name does a process drive chains, and whose name is nobody's any more?

A process works under its own name, so that a process which only slept takes it up again, and nobody ever
works under the name of another one. A name is on the list until somebody has taken over what was left under
it: what is under way under a name that is not there is under way nowhere.
"""

from holdfast.model import defaults
from holdfast.ports import Clock
from holdfast.stores.sql.engine import Transaction, Writer

ALL = "SELECT slot FROM chain_slot WHERE tenant = '*'"
DEAD = "SELECT slot FROM chain_slot WHERE tenant = '*' AND slot <> ? AND lease_until <= ? ORDER BY slot"
PUT = """
INSERT INTO chain_slot VALUES ('*', ?, ?, ?)
ON CONFLICT (tenant, slot) DO UPDATE SET owner = excluded.owner, lease_until = excluded.lease_until
"""
KEEP = "UPDATE chain_slot SET lease_until = ? WHERE tenant = '*' AND slot = ? AND owner = slot"
TAKE = """
UPDATE chain_slot SET owner = ?, lease_until = ? WHERE tenant = '*' AND slot = ? AND lease_until <= ?
"""
GONE = "DELETE FROM chain_slot WHERE tenant = '*' AND slot = ? AND owner = ?"

KEPT_FOR = 2 / 3
"""Of the lease: with more than this left of it, it is not renewed."""


class SqlSlots:
    """Of one process."""

    def __init__(self, writer: Writer, clock: Clock, worker: str) -> None:
        self._writer = writer
        self._clock = clock
        self._worker = worker
        self._kept_until = 0.0

    async def take(self) -> str:
        self._kept_until = self._until
        await self._writer.submit("*", True, _put, self._worker, self._kept_until)
        return self._worker

    async def keep(self) -> bool:
        """False where somebody took over meanwhile what was under way here; it is ours again from now on."""
        if self._kept_until - self._clock.now() > KEPT_FOR * defaults.CHAIN_LEASE_S:
            return (
                True  # nobody takes over what is leased: what waits is looked at when something was written
            )
        until = self._until
        ours = await self._writer.submit("*", False, _keep, self._worker, until)
        self._kept_until = until
        return ours

    async def dead(self) -> list[str]:
        """For us to take over; where we die over it, they are dead again."""
        now = self._clock.now()
        return await self._writer.submit("*", True, _dead, self._worker, now, self._until)

    async def taken_over(self, slot: str) -> None:
        await self._writer.submit("*", True, _gone, slot, self._worker)

    async def all(self) -> frozenset[str]:
        return await self._writer.submit("*", False, _all)

    async def leave(self) -> None:
        """Whatever is left under our name is for the next one to take over, at once."""
        self._kept_until = 0.0
        await self._writer.submit("*", True, _keep, self._worker, 0.0)

    @property
    def _until(self) -> float:
        return self._clock.now() + defaults.CHAIN_LEASE_S


async def _put(transaction: Transaction, worker: str, until: float) -> None:
    await transaction.run(PUT, (worker, worker, until))


async def _keep(transaction: Transaction, worker: str, until: float) -> bool:
    if await transaction.run(KEEP, (until, worker)):
        return True
    if until:
        await transaction.run(PUT, (worker, worker, until))
    return False


async def _dead(transaction: Transaction, worker: str, now: float, until: float) -> list[str]:
    over = [str(slot) for (slot,) in await transaction.all(DEAD, (worker, now))]
    return [slot for slot in over if await transaction.run(TAKE, (worker, until, slot, now))]


async def _gone(transaction: Transaction, slot: str, worker: str) -> None:
    await transaction.run(GONE, (slot, worker))


async def _all(transaction: Transaction) -> frozenset[str]:
    return frozenset(str(slot) for (slot,) in await transaction.all(ALL))
