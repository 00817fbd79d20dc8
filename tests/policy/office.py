"""Tools that read what must not get out, and one that lets it out."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast import Effect, Gateway, Principal, Undo, tool
from holdfast.model.function import FunctionTool
from holdfast.model.vocabulary import DataClass
from holdfast.stores.memory import MemoryStore
from holdfast.testing import CountingIds, ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.stored import Store, durable

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
EVE = Principal(user="eve", agent="bot", scopes=frozenset({"**"}), trust=60)
OLGA = Principal(user="olga", agent="local", roles=frozenset({"operator"}))

KEEPS_IN = """
@id("open") permit (principal, action, resource);
@id("keeps-in") @reason("this session has read confidential data")
forbid (principal, action, resource)
when { resource.tags.contains("external") && context.labels.contains("confidential") };
"""
OPEN = '@id("open") permit (principal, action, resource);\n'


class Office:
    """What it sends is seen here; a reading can be kept from ending."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.reading = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    def tools(self) -> list[FunctionTool[..., Any]]:
        @tool(effect=Effect.READ_ONLY)
        async def weather(city: str) -> dict[str, str]:
            """Look out of the window."""
            return {"sky": "grey"}

        @tool(effect=Effect.READ_ONLY, data_class=DataClass.CONFIDENTIAL)
        async def salaries(team: str) -> dict[str, int]:
            """Read what people earn."""
            self.reading.set()
            await self.go_on.wait()
            return {"sum": 100}

        @tool(effect=Effect.READ_ONLY, data_class=DataClass.SECRET, labels=["board-minutes"])
        async def minutes(month: str) -> dict[str, str]:
            """Read what the board said."""
            if month == "none":
                raise LookupError("no minutes")
            return {"text": "..."}

        @tool(
            effect=Effect.MEDIUM_RISK_WRITE,
            undo=Undo.EXACT,
            manifest=[("mail", "CREATE", "message")],
            tags=["external"],
            idempotency={},
        )
        async def send(to: str, text: str) -> dict[str, bool]:
            """Send a message to somebody outside."""
            self.sent.append(to)
            return {"sent": True}

        @tool(
            effect=Effect.MEDIUM_RISK_WRITE,
            undo=Undo.EXACT,
            manifest=[("payroll", "UPDATE", "raise")],
            data_class=DataClass.CONFIDENTIAL,
            idempotency={},
        )
        async def grant_raise(team: str) -> dict[str, int]:
            """Pay more, and tell how much it is now."""
            return {"sum": 110}

        return [weather, salaries, minutes, send, grant_raise]


Process = Callable[..., AbstractAsyncContextManager[Gateway]]


def processes(kind: str, folder: Path, office: Office, clock: ManualClock) -> Process:
    """Opens one gateway after the other on one store, each as a process of its own would."""
    shared, ids = MemoryStore(clock), CountingIds()

    @asynccontextmanager
    async def opened(text: str = KEEPS_IN, **config: Any) -> AsyncIterator[Gateway]:
        policies = folder / "policies"
        policies.mkdir(exist_ok=True)
        (policies / "a.cedar").write_text(text)
        async with AsyncExitStack() as stack:
            kept: Store = shared
            if kind != "memory":
                kept = await stack.enter_async_context(durable(kind, folder, clock))
            upstreams = {"office": FunctionUpstream(office.tools())}
            whole = {"policies": str(policies), **config}
            gateway = Gateway.assemble(whole, kept, upstreams, clock=clock, ids=ids)
            stack.push_async_callback(gateway.close)
            await gateway.prepare()
            yield gateway

    return opened
