"""Who sees to it that a run is driven, now or after a crash? One port, two engines."""

from collections.abc import Awaitable, Callable
from typing import Protocol

Drive = Callable[[str, str], Awaitable[None]]
"""Takes a run of a tenant as far as it goes now."""


class Interrupted(Exception):
    """This process stops; the run goes on from here in the next one."""


class Engine(Protocol):
    """Knows tenants, runs and rounds, and nothing of what is in them."""

    async def start(self, drive: Drive) -> None: ...

    async def enqueue(self, tenant: str, run_id: str, number: int) -> None:
        """Have it driven soon, by any process; once for each round, however often it is asked for.

        A round whose driving broke may be asked for again.
        """
        ...

    async def drives(self, tenant: str, run_id: str) -> bool:
        """Whether it is driven somewhere, or about to be."""
        ...

    async def tend(self) -> None:
        """Take over what dead processes had taken up."""
        ...

    async def close(self) -> None: ...
