"""What must be true of a gateway whose store, socket or disk failed once, somewhere?

An errand is a few calls of every kind through a real gateway while something fails, the same keys again when
it is over, and again in a gateway that was opened afterwards. Effects are counted by another process.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from holdfast import Effect, Floor, Gateway, Invocation, Observation, Principal, Status, tool
from holdfast import config as configuration
from holdfast.gateway import auditing, logfile
from holdfast.gateway.storing import store_of
from holdfast.model.errors import HoldfastError
from holdfast.model.function import FunctionTool
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.system import RandomIds, SystemClock
from holdfast.upstreams.function import FunctionUpstream
from tests.faults.tools import PROBE, WRITE
from tests.soak import effects
from tests.soak.effects import Effects, name_of

AMPLE = 100_000
CONFIG: dict[str, Any] = {
    "auth": {"people": {"ann": {"scopes": ["**"], "trust": 80}, "olga": {"roles": ["operator"]}}},
    "limits": {"budgets": [{"per": "tenant", "kind": "write", "calls": AMPLE}]},
}
ROUNDS = 30
"""More than any of the faults that are counted needs to come."""
PATIENCE_MS = 400
"""How long a caller waits who only wants to know what became of a call."""

POLL_S = 0.1
SETTLING_S = 20.0
"""Longer than any deadline here, and than a worker must be silent to be dead."""

OpenStore = Callable[[configuration.Config], AbstractAsyncContextManager[SqliteStore | PostgresStore]]


def tools(port: Callable[[], int]) -> list[FunctionTool[..., Any]]:
    """Each acts once through the port, which may be a wire that breaks."""

    async def act(invocation: Invocation) -> dict[str, str]:
        await effects.happen(name_of(invocation.key), port())
        return {"key": name_of(invocation.key)}

    @tool(effect=Effect.READ_ONLY)
    async def effect_seen(name: str) -> dict[str, list[int]]:
        """Look up how often an effect of this name happened."""
        return {"lines": await effects.seen(name_of(name), port())}

    @tool(effect=Effect.LOW_RISK_INTERNAL, **WRITE)
    async def plain(invocation: Invocation) -> dict[str, str]:
        """Act."""
        return await act(invocation)

    probe = {**PROBE, "result": "{'key': ''}", "settle_after_s": 0.0}

    @tool(effect=Effect.LOW_RISK_INTERNAL, probe=probe, **{**WRITE, "timeout_ms": 500})
    async def probed(invocation: Invocation) -> dict[str, str]:
        """Act, in a way that can be looked up."""
        return await act(invocation)

    @tool(effect=Effect.LOW_RISK_INTERNAL, floor=Floor.OPERATOR, **WRITE)
    async def asked(invocation: Invocation) -> dict[str, str]:
        """Act, once somebody has said yes."""
        return await act(invocation)

    return [plain, probed, asked, effect_seen]


@dataclass
class Errand:
    folder: Path
    name: str
    """Its keys begin with this: other errands count in the same place."""
    store: str
    """What a configuration says."""
    effects: Effects
    over: Callable[[], Awaitable[bool]]
    """Whether what was to fail has failed."""
    open_store: OpenStore | None = None
    """As it is while something fails; None: like any other."""
    failing_store: str | None = None
    """What a configuration says while something fails, where that is something else."""
    mend: Callable[[], None] = lambda: None
    port: Callable[[], int] | None = None
    """Where the tools act, where that is not where effects are counted."""
    told: dict[str, list[Observation]] = field(default_factory=dict)
    """By key: every answer anybody got."""
    kinds: dict[str, str] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    async def run(self) -> list[str]:
        """Everything that is not as it must be."""
        await self._while_it_fails()
        assert await self.over(), f"{self.name}: nothing has failed"
        self.mend()
        async with self._gateway(self.store, whole) as gateway:
            found = await self._settled(gateway)
        config = self._config(self.store)
        signed, checkpoints = logfile.public_key(config), auditing.checkpoint_path(config)
        report = await asyncio.to_thread(logfile.verify, logfile.place(config), checkpoints, signed)
        return [f"{self.name}: {fault}" for fault in (*self.broken, *found, *map(str, report.faults))]

    async def _settled(self, gateway: Gateway) -> list[str]:
        """What is still wrong when there was time enough for attempts to be over and workers to be dead."""
        end = monotonic() + SETTLING_S
        while True:
            await gateway.tidy()
            for key, told in self.told.items():
                if told[-1].status is not Status.DONE:
                    await self._again(gateway, key)
            found = [fault async for fault in self._faults(gateway)]
            if not found or monotonic() >= end:
                return found
            await asyncio.sleep(POLL_S)  # deadlines pass, and nobody tells

    async def _while_it_fails(self) -> None:
        for _ in range(ROUNDS):
            try:
                async with self._gateway(
                    self.failing_store or self.store, self.open_store or whole
                ) as gateway:
                    while not await self.over() and len(self.kinds) < 10 * ROUNDS:
                        await self._round(gateway)
                    self.mend()
                    for key in self.kinds:
                        await self._again(gateway, key)
                    await self._goes_on(gateway)
            except HoldfastError:  # it does not open: a message for the operator, and nothing has run
                if not await self.over():
                    raise
            if await self.over():
                return

    async def _goes_on(self, gateway: Gateway) -> None:
        """Not only the next gateway works again: this one does."""
        key = f"{self.name}.{len(self.kinds)}"
        self.kinds[key] = "plain"
        await self._call(gateway, key)
        if self.told[key][-1].status is not Status.DONE:
            self.broken.append(f"it does not go on: {self.told[key][-1].message}")

    async def _round(self, gateway: Gateway) -> None:
        first = len(self.kinds)
        plain, probed, asked = (f"{self.name}.{first + number}" for number in range(3))
        self.kinds |= {plain: "plain", probed: "probed", asked: "asked"}
        await self._call(gateway, plain)
        await self._call(gateway, probed)
        await self._call(gateway, asked)
        await self._answer(gateway)
        await self._call(gateway, asked)
        await self._call(gateway, plain)
        await gateway.call("faults.effect_seen", {"name": plain}, principal=self._who(gateway, "ann"))
        with suppress(HoldfastError):  # housekeeping is tried again
            await gateway.tidy()

    async def _again(self, gateway: Gateway, key: str) -> None:
        if self.kinds[key] == "asked":
            await self._call(gateway, key, deadline_ms=PATIENCE_MS)
            await self._answer(gateway)
        await self._call(gateway, key, deadline_ms=PATIENCE_MS)

    async def _call(self, gateway: Gateway, key: str, **more: Any) -> None:
        who = self._who(gateway, "ann")
        seen = await gateway.call(f"faults.{self.kinds[key]}", {}, key=key, principal=who, **more)
        self.told.setdefault(key, []).append(seen)

    async def _answer(self, gateway: Gateway) -> None:
        """Say yes to everything that is asked."""
        olga = self._who(gateway, "olga")
        with suppress(HoldfastError):  # she says it again later
            for asked in await gateway.approvals(olga):
                await gateway.decide(olga, asked.id, True)

    def _who(self, gateway: Gateway, name: str) -> Principal:
        return gateway.identity.at_terminal(name)

    # -- what must be true -------------------------------------------------------

    async def _faults(self, gateway: Gateway) -> AsyncIterator[str]:
        happened, olga, lost = self.effects.counts(), self._who(gateway, "olga"), 0
        for key, told in self.told.items():
            last, count = told[-1], happened[key]
            if count > 1:
                yield f"{key} happened {count} times"
            if count == 0 and any(one.status is Status.DONE for one in told):
                yield f"{key} was told to be done and has not happened"
            if last.status is not Status.DONE and (
                self.kinds[key] == "probed" or last.code != "OUTCOME_UNKNOWN"
            ):
                yield f"{key} ({self.kinds[key]}) is stuck: {last.status} {last.code} {last.message}"
            lost += last.status is Status.UNKNOWN
            records = await gateway.log.of_call(olga, last.call_id, -1, 100)
            kinds = [entry.record.kind for entry in records]
            if count and "intent" not in kinds:
                yield f"{key} happened without a record: {kinds}"
            if last.status is Status.DONE and not {"outcome", "settle"} & set(kinds):
                yield f"{key} is done without a record of it: {kinds}"
        if lost > 1:
            yield f"one fault, and {lost} outcomes nobody knows"
        [budget] = await gateway.budgets(olga)
        done = len(self.told) - lost
        if (budget.account.used.calls, budget.account.reserved.calls) != (done, lost):
            yield f"{done} done, {lost} unknown, and the budget says {budget.account}"

    # -- parts -------------------------------------------------------------------

    def _config(self, store: str) -> configuration.Config:
        return configuration.parse({**CONFIG, "store": store}, folder=self.folder)

    @asynccontextmanager
    async def _gateway(self, store: str, open_store: OpenStore) -> AsyncIterator[Gateway]:
        config = self._config(store)
        upstreams = {"faults": FunctionUpstream(tools(self.port or (lambda: self.effects.port)))}
        async with open_store(config) as opened:
            ports = {"clock": opened.clock, "ids": RandomIds(), "notary": auditing.notary(config)}
            gateway = Gateway.assemble(config, opened, upstreams, **ports)
            try:
                await gateway.prepare()
                yield gateway
            finally:
                await gateway.close()


def whole(config: configuration.Config) -> SqliteStore | PostgresStore:
    return store_of(config, SystemClock())
