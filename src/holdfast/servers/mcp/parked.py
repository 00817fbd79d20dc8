"""Which running calls wait for a modern client to come back with an answer?

A tool of the older era asks in the middle of its work, and a modern client is asked by ending its request.
The call goes on running here, named by the sealed `requestState`. It lives in this process alone, like the
connection to the tool that asked; after its time the tool is told that nobody answered.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any

from holdfast.model.call import Principal
from holdfast.model.observation import Observation
from holdfast.model.peer import Unanswerable
from holdfast.servers.mcp.errors import wrong
from holdfast.servers.mcp.peer import ModernClient
from holdfast.servers.mcp.state import LIFE_S

if TYPE_CHECKING:
    from holdfast.gateway import Gateway

MOST = 1024
"""Calls that wait at once; each holds its slot at the upstream."""


@dataclass(frozen=True, slots=True)
class Parked:
    owner: Principal
    arguments: Mapping[str, Any]
    running: "asyncio.Task[Observation]"
    client: ModernClient


class Parking:
    def __init__(self, gateway: "Gateway") -> None:
        self._gateway = gateway
        self._waiting: dict[str, Parked] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def park(self, parked: Parked) -> str:
        if len(self._waiting) >= MOST:  # the one that waits longest is given up
            self._expire(next(iter(self._waiting)))
        name = token_urlsafe(16)
        self._waiting[name] = parked
        asyncio.get_running_loop().call_later(LIFE_S, self._expire, name)
        return name

    def take(self, name: str, owner: Principal, arguments: Mapping[str, Any]) -> Parked:
        """The call a client comes back to, once."""
        parked = self._waiting.get(name)
        if parked is None or parked.owner.id != owner.id:
            raise wrong(
                "the call that asked this is over or ran elsewhere; call again without 'requestState'"
            )
        if parked.arguments != arguments:
            raise wrong("the arguments are not those of the call that asked; send the same with your answer")
        return self._waiting.pop(name)

    def close(self) -> None:
        for parked in self._waiting.values():
            self._give_up(parked, "the gateway is shutting down")
        self._waiting.clear()

    def _expire(self, name: str) -> None:
        parked = self._waiting.pop(name, None)
        if parked is not None:
            self._give_up(parked, "the client did not come back")

    def _give_up(self, parked: Parked, why: str) -> None:
        for _, answer in parked.client.open.values():
            if not answer.done():
                answer.set_exception(Unanswerable(why))
        task = asyncio.get_running_loop().create_task(self._abandon(parked))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _abandon(self, parked: Parked) -> None:
        """What it comes to in the end reaches nobody."""
        seen = await parked.running
        await self._gateway.abandoned(parked.owner, seen.call_id)
