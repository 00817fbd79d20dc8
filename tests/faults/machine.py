"""Several workers on one database, in one process, that die and stop when a test says so.

Time stands still until it is advanced, for leases too. A dead worker writes nothing any more and acts no
more; what it had asked of the database may or may not have arrived, as with a real one. A stopped worker does
nothing until it is woken, and then goes on as if nothing had happened.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from holdfast import Gateway
from holdfast.execution.runtime import Runtime
from holdfast.gateway.wiring import Store
from holdfast.model import defaults
from holdfast.model.function import FunctionTool
from holdfast.ports import Attempt, Ledger, Ports, Upstream
from holdfast.records.chain import Chain
from holdfast.stores.keyring import Keyring
from holdfast.stores.memory.approvals import MemoryApprovals
from holdfast.stores.memory.controls import MemoryControls
from holdfast.stores.memory.ledger import MemoryLedger
from holdfast.stores.memory.shelf import Shelf
from holdfast.stores.memory.store import MemoryStore
from holdfast.system import RandomIds
from holdfast.testing import ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.stored import durable, place

T = TypeVar("T")

WRITES = frozenset({"begin", "finish", "refuse", "settle", "forget"})


class ManualBoot:
    """The time since the machine was started, which the wall clock cannot touch."""

    id = "boot-1"

    def __init__(self, clock: ManualClock) -> None:
        self.now = clock.monotonic


class Life:
    """Of one worker: running, stopped or over."""

    def __init__(self, name: str, lives: "dict[str, Life]") -> None:
        self.id = name
        self.dead = False
        self.busy = 0
        self.strokes = 0
        """How often it has touched the outside world."""
        self.going_on = asyncio.Event()
        self.going_on.set()
        self._lives = lives

    def leads(self) -> bool:
        return True

    def alive(self, worker: str) -> bool:
        return worker in self._lives and not self._lives[worker].dead

    async def do(self, work: Callable[..., Awaitable[T]], *arguments: Any, **named: Any) -> T:
        """Do something to the outside world, if still alive; hear of it, if still alive then."""
        answer = await asyncio.shield(self._begun(work, *arguments, **named))
        await self.living()
        return answer

    async def _begun(self, work: Callable[..., Awaitable[T]], *arguments: Any, **named: Any) -> T:
        await self.living()
        return await self.busied(work(*arguments, **named))

    async def busied(self, work: Awaitable[T]) -> T:
        """Wait for the outside world; nobody takes this for quiet."""
        self.busy += 1
        self.strokes += 1
        try:
            return await work
        finally:
            self.busy -= 1
            self.strokes += 1

    async def living(self) -> None:
        """Waits while the worker is stopped, and for ever once it is dead."""
        await self.going_on.wait()
        if self.dead:
            await asyncio.Event().wait()


class MortalLedger:
    def __init__(self, ledger: Ledger, life: Life) -> None:
        self._ledger = ledger
        self._life = life

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._ledger, name)
        if name == "wait" or not inspect.iscoroutinefunction(inner):
            return inner  # who waits for another worker waits for time, or for the test

        async def asked(*arguments: Any, **named: Any) -> Any:
            if name in WRITES:
                return await self._life.do(inner, *arguments, **named)
            return await self._life.busied(inner(*arguments, **named))

        return asked


class MortalUpstream:
    def __init__(self, upstream: Upstream, life: Life) -> None:
        self._upstream = upstream
        self._life = life
        self.concurrency = upstream.concurrency
        self.personal = False

    async def invoke(self, attempt: Attempt) -> Any:
        await self._life.living()
        return await self._upstream.invoke(attempt)

    async def close(self) -> None:
        await self._upstream.close()


class Worker:
    def __init__(self, gateway: Gateway, life: Life) -> None:
        self.gateway = gateway
        self.life = life

    def kill(self) -> None:
        self.life.dead = True

    def stop(self) -> None:
        self.life.going_on.clear()

    def wake(self) -> None:
        self.life.going_on.set()

    @property
    def running(self) -> bool:
        return not self.life.dead and self.life.going_on.is_set()


class Shared(MemoryStore):
    """What several workers would find in one database, without the database."""

    def __init__(self, shelf: Shelf, secrets: Keyring, around: "Machine", life: Life) -> None:
        super().__init__(around.clock, boot=around.boot, workers=life)
        self.secrets = secrets
        self.ledger = MemoryLedger(shelf, secrets, around.clock, around.boot, life)
        self.approvals = MemoryApprovals(shelf, around.clock, defaults.APPROVAL_S, life)
        self.controls = MemoryControls(shelf, around.clock)


class Machine:
    """Its workers share a database in the folder, or memory."""

    def __init__(
        self, kind: str, folder: Path, tools: Callable[[Life], list[FunctionTool[..., Any]]]
    ) -> None:
        self.clock = ManualClock()
        self.boot = ManualBoot(self.clock)
        self.lives: dict[str, Life] = {}
        self._kind, self._folder = kind, folder
        self._shelf, self._secrets = Shelf(Chain("machine")), Keyring()
        self._tools = tools
        self._open = AsyncExitStack()

    async def open(self) -> None:
        await self._open.enter_async_context(place(self._kind, self._folder))

    async def start_worker(self) -> Worker:
        life = Life(f"w{len(self.lives) + 1}", self.lives)
        self.lives[life.id] = life
        upstreams = {"faults": FunctionUpstream(self._tools(life))}

        def adapt(ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
            ledger = cast(Ledger, MortalLedger(ports.ledger, life))
            mortal = {name: MortalUpstream(one, life) for name, one in runtime.upstreams.items()}
            return replace(ports, ledger=ledger), replace(runtime, upstreams=mortal)

        gateway = Gateway.assemble(
            {}, await self._store(life), upstreams, clock=self.clock, ids=RandomIds(), adapt=adapt
        )
        return Worker(gateway, life)

    async def _store(self, life: Life) -> Store:
        if self._kind == "memory":
            return Shared(self._shelf, self._secrets, self, life)
        store = durable(self._kind, self._folder, self.clock, boot=self.boot, workers=life)
        return await self._open.enter_async_context(store)

    async def quiet(self) -> None:
        """Until everybody waits for something a test must do, or for time."""
        while True:
            before = self._strokes()
            await self.clock.quiet()
            if not any(life.busy for life in self.lives.values()) and self._strokes() == before:
                return
            await asyncio.sleep(0)  # the store writes in a thread of its own

    def _strokes(self) -> int:
        return sum(life.strokes for life in self.lives.values())

    async def pass_time(self, seconds: float) -> None:
        await self.quiet()
        await self.clock.advance(seconds)
        await self.quiet()

    async def close(self) -> None:
        for life in self.lives.values():
            life.dead = True
        await self._open.aclose()


@asynccontextmanager
async def machine(
    kind: str, folder: Path, tools: Callable[[Life], list[FunctionTool[..., Any]]]
) -> AsyncIterator[Machine]:
    made = Machine(kind, folder, tools)
    try:
        await made.open()
        yield made
    finally:
        await made.close()
