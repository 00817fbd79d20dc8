"""A small world to act on, and gateways in front of it on every store."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast import Effect, Gateway, Invocation, NoEffect, Principal, Undo, tool
from holdfast.model.function import FunctionTool, toolset
from holdfast.stores.worker import Workers
from holdfast.testing import CountingIds, ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.stored import stored

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
BEN = Principal(user="ben", agent="bot", scopes=frozenset({"**"}), trust=60)

WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "manifest": [("things", "UPDATE", "thing")],
    "idempotency": {},
}
"""What the plainest admissible write declares."""


@dataclass
class World:
    """Things, and how often each was touched."""

    touched: Counter[str] = field(default_factory=Counter)
    reads: int = 0
    mood: str = "well"
    """What the next touch does: well, no_effect, raise, garbage, hang."""
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    @tool(effect=Effect.READ_ONLY)
    async def look(self, thing: str) -> dict[str, Any]:
        """Look at a thing."""
        self.reads += 1
        return {"thing": thing, "touched": self.touched[thing], "version": str(self.touched[thing])}

    @tool(**WRITE)
    async def touch(self, thing: str, times: int = 1, note: str = "") -> dict[str, Any]:
        """Touch a thing."""
        return await self._touch(thing, times)

    @tool(
        **WRITE,
        probe={
            "read": {"tool": "test.look", "arguments": {"thing": "=args.thing"}},
            "committed": "state.touched > 0",
            "result": "{'thing': args.thing, 'times': state.touched}",
            "settle_after_s": 1.0,
        },
    )
    async def touch_probed(self, thing: str, times: int = 1) -> dict[str, Any]:
        """Touch a thing in a way that can be checked later."""
        return await self._touch(thing, times)

    async def _touch(self, thing: str, times: int) -> dict[str, Any]:
        if self.mood == "no_effect":
            raise NoEffect("the thing is locked")
        self.entered.set()
        if self.mood == "wait":
            await self.release.wait()
        self.touched[thing] += times
        if self.mood == "raise":
            raise RuntimeError("line 42 of /secret/path broke")
        if self.mood == "hang":
            await asyncio.Event().wait()
        garbage: Any = ["garbage"]
        return garbage if self.mood == "garbage" else {"thing": thing, "times": times}


def invocations(seen: list[Invocation]) -> FunctionTool[..., Any]:
    """A write whose upstream honours the key: it keeps one effect per key."""
    done: dict[str | None, int] = {}

    @tool(**{**WRITE, "idempotency": {"upstream": "meta"}})
    async def keyed(thing: str, invocation: Invocation) -> dict[str, int]:
        """Touch a thing at most once per key."""
        seen.append(invocation)
        done.setdefault(invocation.key, len(done) + 1)
        if invocation.attempt == 1 and thing == "flaky":
            raise ConnectionError("lost the answer")
        return {"number": done[invocation.key]}

    return keyed


@asynccontextmanager
async def opened(
    store: str,
    folder: Path,
    *sources: object,
    clock: ManualClock | None = None,
    config: Mapping[str, Any] | None = None,
    workers: Workers | None = None,
    **ports: Any,
) -> AsyncIterator[Gateway]:
    """A gateway on the named store, with time in the test's hands and no housekeeping."""
    time = clock or ManualClock()
    tools = [t for source in sources for t in toolset(source)]
    upstreams = {"test": FunctionUpstream(tools)}

    async with stored(store, folder, time, workers=workers) as kept:
        gateway = Gateway.assemble(config or {}, kept, upstreams, clock=time, ids=CountingIds(), **ports)
        try:
            yield gateway
        finally:
            await gateway.close()
