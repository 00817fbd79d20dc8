"""How does what is in the outbox get out? Whoever takes a notice sends it, within its time, or gives it back.

A mail is sent to one recipient. All that waits for somebody at one moment goes into one mail, and nobody gets
more than so many in an hour: what comes up beyond that is collected into the first one of the next.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby

from holdfast.gateway.notices.outcome import Again, Never, Outcome, Sent, Way
from holdfast.model import defaults
from holdfast.model.approval import Answer
from holdfast.model.errors import StoreError
from holdfast.model.people import Notice
from holdfast.ports import Outbox, Ports

log = logging.getLogger(__name__)

AT_ONCE = 16
"""Notices under way in one process."""
HOUR_S = 3600.0
SOON_S = 5.0
"""When somebody else is just sending to the same person."""
CLOSING_S = 2.0
OPEN = ("asked", "escalated")
"""Events that are about a question nobody has answered yet."""

Batch = Sequence[Notice]


class Sending:
    def __init__(
        self, outbox: Outbox, ways: Mapping[str, Way], ports: Ports, free: Callable[[], None]
    ) -> None:
        """`free` is told when another notice could go out."""
        self._outbox, self._ways, self._ports, self._free = outbox, ways, ports, free
        self._under_way: dict[asyncio.Task[None], Batch] = {}

    async def begin(self) -> int:
        """Start to send what is due; how many notices that are."""
        free = AT_ONCE - len(self._under_way)
        if free <= 0:
            return 0
        taken = await self._outbox.take(free, self._ports.clock.now() + defaults.NOTICE_LEASE_S)
        for batch in _batches(taken):
            task = asyncio.create_task(self._out(batch), name="holdfast-notice")
            self._under_way[task] = batch
            task.add_done_callback(self._done)
        return len(taken)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._under_way.pop(task, None)
        self._free()

    async def finish(self) -> None:
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def close(self) -> None:
        """What is nearly out goes out; the rest is given back, for the next process to send."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=CLOSING_S)
        left = dict(self._under_way)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for batch in left.values():
            for notice in batch:
                await self._outbox.again(notice, self._ports.clock.now(), notice.said)
        for way in self._ways.values():
            way.close()

    async def _out(self, batch: Batch) -> None:
        try:
            await self._send(batch)
        except Exception:  # it comes up again, as what nobody took does, and not for ever
            log.exception("notice %s could not be sent; it is tried again", batch[0].id)
            with suppress(StoreError):
                await self._settle(batch, Again("something broke here; the log says what"))

    async def _send(self, batch: Batch) -> None:
        way = self._ways.get(batch[0].channel)
        if way is None:  # perhaps another process knows it
            await self._settle(batch, Again(f"there is no channel {batch[0].channel!r} in the configuration"))
            return
        readable = [notice for notice in batch if notice.body]
        for notice in batch:
            if not notice.body:
                await self._outbox.again(notice, None, "what it says was erased with its tenant")
        if not readable:
            return
        if readable[0].to:
            await self._mail(way, readable)
        else:
            await self._settle(readable, await way.send(readable[0]))

    async def _mail(self, way: Way, batch: Batch) -> None:
        now, most = self._ports.clock.now(), defaults.MAILS_PER_RECIPIENT_HOUR
        if not (batch := await self._open(batch)):
            return
        times = await self._outbox.told_to(batch, now - HOUR_S)
        if len(times) >= most:
            full = sum(at < now for at in times) >= most
            later = times[-most] + HOUR_S if full else now + SOON_S
            for notice in batch:
                await self._outbox.again(
                    notice, later, f"waits: {most} mails went to this address in an hour"
                )
            return
        waiting = await self._outbox.gather(batch[0], now + defaults.NOTICE_LEASE_S)
        batch = [*batch, *await self._open(waiting)]
        last = len(times) + 1 >= most
        closed = (times[-most + 1] if most > 1 else now) + HOUR_S if last else None
        await self._settle(batch, await way.send(batch[0], batch[1:], closed))

    async def _open(self, batch: Batch) -> list[Notice]:
        """Nobody gets mail about a question that is answered by now."""
        still = []
        for notice in batch:
            if notice.event in OPEN:
                asked = await self._ports.approvals.get(notice.tenant, notice.about)
                if asked is None or asked.answer is not Answer.PENDING:
                    await self._outbox.told_with([notice], "not sent: the question was over by then")
                    continue
            still.append(notice)
        return still

    async def _settle(self, batch: Batch, outcome: Outcome) -> None:
        match outcome:
            case Sent():
                await self._outbox.sent(batch[0])
                await self._outbox.told_with(batch[1:], f"told with {batch[0].id}")
            case Again(said, after_s):
                for notice in batch:
                    await self._outbox.again(notice, self._later(notice, after_s), said)
            case Never(said):
                for notice in batch:
                    await self._outbox.again(notice, None, said)
        if not isinstance(outcome, Sent):
            log.warning("notice %s of channel %s: %s", batch[0].id, batch[0].channel, outcome.said)

    def _later(self, notice: Notice, after_s: float | None) -> float | None:
        """When to try again; None once that would be too late."""
        doubled = defaults.NOTICE_RETRY_S * 2.0 ** min(notice.tries - 1, 16)
        moved = doubled * (1 + defaults.RETRY_JITTER * random.uniform(-1, 1))
        at = self._ports.clock.now() + min(max(moved, after_s or 0.0), defaults.NOTICE_RETRY_CAP_S)
        return at if at <= notice.at + defaults.NOTICE_GIVE_UP_S else None


def _batches(taken: Sequence[Notice]) -> list[Batch]:
    """What goes out together: all mails to one person; everything else alone."""
    mails = sorted((n for n in taken if n.to), key=lambda n: (n.channel, n.to, n.at, n.id))
    together = [list(some) for _, some in groupby(mails, key=lambda n: (n.channel, n.to))]
    return [*([notice] for notice in taken if not notice.to), *together]
