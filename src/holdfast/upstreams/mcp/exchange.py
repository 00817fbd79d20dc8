"""Whose request is on its way, and what has the server asked in return?"""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from holdfast.model.peer import Peer
from holdfast.upstreams.mcp.hidden import Hidden
from holdfast.upstreams.secrets.opening import Opening

MOST_QUESTIONS = 16
"""Open at once in one exchange: more is a server that does not wait for answers."""


class Exchange:
    """One call, and the client behind it."""

    __slots__ = ("_questions", "deaf", "headers", "hidden", "opening", "peer", "principal")

    def __init__(
        self, peer: Peer | None = None, principal: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.peer = peer
        self.principal = principal
        self.headers = headers
        """Further HTTP headers."""
        self.opening: Opening | None = None
        """Secrets that go with it as headers."""
        self.hidden: Hidden | None = None
        """What its client may not be shown of what the server says beside the answer."""
        self.deaf = False
        """The client does not take what it is told beside its answer."""
        self._questions: dict[str | int, asyncio.Task[None]] | None = None

    @property
    def owner(self) -> str | None:
        """The client's connection; None where nobody waits who could be asked."""
        return None if self.peer is None else self.peer.session

    @property
    def progress(self) -> bool:
        return self.peer is not None and self.peer.progress

    def question(self, number: str | int, work: Coroutine[Any, Any, None]) -> bool:
        """Let a question of the server be answered beside the exchange; False when there are too many."""
        if self._questions is None:
            self._questions = {}
        open_ones = self._questions
        if len(open_ones) >= MOST_QUESTIONS or number in open_ones:
            work.close()
            return False
        task = asyncio.ensure_future(work)
        open_ones[number] = task
        task.add_done_callback(lambda _: open_ones.pop(number, None))
        return True

    def withdraw(self, number: Any) -> None:
        """The server no longer wants to know."""
        if self._questions and isinstance(number, str | int) and number in self._questions:
            self._questions[number].cancel()

    def end(self) -> None:
        """Nobody is asked anything for a call that is over."""
        if self._questions:
            for task in tuple(self._questions.values()):
                task.cancel()
