"""What happens to effects while the database itself stops without warning, again and again?

No gateway dies here, though some sleep through a restart and know nothing of it. Every stop of the database
is as good as a crash: clients are cut off in the middle of whatever they do, commits whose answer is lost
included, and the next start has to recover; sometimes it is stopped in the middle of that as well.
"""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from time import monotonic
from typing import Any

from tests.postgres import Postgres
from tests.soak.effects import Effects
from tests.soak.ledger import LedgerDatabase
from tests.soak.storm import PROBED, Plan, Storm, delivery_of

CALM_S = 30.0
"""How long after the last restart everything must have come to an end."""
ASKING_S = 120.0


class Blackouts(Storm):
    """`plan.kills` counts stops of the database."""

    breather_s = 0.0  # nobody starts who needs the processor

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        effects: Effects,
        ledger: LedgerDatabase,
        server: Postgres,
        every_s: float,
    ) -> None:
        super().__init__(plan, folder, effects, ledger)
        self._server = server
        self._every_s = every_s
        self._back_at = monotonic()

    def _blows(self) -> list[Coroutine[Any, Any, None]]:
        return [self._cutter(), self._stopper()]

    async def _cutter(self) -> None:
        while self._goes_on():
            await asyncio.sleep(self._every_s)  # the time between two stops is the test
            self.figures.calls_cut += await self._ledger.all_in_flight()
            await asyncio.to_thread(self._server.stop_immediate)
            self.figures.blackouts += 1
            if self.figures.blackouts % 2 == 0:
                again = await asyncio.to_thread(self._server.start_and_stop_immediate)
                self.figures.recoveries_cut += again
            await asyncio.to_thread(self._server.start)
            self._back_at = monotonic()

    def _goes_on(self) -> bool:
        figures, plan = self.figures, self.plan
        asleep = figures.stops < plan.stops or any(server.stopped for server in self._servers)
        return asleep or figures.blackouts < plan.kills or figures.keys < plan.keys

    async def _watch(self) -> None:
        """What is stuck is counted in the end: a lease may well end while nobody can write."""

    async def _calm(self) -> None:
        end = self._back_at + CALM_S
        while await self._ledger.unsettled(PROBED) and monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # a poll of the database, with a deadline
        self.figures.stuck = await self._ledger.unsettled(PROBED)
        await self._ask_again()

    async def _ask_again(self) -> None:
        """Every key once more: whoever comes back gets the last word, the one that was told before."""
        for number in range(self.figures.keys):
            self._deliver(delivery_of(number))
        async with asyncio.timeout(ASKING_S), self._clients(), self._progress:
            await self._progress.wait_for(lambda: self._open == 0)
