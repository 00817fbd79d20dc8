"""A gateway before a till, on a store of any kind; time is in the test's hands."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast import Gateway, Observation, Principal, Status
from holdfast.model.upstream_session import SessionState
from holdfast.stores.worker import Workers
from holdfast.system import RandomIds
from holdfast.testing import ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.stored import place, stored
from tests.upstream_sessions.till import Till, tools

ADA = Principal(user="ada", agent="bot", trust=90)
BOB = Principal(user="bob", agent="bot", trust=90)
OLGA = Principal(user="olga", agent="cli", roles=frozenset({"operator", "user"}))

AUTH = {
    "people": {"ada": {"roles": ["user"]}, "bob": {"roles": ["user"]}, "olga": {"roles": ["operator"]}},
}


class World:
    def __init__(self, gateway: Gateway, till: Till, clock: ManualClock) -> None:
        self.gateway, self.till, self.clock = gateway, till, clock

    async def call(
        self, tool: str, key: str | None = None, by: Principal = ADA, **arguments: Any
    ) -> Observation:
        return await self.gateway.call(f"till.{tool}", arguments, principal=by, key=key)

    async def done(self, tool: str, key: str | None = None, **arguments: Any) -> Observation:
        seen = await self.call(tool, key, **arguments)
        assert seen.status is Status.DONE, seen
        return seen

    async def begun(self, key: str = "begin") -> str:
        seen = await self.done("begin", key)
        assert isinstance(seen.data["tx"], str)
        return seen.data["tx"]

    async def state(self, session: str) -> SessionState:
        return (await self.gateway.upstream_sessions.look(OLGA, session)).session.state


@asynccontextmanager
async def opened(
    kind: str, folder: Path, till: Till | None = None, clock: ManualClock | None = None, **more: Any
) -> AsyncIterator[World]:
    """In a place of its own, which is gone afterwards."""
    async with place(kind, folder), another(kind, folder, till, clock, **more) as world:
        yield world


@asynccontextmanager
async def another(
    kind: str,
    folder: Path,
    till: Till | None = None,
    clock: ManualClock | None = None,
    workers: Workers | None = None,
    config: dict[str, Any] | None = None,
    shared: bool = False,
    **more: Any,
) -> AsyncIterator[World]:
    """A gateway of its own before the same till and the same store.

    `shared`: the till lives nowhere in particular, as a server elsewhere does.
    """
    time, server = clock or ManualClock(), till or Till()
    made = more.pop("made", None)
    upstream = FunctionUpstream(made or tools(server, **more))
    upstream.in_process = not shared
    options: dict[str, Any] = {} if workers is None else {"workers": workers}
    async with stored(kind, folder, time, **options) as store:
        gateway = Gateway.assemble(config or {}, store, {"till": upstream}, clock=time, ids=RandomIds())
        try:
            await gateway.prepare()
            yield World(gateway, server, time)
        finally:
            await gateway.close()
