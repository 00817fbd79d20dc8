"""Gateways that may be opened one after the other on what the one before left: other people, other rules."""

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast import Gateway
from holdfast.model.function import toolset
from holdfast.records.chain import Record
from holdfast.stores.memory import MemoryStore
from holdfast.system import RandomIds
from holdfast.testing import ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.stored import durable, records

OpenAgain = Callable[..., AbstractAsyncContextManager[Gateway]]


class House:
    """One store and one clock, and as many gateways around them as a test wants."""

    def __init__(self, kind: str, folder: Path, clock: ManualClock | None = None) -> None:
        self.clock = clock or ManualClock()
        self._kind, self._folder = kind, folder
        self._memory = MemoryStore(self.clock)

    @asynccontextmanager
    async def gateway(
        self, *sources: object, config: Mapping[str, Any] | None = None, **ports: Any
    ) -> AsyncIterator[Gateway]:
        tools = [t for source in sources for t in toolset(source)]
        upstreams = {"test": FunctionUpstream(tools)}
        async with AsyncExitStack() as stack:
            kept: Any = self._memory
            if self._kind != "memory":
                store = durable(self._kind, self._folder, self.clock, workers=AllAlive())
                kept = await stack.enter_async_context(store)
            opened = Gateway.assemble(
                config or {}, kept, upstreams, clock=self.clock, ids=RandomIds(), **ports
            )
            try:
                yield opened
            finally:
                await opened.close()

    def records(self) -> list[Record]:
        return self._memory.records if self._kind == "memory" else records(self._kind, self._folder)

    def alarms(self) -> list[Record]:
        return [record for record in self.records() if record.kind == "security"]


class AllAlive:
    """Each opening is a worker of its own, and none of them dies."""

    def __init__(self) -> None:
        self.id = f"w_{secrets.token_hex(4)}"

    def leads(self) -> bool:
        return True

    def alive(self, worker: str) -> bool:
        return bool(worker)
