"""How long may a client think before the tool that asked it runs out of time?

As long as it likes, up to a limit of its own: waiting for a person is not execution time.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.model import defaults
from holdfast.model.call import Call
from holdfast.model.peer import Peer
from holdfast.ports import Clock


class Asked:
    """The peer as an attempt sees it: its deadline moves on while the client is being asked."""

    def __init__(self, peer: Peer, call: Call, clock: Clock) -> None:
        self._peer, self._call, self._clock = peer, call, clock
        self._open = 0
        self._left = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._peer, name)

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        now = self._clock.monotonic()
        if not self._open:
            self._left = max(self._call.deadline - now, 0.0)
        self._open += 1
        self._call.deadline = now + defaults.ASK_S
        try:
            return await self._peer.ask(method, params)
        finally:
            self._open -= 1
            if not self._open:
                self._call.deadline = self._clock.monotonic() + self._left
