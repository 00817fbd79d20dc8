"""Rooms that are painted, and a painter who tells when two work in the same one."""

import asyncio
from collections import Counter
from typing import Annotated, Any

from pydantic import Field

from holdfast import Effect, Gateway, Observation, Principal, Undo, tool

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
BEN = Principal(user="ben", agent="bot", scopes=frozenset({"**"}), trust=60)
OLGA = Principal(user="olga", agent="bot", roles=frozenset({"operator"}), scopes=frozenset({"**"}), trust=60)
ACME = Principal(tenant="acme", user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)

WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "idempotency": {},
    "timeout_class": "standard",
}
Room = Annotated[str, Field(json_schema_extra={"x-resource": "rooms"})]
Rooms = Annotated[list[str], Field(json_schema_extra={"x-resource": "rooms"})]


class House:
    def __init__(self) -> None:
        self.painted: list[str] = []
        self.colours: Counter[str] = Counter()
        """How often each room was painted."""
        self.looks = 0
        self.looked: asyncio.Queue[str] = asyncio.Queue()
        self.told = asyncio.Event()
        """Whether who has looked may tell."""
        self.told.set()
        self.inside: Counter[str] = Counter()
        self.clashes: list[str] = []
        """Rooms in which two were at once."""
        self.open = asyncio.Event()
        """Whether who has begun may end."""
        self.begun: asyncio.Queue[str] = asyncio.Queue()

    @tool(effect=Effect.READ_ONLY)
    async def look(self, room: Room) -> dict[str, str]:
        """Look at a room."""
        self.looks += 1
        seen = {"version": str(self.colours[room] + self.colours["*"])}
        self.looked.put_nowait(room)
        await self.told.wait()
        return seen

    @tool(**WRITE, manifest=[("rooms", "UPDATE", "one")])
    async def paint(self, room: Room) -> str:
        """Paint a room."""
        return await self._work([room])

    @tool(
        **WRITE,
        manifest=[("rooms", "UPDATE", "one")],
        state={
            "read": {"tool": "test.look", "arguments": {"room": "=args.room"}},
            "version": "state.version",
        },
    )
    async def repaint(self, room: Room) -> str:
        """Paint a room that is as it was planned on."""
        return await self._work([room])

    @tool(
        **WRITE,
        manifest=[("rooms", "UPDATE", "*")],
        state={"read": {"tool": "test.look", "arguments": {"room": "hall"}}, "version": "state.version"},
    )
    async def regut(self) -> str:
        """Empty a house whose hall is as it was planned on."""
        return await self._work(["*"])

    @tool(**WRITE, manifest=[("rooms", "UPDATE", "some")])
    async def paint_all(self, rooms: Rooms) -> str:
        """Paint several rooms."""
        return await self._work(rooms)

    @tool(**WRITE, manifest=[("rooms", "UPDATE", "*")])
    async def gut(self) -> str:
        """Empty the house."""
        return await self._work(["*"])

    @tool(**WRITE, manifest=[("garden", "UPDATE", "one")])
    async def dig(self, place: str) -> str:
        """Dig somewhere; nobody is told where that is."""
        return await self._work([f"garden {place}"])

    async def _work(self, rooms: list[str]) -> str:
        self._enter(rooms)
        self.begun.put_nowait(",".join(rooms))
        try:
            await self.open.wait()
            self.painted += rooms
            self.colours.update(rooms)
        finally:
            self.inside.subtract(rooms)
        return ",".join(rooms)

    def _enter(self, rooms: list[str]) -> None:
        others = +self.inside
        for room in rooms:
            if (
                others[room]
                or others["*"]
                or (room == "*" and any(not o.startswith("garden") for o in others))
            ):
                self.clashes.append(room)
        self.inside.update(rooms)


def started(
    gateway: Gateway, tool: str, key: str, principal: Principal = ANA, **arguments: Any
) -> "asyncio.Task[Observation]":
    """A call that goes on beside the test."""
    options = {name: arguments.pop(name) for name in ("deadline_ms", "if_match") if name in arguments}
    call = gateway.call(f"test.{tool}", arguments, key=key, principal=principal, **options)
    return asyncio.create_task(call)
