"""Which tools do two tenants share, and what does one of them keep from the other?

Everything of the north tenant that the south must never read is one of `SECRETS`.
"""

import asyncio
from typing import Any

from holdfast.model.function import tool
from holdfast.model.invocation import Invocation
from holdfast.model.vocabulary import Effect, TimeoutClass, Undo
from tests.servers.desk import MAIL

WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "manifest": [("notes", "CREATE", "one")],
    "idempotency": "none",
    "scopes": ["notes:write"],
}
SECRETS = ("nora", "norman", "vault", "aurora")
"""The north's people, its own tool, and what its notes say."""


class House:
    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []
        """By whom, and what."""
        self.sent: list[tuple[str, str]] = []
        self.looked: list[tuple[str, str]] = []
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()

    @tool(**WRITE)
    async def note(self, text: str, invocation: Invocation) -> dict[str, Any]:
        """Put a note on the wall.

        Args:
            text: what the note says
        """
        self.notes.append((invocation.tenant, text))
        return {"by": invocation.tenant, "text": text}

    @tool(**WRITE, timeout_class=TimeoutClass.LONG_RUNNING)
    async def note_slowly(self, text: str, invocation: Invocation) -> dict[str, Any]:
        """Put a note on the wall once somebody says so.

        Args:
            text: what the note says
        """
        self.started.set()
        await self.go_on.wait()
        self.notes.append((invocation.tenant, text))
        return {"by": invocation.tenant, "text": text}

    @tool(**WRITE)
    async def note_and_break(self, text: str, invocation: Invocation) -> dict[str, Any]:
        """Put a note on the wall and lose the answer.

        Args:
            text: what the note says
        """
        self.notes.append((invocation.tenant, text))
        raise RuntimeError("lost on the way back")

    @tool(effect=Effect.READ_ONLY, scopes=["notes:read"], cache_ttl_s=3600)
    async def look(self, topic: str, invocation: Invocation) -> dict[str, Any]:
        """Look something up.

        Args:
            topic: what about
        """
        self.looked.append((invocation.tenant, topic))
        return {"for": invocation.tenant, "times": self.looked.count((invocation.tenant, topic))}

    @tool(**MAIL)
    async def send(self, to: str, invocation: Invocation) -> dict[str, Any]:
        """Send a mail.

        Args:
            to: who gets it
        """
        self.sent.append((invocation.tenant, to))
        return {"to": to}

    @tool(**{**WRITE, "scopes": ["vault:open"]})
    async def vault(self, text: str) -> dict[str, Any]:
        """Put something where only the north may look.

        Args:
            text: what it is
        """
        return {"text": text}


HOUSES: list[House] = []
"""The house of the gateway that is opened next is the last one."""


def house() -> House:
    return HOUSES[-1]
