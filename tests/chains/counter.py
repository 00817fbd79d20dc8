"""A gateway whose chains are tools, on a store of each kind; what steps do is counted outside."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from starlette.applications import Starlette

from holdfast import Effect, Floor, Undo, tool
from holdfast.chains.engine import Engine
from holdfast.chains.engines.local import LocalEngine
from holdfast.gateway import Gateway
from holdfast.gateway.wiring import Adapt
from holdfast.model.call import Principal
from holdfast.model.observation import Observation
from holdfast.model.vocabulary import TimeoutClass
from holdfast.ports import Runs
from holdfast.servers.app import build
from holdfast.stores.keyring import root_secret
from holdfast.stores.memory import MemoryStore
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.system import RandomIds, SystemClock
from holdfast.upstreams.function import FunctionUpstream
from tests.chains.world import Outside, do, shop
from tests.polling import FELT_S, pause
from tests.servers.asgi import Client
from tests.stored import place, url_of

PEOPLE = {
    "ada": {"scopes": ["shop:*", "mail:*"], "trust": 90},
    "bob": {"scopes": ["shop:read"], "trust": 90},
    "olga": {"roles": ["operator"]},
}
INPUT = {
    "type": "object",
    "properties": {"item": {"type": "string"}},
    "required": ["item"],
    "additionalProperties": False,
}
ORDER = {
    "chain": "order",
    "description": "Reserve something, and charge for it.",
    "saga": True,
    "input": INPUT,
    "steps": [do("reserve"), do("charge")],
    "output": {"charge": "=charge.id"},
}
LOOK = {"chain": "look", "input": INPUT, "steps": [do("look")]}
ANNOUNCE = {
    "chain": "announce",
    "input": INPUT,
    "steps": [do("reserve"), {"id": "send", "tool": "shop.send", "with": {"to": "=input.item"}}],
    "output": {"sent": "=send"},
}
LOST = {"chain": "lost", "input": INPUT, "steps": [do("reserve"), do("lose")]}


class Lingering(Outside):
    """Some of what is done there takes until somebody says so."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()


@dataclass
class Counter:
    """The gateway, and the world it acts on."""

    gateway: Gateway
    world: Lingering
    app: Starlette
    runs: Runs

    def caller(self, name: str) -> Principal:
        return self.gateway.identity.authenticate({"x-holdfast-user": name})

    async def call(self, tool: str, item: str = "tea", *, by: str = "ada", **said: Any) -> Observation:
        return await self.gateway.call(tool, {"item": item}, principal=self.caller(by), **said)

    def client(self, name: str) -> Client:
        return Client(self.app, {"host": "127.0.0.1:8080", "x-holdfast-user": name})

    async def decided(self, *, approve: bool = True) -> None:
        """An operator answers the only open question, and the gateway looks what that changes."""
        olga = self.caller("olga")
        [asked] = await self.gateway.approvals(olga)
        await self.gateway.decide(olga, asked.id, approve)
        await self.gateway.tidy()

    async def settled(self, name: str) -> None:
        """The run of this chain is over, and its call knows."""
        olga = self.caller("olga")
        async with asyncio.timeout(FELT_S):
            while not all(
                run.state.over for run in await self.gateway.chains.list(olga) if run.chain == name
            ):
                await pause()
        await self.gateway.tidy()


def _sending(world: Outside) -> Any:
    @tool(
        effect=Effect.HIGH_RISK_EXTERNAL,
        undo=Undo.NONE,
        scopes=["mail:send"],
        manifest=[("mail", "CREATE", "one")],
        idempotency="none",
        floor=Floor.OPERATOR,
        preview={},
        rollback_plan="write another mail",
        verification={"target": "the outbox"},
    )
    async def send(to: str) -> str:
        """Send a mail.

        Args:
            to: to whom
        """
        world.do("send")
        return to

    return send


WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "scopes": ["shop:write"],
    "manifest": [("things", "CREATE", "one")],
    "idempotency": "none",
}
READ: dict[str, Any] = {"effect": Effect.READ_ONLY, "scopes": ["shop:read"]}


def _losing(world: Outside) -> Any:
    @tool(**WRITE)
    async def lose(item: str) -> str:
        """Do something, and lose the answer.

        Args:
            item: what about
        """
        world.do("lose")
        raise RuntimeError("lost on the way back")

    return lose


def _lingering(world: Lingering, name: str, **said: Any) -> Any:
    async def linger(item: str) -> str:
        await world.go_on.wait()
        world.do(name)
        return item

    linger.__name__ = name
    linger.__doc__ = f"Take a while to {name}.\n\nArgs:\n    item: what about\n"
    return tool(timeout_class=TimeoutClass.LONG_RUNNING, **said)(linger)


@asynccontextmanager
async def counter(
    kind: str,
    folder: Path,
    *chains: dict[str, Any],
    tools: Callable[[Outside], list[Any]] = shop,
    adapt: Adapt | None = None,
    engine: Callable[[], Engine] = LocalEngine,
    **config: Any,
) -> AsyncIterator[Counter]:
    (folder / "chains").mkdir(exist_ok=True)
    for chain in chains:
        (folder / "chains" / f"{chain['chain']}.yaml").write_text(yaml.safe_dump(chain))
    world, clock = Lingering(), SystemClock()
    said = {"chains": str(folder / "chains"), "auth": {"mode": "local", "people": PEOPLE}, **config}
    async with AsyncExitStack() as stack:
        store: Any = MemoryStore(clock)
        if kind == "sqlite":
            store = await stack.enter_async_context(SqliteStore(folder / "holdfast.db", clock))
        elif kind == "postgres":
            await stack.enter_async_context(place(kind, folder))
            keys = partial(root_secret, folder / "holdfast.db.keys")
            postgres = PostgresStore(url_of(kind, folder), keys, clock)
            store = await stack.enter_async_context(postgres)
        more = [_lingering(world, "linger", **WRITE), _lingering(world, "stare", **READ)]
        upstreams = {"shop": FunctionUpstream([*tools(world), _sending(world), _losing(world), *more])}
        ports: dict[str, Any] = {"clock": clock, "ids": RandomIds(), "adapt": adapt}
        gateway = Gateway.assemble(said, store, upstreams, engine=engine, **ports)
        stack.push_async_callback(gateway.close)
        await gateway.prepare()
        yield Counter(gateway, world, build(gateway), store.runs)
