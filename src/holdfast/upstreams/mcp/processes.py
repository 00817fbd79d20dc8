"""Which process of a program serves a call, where its environment holds secrets?

A process is told its environment once. So a secret that changed means another process, started for the next
call; the one before it ends when the last call on it has. Calls whose contracts add variables of their own
get processes of their own: no other call runs where those can be read.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

from holdfast.ports import Injected
from holdfast.upstreams.mcp.connection import Connection
from holdfast.upstreams.mcp.errors import Unsent
from holdfast.upstreams.mcp.owner import Owner

MOST = 8
"""Processes of one program beside the first: one for each set of added variables."""

Kind = tuple[tuple[str, str], ...]
"""Which variables were added, and with which secrets, by their names."""


@dataclass(slots=True, eq=False)
class Room:
    """One process's place: it is started again there when it dies, with the same environment."""

    added: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that contracts add."""
    told: str | None = None
    """The mark of those the configuration has secrets in, as of its last start; None before the first."""
    owner: Owner[Connection] = field(init=False)
    calls: int = 0

    def suits(self, told: str) -> bool:
        return self.told in (None, told)


def marked(env: Mapping[str, str]) -> str:
    """Differs where an environment does, and tells nothing of it."""
    return hashlib.sha256(repr(sorted(env.items())).encode(errors="surrogatepass")).hexdigest()


class Processes:
    """The rooms beside the first, and the leaving of all."""

    def __init__(self, furnish: Callable[[Room], Owner[Connection]]) -> None:
        self._furnish = furnish
        self._rooms: dict[Kind, Room] = {}
        self._leaving: set[Room] = set()
        """Left by all but the calls that still run there."""
        self._closing: set[asyncio.Task[None]] = set()

    def room(self, added: Mapping[str, str] | None = None) -> Room:
        made = Room(added or {})
        made.owner = self._furnish(made)
        return made

    def beside(self, injected: tuple[Injected, ...], told: str) -> Room:
        """The room for calls with these variables; raises Unsent where there are too many."""
        kind: Kind = tuple((one.credential.name, one.credential.secret) for one in injected)
        added = {one.credential.name: one.text for one in injected}
        found = self._rooms.pop(kind, None)
        if found is not None and not (found.added == added and found.suits(told)):
            self.leave(found)
            found = None
        if found is None:
            self._make_place()
            found = self.room(added)
        self._rooms[kind] = found  # the one used last is the last
        return found

    def _make_place(self) -> None:
        if len(self._rooms) < MOST:
            return
        idle = next((kind for kind, room in self._rooms.items() if not room.calls), None)
        if idle is None:
            raise Unsent(f"{MOST} processes of it are busy already, each with other secrets")
        self.leave(self._rooms.pop(idle))

    @contextlib.asynccontextmanager
    async def within(self, room: Room) -> AsyncIterator[Owner[Connection]]:
        room.calls += 1
        try:
            yield room.owner
        finally:
            room.calls -= 1
            self._end(room)

    def leave(self, room: Room) -> None:
        """Not under a running call: it ends when its last call has."""
        self._leaving.add(room)
        self._end(room)

    def _end(self, room: Room) -> None:
        if not room.calls and room in self._leaving:
            self._leaving.discard(room)
            task = asyncio.ensure_future(room.owner.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        rooms = [*self._rooms.values(), *self._leaving]
        self._rooms.clear()
        self._leaving.clear()
        await asyncio.gather(*(room.owner.close() for room in rooms), *self._closing)
