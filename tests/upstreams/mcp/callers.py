"""Who calls, and what with?"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from holdfast.model.contract import Contract
from holdfast.model.peer import Unanswerable
from holdfast.model.tool import Tool
from holdfast.ports import Attempt
from holdfast.upstreams.mcp.backoff import Backoff
from holdfast.upstreams.mcp.change import Change
from holdfast.upstreams.mcp.target import Target
from holdfast.upstreams.mcp.upstream import McpUpstream

AT_ONCE = Backoff(first_s=0.001, longest_s=0.001)
SOON_S = 20.0
"""Longer than anything here takes: running into it is a failure, whatever the machine."""


def tool(name: str, **parts: Any) -> Tool:
    identity = {"namespace": "shop", "name": name, "version": "1.0.0", **parts.pop("identity", {})}
    contract = Contract.model_validate(
        {
            "identity": identity,
            "affordance": {"description": "a tool", "input_schema": parts.pop("schema", {"type": "object"})},
            "transactional": {"effect": "READ_ONLY"},
            **parts,
        }
    )
    return Tool.compile(contract)


def attempt(name: str, arguments: Mapping[str, Any] | None = None, **parts: Any) -> Attempt:
    members = {key: parts.pop(key) for key in ("identity", "schema", "idempotency") if key in parts}
    return Attempt(
        tool=tool(name, **members),
        arguments=arguments or {},
        **{
            "key": None,
            "tenant": "acme",
            "call_id": "c-1",
            "trace_id": "0" * 32,
            "deadline_s": SOON_S,
            "number": 1,
            **parts,
        },
    )


class Caller:
    """A client that waits: what it is asked and told is kept."""

    def __init__(
        self,
        session: str = "s-1",
        *,
        modern: bool = False,
        capabilities: Mapping[str, Any] | None = None,
        answer: Mapping[str, Any] | None = None,
        progress: bool = True,
        log_level: str | None = None,
    ) -> None:
        self.session, self.modern, self.progress, self.log_level = session, modern, progress, log_level
        self.capabilities = {"elicitation": {"form": {}}} if capabilities is None else capabilities
        self.answer = answer
        self.input_responses: Mapping[str, Any] | None = None
        self.request_state: str | None = None
        self.asked: list[tuple[str, Any]] = []
        self.told: list[tuple[str, Any]] = []

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        self.asked.append((method, params))
        if self.answer is None:
            raise Unanswerable("the client cannot be asked", -32601)
        return self.answer

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        self.told.append((method, params))


class Heard:
    """Changes as they come, to be waited for."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._event = asyncio.Event()

    def __call__(self, change: Change) -> None:
        self.changes.append(change)
        self._event.set()

    async def until(self, kind: str, times: int = 1) -> None:
        async with asyncio.timeout(SOON_S):
            while sum(change.kind == kind for change in self.changes) < times:
                self._event.clear()
                await self._event.wait()


@asynccontextmanager
async def upstream(target: Target, **options: Any) -> AsyncIterator[McpUpstream]:
    """Started and ready, and closed at the end."""
    made = McpUpstream("shop", target, **{"backoff": AT_ONCE, "client_version": "9.9", **options})
    made.start()
    try:
        assert await made.ready(SOON_S), made.last_error
        yield made
    finally:
        await made.close()
