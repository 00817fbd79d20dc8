"""What does a scenario have to work with? One gateway, its upstream, clients, and a name for every key."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from holdfast_faults.adapter import Adapter, Told
from holdfast_faults.client import Agent
from holdfast_faults.clock import FalseClock
from holdfast_faults.fleet import Process
from holdfast_faults.operation import Carrier, Operation, Patience
from holdfast_faults.stage import Point, Stage

ARRIVING_S = 4.0
"""How long calls get to reach the upstream: below the time a client waits for an answer."""


@dataclass(kw_only=True)
class Arena:
    adapter: Adapter
    processes: Sequence[Process]
    """The replicas; the first is the one that faults happen to."""
    agents: Sequence[Agent]
    stage: Stage
    clock: FalseClock
    operations: Sequence[Operation]
    patience: Patience
    stop_s: float
    struck: int = 0
    """Keys that were in mid-call when the fault came."""
    _sent: asyncio.Condition = field(default_factory=asyncio.Condition)
    _background: set["asyncio.Task[None]"] = field(default_factory=set)

    @property
    def keys(self) -> list[str]:
        return [operation.key for operation in self.operations]

    def carrier(self, number: int) -> Carrier:
        agent = self.agents[number % len(self.agents)]
        return Carrier(agent, self.adapter, self.patience, sent=self._tell, up_since=self._up_since)

    def carry_out(self, number: int, *, first: int = 0, by: int | None = None) -> "asyncio.Task[Told | None]":
        """An agent begins to carry the operation out, and goes on until it knows how it ended."""
        carrier = self.carrier(number if by is None else by)
        return asyncio.create_task(carrier.carry_out(self.operations[number], first=first))

    def everybody(self, *, by: int = 0) -> "list[asyncio.Task[Told | None]]":
        """All operations at once."""
        return [self.carry_out(number, by=number + by) for number in range(len(self.operations))]

    @contextmanager
    def in_mid_call(self) -> Iterator[None]:
        """Half of the calls are held before their effect, half after it; at the end all go on."""
        for number, key in enumerate(self.keys):
            self.stage.hold(key, Point.AFTER if number % 2 else Point.BEFORE)
        try:
            yield
        finally:
            self.stage.release()

    async def all_under_way(self) -> None:
        self.struck = await self.stage.all_arrived(self.keys, ARRIVING_S)

    async def delivered(self, operation: Operation, times: int) -> None:
        """Returns once the operation was sent so many times."""
        async with self._sent:
            await self._sent.wait_for(lambda: operation.deliveries >= times)

    def _up_since(self) -> float:
        return max(process.up_since for process in self.processes)

    def _tell(self) -> None:
        async def tell() -> None:
            async with self._sent:
                self._sent.notify_all()

        task = asyncio.create_task(tell())
        self._background.add(task)
        task.add_done_callback(self._background.discard)
