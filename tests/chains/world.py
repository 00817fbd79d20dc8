"""A shop whose every effect is counted outside, and runs that can be interrupted anywhere."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from holdfast import Effect, Undo, tool
from holdfast.chains.calls import StepCall
from holdfast.chains.drive import drive
from holdfast.chains.reading import read
from holdfast.chains.writing import written
from holdfast.gateway import Gateway
from holdfast.model.call import Principal
from holdfast.model.contract import Contract
from holdfast.model.errors import Code, NoEffect
from holdfast.model.observation import Observation
from holdfast.model.run import Line, Run, RunState
from holdfast.model.upstream_session import SessionState
from holdfast.ports import Journal, Runs, partner
from holdfast.records.chain import Chain
from holdfast.stores.memory.runs import MemoryRuns
from holdfast.stores.memory.shelf import Shelf
from holdfast.testing import ManualClock
from holdfast.testing import gateway as opened

ADA = Principal(user="ada", agent="bot", scopes=frozenset({"shop:*"}), trust=90)


class Killed(BaseException):
    """The process ends here: nothing catches this."""


class Outside:
    """The world: what was really done, and what is made to fail."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.failing: Counter[str] = Counter()
        """How often each still fails without effect."""

    def do(self, what: str) -> None:
        if self.failing[what] > 0:
            self.failing[what] -= 1
            raise NoEffect(f"{what} is away", Code.DEPENDENCY_UNAVAILABLE)
        self.did.append(what)

    @property
    def standing(self) -> list[str]:
        """What was done and not taken back."""
        left = Counter(one for one in self.did if not one.startswith("un"))
        left.subtract(one.removeprefix("un") for one in self.did if one.startswith("un"))
        return sorted(left.elements())


def shop(world: Outside) -> list[Any]:
    """Five steps, each with what takes it back; nothing takes `tell` back."""
    made = []
    for name in ("reserve", "charge", "pack", "ship", "bill"):
        made += [_doing(world, name), _undoing(world, name)]
    return [*made, _telling(world), _looking(world)]


def _doing(world: Outside, name: str) -> Any:
    async def do(item: str) -> dict[str, str]:
        world.do(name)
        return {"id": f"{name}-{item}"}

    do.__name__ = name
    do.__doc__ = f"Do {name}.\n\nArgs:\n    item: what it is about\n"
    return tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.EXACT,
        scopes=["shop:write"],
        manifest=[(name, "CREATE", "one")],
        idempotency="none",
        compensation={"tool": f"un{name}", "arguments": {"id": "=result.id"}},
    )(do)


def _undoing(world: Outside, name: str) -> Any:
    async def undo(id: str) -> str:
        world.do(f"un{name}")
        return id

    undo.__name__ = f"un{name}"
    undo.__doc__ = f"Take {name} back.\n\nArgs:\n    id: what to take back\n"
    return tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.EXACT,
        scopes=["shop:write"],
        manifest=[(name, "DELETE", "one")],
        idempotency="none",
    )(undo)


def _telling(world: Outside) -> Any:
    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.SEMANTIC,
        scopes=["shop:write"],
        manifest=[("mail", "CREATE", "one")],
        idempotency="none",
    )
    async def tell(item: str) -> str:
        """Tell the customer.

        Args:
            item: what about
        """
        world.do("tell")
        return item

    return tell


def _looking(world: Outside) -> Any:
    @tool(effect=Effect.READ_ONLY, scopes=["shop:read"])
    async def look(item: str) -> dict[str, int]:
        """Look something up.

        Args:
            item: what about
        """
        world.do("look")
        return {"price": world.did.count("look")}

    return look


