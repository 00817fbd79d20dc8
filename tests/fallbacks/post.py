"""Two ways to send a message and two to look something up, each of which may be out of order."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast import Code, Effect, Gateway, NoEffect, Observation, Principal, Undo, tool
from holdfast.model.function import FunctionTool
from holdfast.system import RandomIds
from holdfast.testing import CountingIds, ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.stored import Store, stored

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"mail:**", "facts:**"}), trust=90)
WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "manifest": [("mail", "CREATE", "message")],
    "idempotency": {},
    "tags": ["send-message"],
    "scopes": ["mail:send"],
}
READ: dict[str, Any] = {"effect": Effect.READ_ONLY, "tags": ["facts"], "scopes": ["facts:read"]}

SEND = {
    "tools": [
        "mail.send",
        {"tool": "backup.post", "arguments": {"recipient": "=args.to", "body": "=args.text"}},
        {"tool": "pigeon.send", "confidence": 0.5},
    ]
}
LOOK = {"tools": ["mail.look", "backup.look"]}


class Post:
    """What was sent, by whom; and what each tool does when it is asked."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []
        self.asked: list[str] = []
        self.mood: dict[str, str] = {}
        self.entered = asyncio.Event()
        self.go_on = asyncio.Event()

    @property
    def senders(self) -> list[str]:
        return [name for name, _, _ in self.sent]

    async def act(self, name: str, to: str, text: str) -> dict[str, str]:
        self.asked.append(name)
        mood = self.mood.get(name, "well")
        if mood in {code.value for code in Code}:
            raise NoEffect(f"{name} is out of order", Code(mood))
        if mood == "slow":
            await asyncio.Event().wait()
        if mood == "wait":
            self.entered.set()
            await self.go_on.wait()
        self.sent.append((name, to, text))
        if mood == "lose":
            raise ConnectionError("the answer got lost")
        return {"by": name, "to": to}

    def tools(self) -> dict[str, list[FunctionTool[..., Any]]]:
        """By upstream."""

        @tool(**WRITE, timeout_ms=5_000)
        async def send(to: str, text: str = "hello") -> dict[str, str]:
            """Send a message."""
            return await self.act("mail", to, text)

        @tool(**WRITE)
        async def post(recipient: str, body: str) -> dict[str, str]:
            """Send a message another way."""
            return await self.act("backup", recipient, body)

        @tool(**{**WRITE, "scopes": ["mail:pigeon"]}, name="send")
        async def fly(to: str, text: str = "hello") -> dict[str, str]:
            """Send a message by pigeon."""
            return await self.act("pigeon", to, text)

        @tool(**READ, timeout_ms=5_000, cache_ttl_s=10.0)
        async def look(name: str) -> dict[str, str]:
            """Look something up."""
            return await self.act("mail", "look", name)

        @tool(**READ, name="look")
        async def look_there(name: str) -> dict[str, str]:
            """Look something up elsewhere."""
            return await self.act("backup", "look", name)

        return {"mail": [send, look], "backup": [post, look_there], "pigeon": [fly]}


class Apart(CountingIds):
    """Names that no other gateway makes."""

    def __init__(self) -> None:
        super().__init__()
        self._random = RandomIds()

    def call(self) -> str:
        return self._random.call()

    def nonce(self) -> str:
        return self._random.nonce()


@asynccontextmanager
async def gateway_on(
    kept: Store,
    post: Post,
    clock: ManualClock,
    fallbacks: Mapping[str, Any] | None = None,
    *,
    ids: CountingIds | None = None,
    **config: Any,
) -> AsyncIterator[Gateway]:
    said = {"send-message": SEND, "facts": LOOK} if fallbacks is None else fallbacks
    upstreams = {name: FunctionUpstream(tools) for name, tools in post.tools().items()}
    opened = Gateway.assemble(
        {"fallbacks": said, **config}, kept, upstreams, clock=clock, ids=ids or CountingIds()
    )
    try:
        await opened.prepare()
        yield opened
    finally:
        await opened.close()


@asynccontextmanager
async def opened(
    store: str,
    folder: Path,
    post: Post,
    clock: ManualClock,
    fallbacks: Mapping[str, Any] | None = None,
    **config: Any,
) -> AsyncIterator[Gateway]:
    async with stored(store, folder, clock) as kept, gateway_on(kept, post, clock, fallbacks, **config) as it:
        yield it


async def send(gateway: Gateway, key: str | None = "k", *, by: Principal = ANA, **how: Any) -> Observation:
    named = {} if key is None else {"key": key}
    return await gateway.call("mail.send", {"to": "bob"}, principal=by, **named, **how)


def tried(seen: Observation) -> list[tuple[str, str]]:
    """Which tools were tried before, and why they did not answer."""
    said = seen.fallback or {"tried": []}
    return [(one["tool"], one.get("code") or one["message"]) for one in said["tried"]]
