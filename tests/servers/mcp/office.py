"""Which tools do the tests of the MCP door call?"""

import asyncio
from collections.abc import Iterable
from typing import Any

from holdfast.model.answer import Answer
from holdfast.model.function import FunctionTool, tool, toolset
from holdfast.model.peer import Unanswerable
from holdfast.model.vocabulary import Effect, Floor, Undo
from holdfast.ports import Attempt
from holdfast.upstreams.function import FunctionUpstream

WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "manifest": [("notes", "CREATE", "one")],
    "idempotency": "none",
}


class Office:
    """Somewhere to act, that remembers what was done."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.paid: list[str] = []
        self.seen: list[Attempt] = []
        self.told: list[Any] = []
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()

    @tool(effect=Effect.READ_ONLY, scopes=["notes:read"])
    async def count(self) -> int:
        """Count the notes. Nothing is changed."""
        return len(self.notes)

    @tool(**WRITE, scopes=["notes:write"])
    async def note(self, text: str) -> dict[str, Any]:
        """Write a note.

        Args:
            text: what it says
        """
        self.notes.append(text)
        return {"number": len(self.notes), "nothing": None}

    @tool(**WRITE, scopes=["notes:write"])
    async def own_key(self, text: str, idempotency_key: str) -> dict[str, Any]:
        """Write a note of a tool that has a key argument of its own.

        Args:
            text: what it says
            idempotency_key: the tool's own
        """
        self.notes.append(f"{text}/{idempotency_key}")
        return {"key": idempotency_key}

    @tool(**WRITE, scopes=["notes:write"])
    async def slow(self, text: str) -> dict[str, Any]:
        """Write a note once somebody says so.

        Args:
            text: what it says
        """
        self.started.set()
        await self.go_on.wait()
        self.notes.append(text)
        return {"number": len(self.notes)}

    @tool(effect=Effect.READ_ONLY, scopes=["notes:read"])
    async def look_slowly(self) -> str:
        """Look until somebody says so."""
        self.started.set()
        await self.go_on.wait()
        return "seen"

    @tool(
        effect=Effect.HIGH_RISK_EXTERNAL,
        undo=Undo.NONE,
        manifest=[("money", "CREATE", "one")],
        idempotency="none",
        scopes=["money:pay"],
        floor=Floor.USER,
        preview={},
        rollback_plan="ask for it back",
        verification={"target": "the account"},
    )
    async def pay(self, to: str) -> dict[str, Any]:
        """Pay somebody.

        Args:
            to: who gets it
        """
        self.paid.append(to)
        return {"to": to}

    @tool(
        effect=Effect.HIGH_RISK_EXTERNAL,
        undo=Undo.NONE,
        manifest=[("money", "CREATE", "one")],
        idempotency="none",
        scopes=["money:pay"],
        floor=Floor.OPERATOR,
        preview={},
        rollback_plan="ask for it back",
        verification={"target": "the account"},
    )
    async def pay_much(self, to: str) -> dict[str, Any]:
        """Pay somebody a lot.

        Args:
            to: who gets it
        """
        self.paid.append(to)
        return {"to": to}

    @tool(**WRITE, scopes=["notes:write"])
    async def ask_name(self, text: str) -> dict[str, Any]:
        """Ask the client's user for a name, then write a note.

        Args:
            text: what it says
        """
        return {}

    @tool(**WRITE, scopes=["notes:write"])
    async def ask_back(self, text: str) -> dict[str, Any]:
        """Answer with a question first, as modern upstreams do.

        Args:
            text: what it says
        """
        return {}

    @tool(effect=Effect.READ_ONLY, scopes=["notes:read"])
    async def raw(self) -> dict[str, Any]:
        """Answer in the protocol's own form, with members nobody here knows."""
        return {}

    @tool(effect=Effect.READ_ONLY, scopes=["notes:read"])
    async def failing(self) -> dict[str, Any]:
        """Say no in the protocol's own form."""
        return {}


ELICIT = {
    "mode": "form",
    "message": "What is your name?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
RAW = {
    "content": [{"type": "text", "text": "raw", "x-inside": [1, None]}, {"type": "hologram", "depth": 3}],
    "structuredContent": {"a": None, "b": [{"c": None}]},
    "isError": False,
    "x-unknown": {"kept": True, "nothing": None},
    "_meta": {"upstream/own": 1},
}
NO = {"content": [{"type": "text", "text": "the moon is not full"}], "isError": True, "x-why": "moon"}


class OfficeUpstream(FunctionUpstream):
    """The office behind a protocol: some of its tools ask the client, or answer in a form of their own."""

    def __init__(self, office: Office, tools: Iterable[FunctionTool[..., Any]] | None = None) -> None:
        super().__init__(tools if tools is not None else toolset(office))
        self.office = office

    async def invoke(self, attempt: Attempt) -> Any:
        self.office.seen.append(attempt)
        name = attempt.tool.contract.identity.name
        special = getattr(self, f"_{name}", None)
        return await super().invoke(attempt) if special is None else await special(attempt)

    async def _ask_name(self, attempt: Attempt) -> Any:
        assert attempt.peer is not None
        await attempt.peer.tell("notifications/progress", {"progress": 1, "total": 2, "x-more": True})
        await attempt.peer.tell("notifications/message", {"level": "warning", "data": "asking"})
        try:
            said = await attempt.peer.ask("elicitation/create", ELICIT)
        except Unanswerable as error:
            self.office.told.append(str(error))
            self.office.go_on.set()
            return Answer(data={"asked": False}, native=_text(f"nobody to ask: {error} ({error.code})"))
        self.office.told.append(said)
        self.office.notes.append(f"{attempt.arguments['text']} {said.get('content', {}).get('name')}")
        return Answer(data={"asked": True}, native=_text(f"hello {said.get('content', {}).get('name')}"))

    async def _ask_back(self, attempt: Attempt) -> Any:
        peer = attempt.peer
        assert peer is not None
        if peer.input_responses is None:
            asks = {"q": {"method": "elicitation/create", "params": ELICIT}}
            native = {"resultType": "input_required", "inputRequests": asks, "requestState": "mine-1"}
            return Answer(data=native, native=native, unfinished=True)
        self.office.told.append((peer.request_state, dict(peer.input_responses)))
        self.office.notes.append(str(attempt.arguments["text"]))
        return Answer(data={}, native=_text("thank you"))

    async def _raw(self, attempt: Attempt) -> Any:
        return Answer(data=RAW["structuredContent"], native=RAW)

    async def _failing(self, attempt: Attempt) -> Any:
        return Answer(data={"content": NO["content"]}, native=NO, error="the moon is not full")


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "structuredContent": {}, "isError": False}