class GatewayCalls:
    """Calls of one run through a real gateway, in memory."""

    def __init__(self, gateway: Gateway, by: Principal = ADA) -> None:
        self._gateway = gateway
        self._by = by
        self.stopped: list[str] = []
        self.undone: list[str] = []

    def contract(self, tool: str, version: str | None) -> Contract | None:
        found = next((one for one in self._gateway.tools(self._by) if one.tool.contract.tool == tool), None)
        return None if found is None else found.tool.contract

    async def call(self, wanted: StepCall) -> Observation:
        return await self._gateway.call(wanted.tool, wanted.arguments, principal=self._by, key=wanted.key)

    async def became(self, key: str, tool: str) -> Observation | None:
        return None

    async def arguments_of(self, key: str, tool: str) -> Any:
        return None

    def partner(self, namespace: str, session: str, role: str) -> Contract | None:
        return partner(self._gateway.tools(self._by), namespace, session, role)

    async def roll_back(self, session_id: str, why: str) -> SessionState | None:
        await self._gateway.upstream_sessions.roll_back(self._by.tenant, session_id, why)
        return (await self._gateway.upstream_sessions.look(self._by, session_id)).session.state

    async def taken_back(self, key: str, tool: str, by: str) -> None:
        self.undone.append(key)

    async def stop(self, key: str, tool: str) -> None:
        self.stopped.append(tool)


class Fragile:
    """Drives one run; the process is killed at its `at`-th line, before or after that is written."""

    def __init__(self, runs: Runs, run: Run) -> None:
        self._runs = runs
        self.run = run
        self.at: int | None = None
        self.after = False

    async def lines(self) -> Sequence[Line]:
        return await self._runs.lines(self.run.tenant, self.run.id)

    async def taken_up(self) -> Journal:
        taken = await self._runs.take_up(self.run.tenant, self.run.id)
        assert taken is not None
        self.run = taken
        return _Journal(self, self._runs.journal(taken))

    async def look(self) -> None:
        found = await self._runs.get(self.run.tenant, self.run.id)
        assert found is not None
        self.run = found


class _Journal:
    def __init__(self, fragile: Fragile, journal: Journal) -> None:
        self._fragile = fragile
        self.lines = journal.lines
        self.move = journal.move
        self.cancelled = journal.cancelled
        self._add = journal.add

    async def add(self, line: Line) -> Line:
        fragile = self._fragile
        if fragile.at is not None:
            fragile.at -= 1
            if fragile.at < 0 and not fragile.after:
                raise Killed
        kept = await self._add(line)
        if fragile.at is not None and fragile.at < 0:
            raise Killed
        return kept


class Shop:
    def __init__(self, gateway: Gateway, world: Outside, clock: ManualClock, runs: Runs) -> None:
        self.runs = runs
        self.gateway = gateway
        self.world = world
        self.clock = clock
        self.calls = GatewayCalls(gateway)

    async def begin(self, *steps: dict[str, Any], **said: Any) -> Fragile:
        chain = read({"chain": "order", "steps": list(steps), **said})
        run = Run(
            tenant="default",
            id="run_1",
            chain="order",
            version="1.0.0",
            key="k-1",
            declared=written(chain),
            input={"item": "tea"},
            principal="ada/bot",
            wanted_by={},
        )
        return Fragile(self.runs, await self.runs.begin(run))

    async def drive(self, run: Fragile) -> RunState:
        """As far as it goes, with time passing as it is waited for."""
        journal = await run.taken_up()
        going = asyncio.ensure_future(drive(run.run, journal, self.calls, self.clock))
        try:
            await self.clock.drive(going)
            return await going
        finally:
            await run.look()


@asynccontextmanager
async def shopping(*more: Any) -> AsyncIterator[Shop]:
    world, clock = Outside(), ManualClock()
    async with opened(*shop(world), *more, namespace="shop", clock=clock) as gateway:
        yield Shop(gateway, world, clock, MemoryRuns(Shelf(Chain("tests")), clock))


def do(name: str, **said: Any) -> dict[str, Any]:
    return {"id": name, "tool": f"shop.{name}", "with": {"item": "=input.item"}, **said}
