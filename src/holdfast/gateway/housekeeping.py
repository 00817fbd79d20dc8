"""What does a gateway do by itself, every few seconds?

Settle what dead workers left, obey cancellations, let go what people approved, look for changes, keep the
log, forget what is over.
"""

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from holdfast import settlement
from holdfast.approvals.release import Propose, release
from holdfast.approvals.tend import tend
from holdfast.config import Config
from holdfast.gateway.guesses import record_guesses
from holdfast.gateway.policy_desk import PolicyDesk
from holdfast.gateway.rounds import Rounds
from holdfast.gateway.underway import Underway, stop
from holdfast.gateway.wiring import Parts
from holdfast.model import defaults
from holdfast.model.approval import Approval
from holdfast.model.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.gateway.chains import Chains

log = logging.getLogger(__name__)

FORGET_EVERY = 100
"""Rounds between two looks for outcomes whose window is over."""


class Housekeeping:
    def __init__(
        self,
        parts: Parts,
        config: Config,
        policies: PolicyDesk,
        under_way: Underway,
        propose: Propose,
        chains: Callable[[], "Chains | None"],
    ) -> None:
        """`chains` are those that run here; None where nobody has asked for any."""
        self._parts, self._config, self._policies = parts, config, policies
        self._under_way, self._propose, self._chains = under_way, propose, chains
        self._releasing: set[asyncio.Task[None]] = set()

    async def keep(self) -> None:
        """Round after round, until it is cancelled."""
        turns = count()
        rounds = Rounds(
            lambda: self.tidy(forget=next(turns) % FORGET_EVERY == 0),
            waits="housekeeping waits for the store",
            failed="housekeeping failed",
        )
        while True:
            await rounds.next()
            await self._parts.news.wait(self._parts.ports.clock, defaults.SWEEP_S)

    async def tidy(self, *, forget: bool = False) -> int:
        """One round; returns how many operations were settled."""
        parts, ports = self._parts, self._parts.ports
        await parts.access.follow()
        await self._obey()
        parts.identity.tend()
        await record_guesses(parts.identity, parts.auditing)
        await self._policies.follow()
        if parts.discovery is not None:
            await parts.discovery.notice()
        self.offer_chains()
        await parts.retiring.tend()
        if await tend(ports):
            parts.notices.wake()
        for given in await ports.approvals.releasable():
            self.release(given)
        await ports.ledger.count_lost_reads()
        await parts.auditing.notice_erasures()
        await self.keep_log(prune=forget)
        await parts.views.tend()
        await parts.alerts.tend(parts.identity.tenants() | {"default"})
        if forget:
            await self._forget()
        await parts.jobs.tend()
        if (chains := self._chains()) is not None:
            await chains.tend()
        moved = await settlement.sweep(ports)
        await parts.upstream_sessions.tend()
        return moved

    async def _obey(self) -> None:
        """Stop what was cancelled in another process."""
        wanted = set(await self._parts.ports.controls.cancellations())
        for call in self._under_way:
            if call.id in wanted:
                stop(call)

    async def _forget(self) -> None:
        parts = self._parts
        await parts.ports.ledger.forget()
        await parts.labels.forget()
        await parts.upstream_sessions.forget()
        await parts.sessions.forget()
        await parts.access.forget()
        await parts.notices.forget()
        await parts.alerts.forget()

    def offer_chains(self) -> None:
        """As tools, with whatever has changed of those they are made of."""
        chains = self._chains()
        if chains is not None and self._config.chains is not None and chains.offers.offer():
            self._policies.refit()

    async def keep_log(self, *, prune: bool = False, sign_now: bool = False) -> None:
        """Calls go on without this, so that a full disk beside the store is not theirs."""
        auditing, tenants = self._parts.auditing, self._parts.identity.tenants()
        try:
            await self._parts.egress.follow(self._parts.ports.approvals)
            await auditing.tidy(sign_now=sign_now)
            if prune:
                await auditing.prune(self._config, tenants | {"default"})
        except HoldfastError as error:
            log.error("audit: %s", error)

    def release(self, given: Approval) -> None:
        """Propose an approved call again, in a task of its own: nobody waits for it."""

        async def released() -> None:
            try:
                await release(given, self._parts.ports, self._parts.identity.again, self._propose)
            except Exception:
                log.exception("call %s could not be released; it is tried again", given.call_id)

        task = asyncio.create_task(released())
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)

    async def released(self, seconds: float) -> None:
        """What was approved a moment ago is still proposed."""
        if self._releasing:
            await asyncio.wait(self._releasing, timeout=seconds)
