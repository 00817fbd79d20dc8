"""How long may a client think before the tool that asked it runs out of time?

As long as it likes, up to a limit of its own: waiting for a person is not execution time.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.execution.runtime import Bulkhead
from holdfast.model import defaults
from holdfast.model.call import Call
from holdfast.model.peer import Peer, Unanswerable
from holdfast.ports import Clock


class Asked:
    """The peer as an attempt sees it: its deadline moves on while the client is being asked."""

    __slots__ = ("_call", "_clock", "_left", "_open", "_peer", "_slots", "lent")

    def __init__(self, peer: Peer, call: Call, clock: Clock, slots: Bulkhead) -> None:
        self._peer, self._call, self._clock, self._slots = peer, call, clock, slots
        self.lent = False
        """Whether its place at the upstream was given to others, for good."""
        self._open = 0
        self._left = 0.0

    @property
    def session(self) -> str:
        return self._peer.session

    @property
    def modern(self) -> bool:
        return self._peer.modern

    @property
    def capabilities(self) -> Mapping[str, Any]:
        return self._peer.capabilities

    @property
    def progress(self) -> bool:
        return self._peer.progress

    @property
    def log_level(self) -> str | None:
        return self._peer.log_level

    @property
    def input_responses(self) -> Mapping[str, Any] | None:
        return self._peer.input_responses

    @property
    def request_state(self) -> str | None:
        return self._peer.request_state

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        await self._peer.tell(method, params)

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        if not self.lent:
            self.lent = self._slots.lend()
        now = self._clock.monotonic()
        if not self._open:
            self._left = max(self._call.deadline - now, 0.0)
        self._open += 1
        self._call.deadline = now + defaults.ASK_S
        try:
            answer = await self._peer.ask(method, params)
        except Unanswerable:
            self._answered()
            raise
        self._answered()  # not when it is given up: then the time is up
        return answer

    def _answered(self) -> None:
        self._open -= 1
        if not self._open:
            self._call.deadline = self._clock.monotonic() + self._left
