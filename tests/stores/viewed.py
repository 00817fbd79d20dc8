"""Calls with a whole life in one store, and what is kept for people to look at."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from holdfast.model.call import Call, Principal
from holdfast.model.errors import Code
from holdfast.model.observation import ApprovalRef, Status
from holdfast.model.tool import Tool
from holdfast.model.view import CallRow, Spent, Traffic, Wanted
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Settlement
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sql import sequencer
from holdfast.testing import ManualClock
from tests.stored import Store, place, stored
from tests.stores.calls import ALICE, LOOK, PAY, make_call, observed

ALWAYS = Wanted(limit=1000)
Everything = tuple[list[CallRow], list[Traffic], list[Spent]]


@dataclass
class Viewed:
    """A store, and calls as the gates leave them."""

    store: Store
    clock: ManualClock

    def call(self, key: str | None, tool: Tool = PAY, by: Principal = ALICE, task: str | None = None) -> Call:
        made = make_call(self.clock, key, tool=tool, principal=by)
        made.proposal = made.proposal._replace(task=task)
        return made

    async def claim(self, call: Call) -> Call:
        begun = await self.store.ledger.begin(call)
        assert isinstance(begun, Begun), begun
        call.operation = begun.operation
        if begun.operation is not None:
            call.id = begun.operation.call_id
        return call

    async def end(self, call: Call, status: Status, state: State | None, code: Code | None = None) -> None:
        told = observed(call, status, code, latency_ms=8.0, attempts=1)
        await self.store.ledger.finish(call, told, state)

    async def done(self, key: str, **who: Any) -> Call:
        call = await self.claim(self.call(key, **who))
        await self.end(call, Status.DONE, State.COMMITTED)
        return call

    async def read(self, **who: Any) -> Call:
        call = await self.claim(self.call(None, tool=LOOK, **who))
        await self.end(call, Status.DONE, None)
        return call

    async def refuse(self, call: Call, code: Code = Code.POLICY_VIOLATION) -> Call:
        await self.store.ledger.refuse(call, observed(call, Status.REFUSED, code, latency_ms=0.5), code)
        return call

    async def hold(self, call: Call) -> str:
        asked = await self.store.approvals.ask(call, {"operator": 1}, {"action": "pay"})
        told = ApprovalRef(id=asked.id, url="", expires_at="")
        held = observed(call, Status.HELD, Code.APPROVAL_REQUIRED, approval=told)
        await self.store.ledger.refuse(call, held, Code.APPROVAL_REQUIRED)
        return asked.id

    async def answer(self, approval_id: str, approve: bool) -> None:
        asked = await self.store.approvals.get("default", approval_id)
        assert asked is not None
        await self.store.approvals.decide(asked, Principal(user="olga"), "operator", approve, "")

    async def settle(self, call: Call, state: State, by: str = "olga") -> None:
        assert call.ref is not None
        found = await self.store.ledger.find(call.ref)
        assert found is not None
        said = Settlement(state=state, observation=None, by=by, note="looked it up")
        assert await self.store.ledger.settle(found, said)

    async def record(self, call_id: str, kind: str, body: str, tenant: str = "default") -> None:
        """A record of any kind, which need not be true."""
        now = self.clock.now()
        if isinstance(self.store, MemoryStore):
            self.store._shelf.record(tenant, call_id, kind, now, body)
            return
        writer = self.store.audit._writer
        await writer.submit(tenant, True, sequencer.note, tenant, call_id, kind, now, body)

    async def catch_up(self, most: int = 10_000) -> int:
        await self.store.audit.sequence()
        return await self.store.views.catch_up(most)

    async def row(self, call: Call) -> CallRow:
        """As it is in the view when all that was recorded is in it."""
        await self.catch_up()
        found = await self.store.views.call(call.principal.tenant, call.id)
        assert found is not None
        return found

    async def stands(self, call: Call) -> tuple[str, str]:
        row = await self.row(call)
        return row.status, row.code

    async def counted(self, tenant: str = "default") -> dict[str, int]:
        """Answers by their status."""
        counts: dict[str, int] = {}
        for one in await self.store.views.traffic(tenant, 0, inf):
            counts[one.status] = counts.get(one.status, 0) + one.calls
        return counts

    async def everything(self, tenant: str = "default") -> Everything:
        views = self.store.views
        calls = list(await views.calls(tenant, ALWAYS))
        return calls, list(await views.traffic(tenant, 0, inf)), list(await views.spending(tenant, 0, inf))


@asynccontextmanager
async def viewed(kind: str, folder: Path, clock: ManualClock | None = None) -> AsyncIterator[Viewed]:
    time = clock or ManualClock()
    async with place(kind, folder), stored(kind, folder, time) as store:
        yield Viewed(store, time)


async def one_of_each(view: Viewed) -> None:
    """A dozen lives that end differently, some in several answers."""
    await view.done("d-1", task="t-1")
    await view.read()
    await view.clock.advance(61)
    failed = await view.claim(view.call("f-1"))
    await view.end(failed, Status.FAILED, State.NO_EFFECT, Code.TIMEOUT)
    await view.end(await view.claim(view.call("f-1")), Status.DONE, State.COMMITTED)
    await view.refuse(view.call("r-1"))
    lost = await view.claim(view.call("u-1"))
    await view.end(lost, Status.UNKNOWN, State.UNKNOWN, Code.OUTCOME_UNKNOWN)
    await view.clock.advance(86_400)
    await view.settle(lost, State.COMMITTED)
    held = view.call("h-1")
    asked = await view.hold(held)
    await view.answer(asked, True)
    denied = view.call("h-2")
    await view.answer(await view.hold(denied), False)
    await view.claim(view.call("open"))
    alarmed = view.call("a-1")
    alarmed.alarms.append("something is odd")
    await view.refuse(alarmed, Code.PERMISSION_DENIED)
    bob = Principal(user="bob", agent="bot", tenant="acme")
    await view.done("b-1", by=bob)
