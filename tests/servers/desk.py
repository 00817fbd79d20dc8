"""Which tools do the tests of the doors call?"""

import asyncio
from typing import Any

from holdfast.model.errors import Code, NoEffect
from holdfast.model.function import tool
from holdfast.model.invocation import Invocation
from holdfast.model.vocabulary import Effect, Floor, Undo

LEAK = "cannot reach db.internal.example with hunter2 at /var/lib/desk"


MAIL: dict[str, Any] = {
    "effect": Effect.HIGH_RISK_EXTERNAL,
    "undo": Undo.NONE,
    "manifest": [("mail", "CREATE", "one")],
    "idempotency": "none",
    "scopes": ["mail:send"],
    "floor": Floor.OPERATOR,
    "preview": {},
    "rollback_plan": "write another mail",
    "verification": {"target": "the outbox"},
}
"""What a mail that an operator must see declares."""


class Desk:
    """A small office: notes to read and write, and mail that a person must allow."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.sent: list[str] = []
        self.traces: list[str] = []
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()

    @tool(effect=Effect.READ_ONLY, scopes=["notes:read"], tags=["search"])
    async def count(self, invocation: Invocation) -> int:
        """Count the notes on the desk."""
        self.traces.append(invocation.trace_id)
        return len(self.notes)

    @tool(effect=Effect.READ_ONLY, scopes=["notes:read"])
    async def read(self, number: int) -> dict[str, Any]:
        """Read one note.

        Args:
            number: which note, from 0
        """
        if not 0 <= number < len(self.notes):
            raise NoEffect(f"there is no note {number}", Code.SEMANTIC_INVALIDITY)
        return {"text": self.notes[number], "version": f"v{len(self.notes[number])}"}

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.EXACT,
        manifest=[("notes", "CREATE", "one")],
        idempotency="none",
        scopes=["notes:write"],
    )
    async def add(self, text: str) -> dict[str, Any]:
        """Put a note on the desk.

        Args:
            text: what the note says
        """
        self.notes.append(text)
        return {"number": len(self.notes) - 1}

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.EXACT,
        manifest=[("notes", "CREATE", "one")],
        idempotency="none",
        scopes=["notes:write"],
    )
    async def add_slowly(self, text: str) -> dict[str, Any]:
        """Put a note on the desk once somebody says so.

        Args:
            text: what the note says
        """
        self.started.set()
        await self.go_on.wait()
        self.notes.append(text)
        return {"number": len(self.notes) - 1}

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.EXACT,
        manifest=[("notes", "UPDATE", "one")],
        idempotency="none",
        scopes=["notes:write"],
        state={"read": {"tool": "read", "arguments": {"number": "=args.number"}}, "version": "state.version"},
    )
    async def change(self, number: int, text: str) -> dict[str, Any]:
        """Change one note.

        Args:
            number: which note, from 0
            text: what it shall say
        """
        self.notes[number] = text
        return {"number": number}

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.EXACT,
        manifest=[("notes", "CREATE", "one")],
        idempotency="none",
        scopes=["notes:write"],
    )
    async def add_and_break(self, text: str) -> dict[str, Any]:
        """Put a note on the desk and lose the answer.

        Args:
            text: what the note says
        """
        self.notes.append(text)
        raise RuntimeError(LEAK)

    @tool(effect=Effect.READ_ONLY, scopes=["notes:read"], rate_limit={"calls": 1, "per_s": 3600})
    async def hourly(self) -> str:
        """Say something, once an hour."""
        return "tick"

    @tool(**MAIL)
    async def send(self, to: str) -> dict[str, Any]:
        """Send a mail.

        Args:
            to: who gets it
        """
        self.sent.append(to)
        return {"to": to}


DESKS: list[Desk] = []
"""The desk of the gateway that is opened next is the last one."""


def desk() -> Desk:
    return DESKS[-1]
