"""Which calls are under way in this process, and who still waits for them?

A call lives in a task of its own: whoever waits for it may go away, a dispatched write is finished and
written down all the same. Who waits, waits for a promise; at the end of a drain it is kept before the call
is over.
"""

import asyncio
import logging
from collections.abc import Iterator

from holdfast.gateway import handover
from holdfast.gateway.ending import cut_short
from holdfast.gateway.wiring import Parts
from holdfast.lifecycle import live
from holdfast.model.call import Call
from holdfast.model.observation import Observation
from holdfast.model.peer import Peer

log = logging.getLogger(__name__)


class Life:
    """One call, the task it lives in, and the answer that was promised."""

    __slots__ = ("answer", "call", "over", "task")

    def __init__(self, call: Call, answer: "asyncio.Future[Observation]") -> None:
        self.call, self.answer, self.over = call, answer, False
        self.task: asyncio.Task[None]


class Underway:
    def __init__(self, parts: Parts) -> None:
        self._ports, self._runtime = parts.ports, parts.runtime
        self._lives: dict[str, Life] = {}

    def __len__(self) -> int:
        return len(self._lives)

    def __iter__(self) -> Iterator[Call]:
        return iter([life.call for life in self._lives.values()])

    @property
    def tasks(self) -> list["asyncio.Task[None]"]:
        return [life.task for life in self._lives.values()]

    async def carry(self, call: Call) -> Observation:
        """Take a call through its life; to be cancelled while waiting is to be abandoned."""
        loop = asyncio.get_running_loop()
        life = self._lives[call.nonce] = Life(call, loop.create_future())
        life.task = loop.create_task(self._live(life))
        try:
            observation = await life.answer
        except asyncio.CancelledError:
            stop(call)
            self._leave(call)
            raise
        if life.over:
            self._ports.attendance.answered(call, observation)
        else:  # answered at the end of a drain: its outcome is for who asks again
            self._leave(call)
        return observation

    async def _live(self, life: Life) -> None:
        answer = life.answer
        try:
            observation = await live(life.call, self._ports, self._runtime)
            life.over = True
            if not answer.done():
                answer.set_result(observation)
        except asyncio.CancelledError:
            answer.cancel()
            raise
        except Exception as error:
            life.over = True
            if answer.done():
                log.exception("call %s broke when nobody waited for it any more", life.call.id)
            else:
                answer.set_exception(error)
        finally:
            del self._lives[life.call.nonce]
            _let_go(life.call)

    def leave(self, peer: Peer) -> None:
        """A client went and took nothing back: what it called goes on, for its next equal call to get."""
        for call in self:
            if call.proposal.peer is peer:
                self._leave(call)

    def _leave(self, call: Call) -> None:
        self._runtime.keep(handover.left(call, self._ports))

    def cut_short(self) -> None:
        """Whoever still waits is told what can be said by now; what has acted goes on."""
        for life in list(self._lives.values()):
            if not life.answer.done():
                stop(life.call)
                life.answer.set_result(cut_short(life.call))


def _let_go(call: Call) -> None:
    """An attempt that is over knows its call by its context, and its call knows it.

    Nobody would part them but the collector, which costs more than a gate.
    """
    if call.work is not None and call.work.done():
        call.work = None


def stop(call: Call) -> str:
    """Cancel what has not acted: a dispatched write is never torn down."""
    dispatched = call.work is not None
    call.cancelled = True
    if not dispatched:
        return "cancelled"
    if call.writes:
        return "too late"
    call.work.cancel()
    return "cancelled"
