"""A client that knows no keys, a shelf it puts things on, and gateways that come and go around one store."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from holdfast import Effect, Floor, Gateway, NoEffect, Observation, Principal, tool
from holdfast.execution.runtime import Runtime
from holdfast.model.answer import Answer
from holdfast.model.errors import StoreError
from holdfast.model.function import toolset
from holdfast.ports import Attempt, Ledger, Ports
from holdfast.stores.memory import MemoryStore
from holdfast.testing import ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.lifecycle.world import ANA, WRITE
from tests.stored import durable

_REQUESTS = itertools.count(1)
_WORKERS = itertools.count(1)


@dataclass
class Shelf:
    """What was put on it, in order. `mood` is what the next put does."""

    items: list[str] = field(default_factory=list)
    mood: str = "well"
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    @tool(effect=Effect.READ_ONLY)
    async def look(self, item: str) -> dict[str, int]:
        """Count an item."""
        return {"count": self.items.count(item)}

    @tool(**WRITE)
    async def put(self, item: str) -> Any:
        """Put something on the shelf."""
        return await self._put(item)

    @tool(**WRITE)
    async def push(self, item: str) -> Any:
        """Put something on the shelf by another name."""
        return await self._put(item)

    @tool(
        **WRITE,
        probe={
            "read": {"tool": "look", "arguments": {"item": "=args.item"}},
            "committed": "state.count > 0",
            "result": "{'count': state.count}",
            "settle_after_s": 0.0,
        },
    )
    async def place(self, item: str) -> Any:
        """Put something on the shelf where it can be seen."""
        return await self._put(item)

    @tool(**WRITE, floor=Floor.OPERATOR)
    async def lock_up(self, item: str) -> Any:
        """Put something on the shelf that people must agree to."""
        return await self._put(item)

    async def _put(self, item: str) -> Any:
        if self.mood == "no_effect":
            raise NoEffect("the shelf is closed")
        if self.mood == "asks":
            return {"unfinished": True}
        self.entered.set()
        if self.mood == "wait":
            await self.release.wait()
        self.items.append(item)
        if self.mood == "lose":
            raise ConnectionError("the answer got lost")
        if self.mood == "says_no":
            return {"error": "it fell off"}
        return {"count": len(self.items)}


class Protocol(FunctionUpstream):
    """The shelf behind a protocol whose answers can say that they are no success."""

    async def invoke(self, attempt: Attempt) -> Any:
        said = await super().invoke(attempt)
        error, unfinished = said.get("error"), said.get("unfinished", False)
        return Answer(data={}, error=error, unfinished=unfinished) if error or unfinished else said


async def ask(
    gateway: Gateway, item: str = "milk", *, by: Principal = ANA, to: str = "put", **details: Any
) -> Observation:
    """One request of a client that knows no keys: the protocol gives it a fresh one."""
    made = {"request_key": f"request-{next(_REQUESTS)}", **details}
    return await gateway.call(f"test.{to}", {"item": item}, principal=by, **made)


async def got(gateway: Gateway, item: str = "milk", **how: Any) -> Observation:
    """One request whose answer reaches the client."""
    seen = await ask(gateway, item, **how)
    await gateway.delivered(how.get("by", ANA), seen.call_id)
    return seen


async def lost(gateway: Gateway, item: str = "milk", **how: Any) -> Observation:
    """One request whose answer reaches nobody."""
    seen = await ask(gateway, item, **how)
    await gateway.abandoned(how.get("by", ANA), seen.call_id)
    return seen


class Worker:
    """A process that lives until somebody kills it."""

    dead: set[str] = set()  # noqa: RUF012

    def __init__(self) -> None:
        self.id = f"w_{next(_WORKERS)}"

    def leads(self) -> bool:
        return True

    def alive(self, worker: str) -> bool:
        return bool(worker) and worker not in self.dead


class Heard:
    """A ledger that tells what it was asked about who waits."""

    def __init__(self, ledger: Ledger, asked: list[str], broken: bool = False) -> None:
        self._ledger, self._asked, self._broken = ledger, asked, broken

    def __getattr__(self, name: str) -> Any:
        if name in ("alike", "attend", "leave"):
            self._asked.append(name)
            if name == "leave" and self._broken:
                return self._full
        return getattr(self._ledger, name)

    async def _full(self, *_: Any, **__: Any) -> None:
        raise StoreError("the disk is full")


class House:
    """One store and one clock; every gateway opened on it is a process of its own."""

    def __init__(self, kind: str, folder: Path, shelf: Shelf) -> None:
        self.clock = ManualClock()
        self._shelf = shelf
        self._kind, self._folder = kind, folder
        self._memory = MemoryStore(self.clock)

    @asynccontextmanager
    async def gateway(
        self, config: Mapping[str, Any] | None = None, ledger: Callable[[Ledger], object] | None = None
    ) -> AsyncIterator[Gateway]:
        worker = Worker()
        async with AsyncExitStack() as stack:
            kept: Any = self._memory
            if self._kind != "memory":
                store = durable(self._kind, self._folder, self.clock, workers=worker)
                kept = await stack.enter_async_context(store)
            upstreams = {"test": Protocol(list(toolset(self._shelf)))}

            def adapt(ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
                changed = ports.ledger if ledger is None else cast(Ledger, ledger(ports.ledger))
                return replace(ports, ledger=changed), runtime

            ports = {"clock": self.clock, "ids": _Ids(), "adapt": adapt}
            opened = Gateway.assemble(config or {}, kept, upstreams, **ports)
            try:
                yield opened
            finally:
                await opened.close()
                Worker.dead.add(worker.id)


class _Ids:
    """Names that no other gateway of this run gives."""

    _count = itertools.count(1)

    def call(self) -> str:
        return f"call_{next(self._count):09d}"

    def nonce(self) -> str:
        return f"nonce{next(self._count):09d}"

    def trace(self) -> str:
        return f"{next(self._count):032x}"
