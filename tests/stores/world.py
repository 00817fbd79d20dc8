"""One store of each kind, on a clock, a machine and neighbours that obey the test."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from holdfast.model.approval import Approval, Need
from holdfast.model.call import Call, Principal
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.vocabulary import State
from holdfast.ports import (
    Approvals,
    Begun,
    Controls,
    Denied,
    Labels,
    Ledger,
    Runs,
    Secrets,
    Settlement,
    Taken,
)
from holdfast.records.chain import Record
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite.spool import Spools
from holdfast.testing import ManualClock
from tests.stored import ALL, place, records, stored
from tests.stores.calls import observed


class ManualBoot:
    """A machine whose time is the clock's until it is started anew."""

    def __init__(self, clock: ManualClock) -> None:
        self.id = "boot-1"
        self._clock = clock
        self._started = -1000.0

    def now(self) -> float:
        return self._clock.monotonic() - self._started

    def restart(self) -> None:
        self.id += "+"
        self._started = self._clock.monotonic()


class ManualWorkers:
    """Everybody lives until the test says otherwise."""

    def __init__(self, id: str = "w_test") -> None:
        self.id = id
        self.dead: set[str] = set()

    def leads(self) -> bool:
        return True

    def alive(self, worker: str) -> bool:
        return bool(worker) and worker not in self.dead


@dataclass(frozen=True, slots=True)
class World:
    ledger: Ledger
    approvals: Approvals
    controls: Controls
    labels: Labels
    runs: Runs
    secrets: Secrets
    clock: ManualClock
    boot: ManualBoot
    workers: ManualWorkers
    records: Callable[[], list[Record]]

    async def claim(self, call: Call) -> Operation:
        """Begin a call that must get its claim, as the claim gate does."""
        begun = await self.ledger.begin(call)
        assert isinstance(begun, Begun), begun
        assert begun.operation is not None
        call.operation, call.id = begun.operation, begun.operation.call_id
        return begun.operation

    async def refused(self, call: Call) -> Denied:
        denied = await self.ledger.begin(call)
        assert isinstance(denied, Denied), denied
        return denied

    async def taken(self, call: Call) -> Operation:
        taken = await self.ledger.begin(call)
        assert isinstance(taken, Taken), taken
        return taken.operation

    async def end(self, call: Call, state: State) -> bool:
        return await self.ledger.finish(call, observed(call, data={"state": state}), state)

    async def run(self, call: Call, state: State) -> Operation:
        await self.claim(call)
        assert await self.end(call, state)
        return await self.look(call)

    async def look(self, call: Call) -> Operation:
        found = await self.ledger.find(ref_of(call))
        assert found is not None
        return found

    async def settle(self, operation: Operation, state: State, by: str = "olga") -> bool:
        settlement = Settlement(state=state, observation=None, by=by, note="looked it up")
        return await self.ledger.settle(operation, settlement)

    async def grant(self, call: Call, need: Need | None = None, by: str = "olga") -> Approval:
        asked = await self.approvals.ask(call, need or {"operator": 1}, {"action": "pay"})
        return await self.approvals.decide(asked, Principal(user=by), "operator", True, "fine")

    def kinds(self) -> list[str]:
        return [record.kind for record in self.records()]


def ref_of(call: Call) -> OperationRef:
    assert call.ref is not None
    return call.ref


class Surroundings:
    """The clock, the machine and the neighbours; stores that are compared share them."""

    def __init__(self, worker: str = "w_test") -> None:
        self.clock = ManualClock()
        self.boot = ManualBoot(self.clock)
        self.workers = ManualWorkers(worker)


class Open(Protocol):
    def __call__(
        self, folder: Path, around: Surroundings | None = None
    ) -> AbstractAsyncContextManager[World]: ...


@asynccontextmanager
async def open_world(kind: str, folder: Path, around: Surroundings | None = None) -> AsyncIterator[World]:
    """A store of its own, which is gone afterwards."""
    it = around or Surroundings()
    async with (
        place(kind, folder),
        stored(kind, folder, it.clock, boot=it.boot, workers=it.workers) as store,
    ):
        yield World(
            store.ledger,
            store.approvals,
            store.controls,
            store.labels,
            store.runs,
            store.secrets,
            it.clock,
            it.boot,
            it.workers,
            lambda: store.records if isinstance(store, MemoryStore) else records(kind, folder),
        )


def read_records(path: Path) -> Iterator[Record]:
    """Every record in the file, each writer's in order."""
    with closing(sqlite3.connect(path)) as connection:
        for row in connection.execute("SELECT * FROM record ORDER BY writer, seq").fetchall():
            yield Record(*row)


def spooled(path: Path) -> list[Record]:
    """What waits beside the database at `path`, as it is on the disk."""
    spools = Spools(path.with_name(f"{path.name}-workers"))
    return [Record(*row) for writer in spools.writers() for row in spools.all(writer)]


STORES: dict[str, Open] = {kind: partial(open_world, kind) for kind in ALL}
