"""What are people told, and is anything of it stuck? APR-7.

Nothing on a call's way waits for a channel. What there is to tell is looked up in the store, where questions
are: a process that dies after asking has told nobody, and the next one that looks does.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.config import Config
from holdfast.gateway.news import News
from holdfast.gateway.notices import news as found
from holdfast.gateway.notices import told
from holdfast.gateway.notices.outcome import Outcome
from holdfast.gateway.notices.sending import Sending
from holdfast.gateway.notices.ways import ways
from holdfast.gateway.operators import need_operator
from holdfast.gateway.outgoing import Egress
from holdfast.gateway.rounds import Rounds
from holdfast.model import defaults
from holdfast.model.approval import Answer, Approval
from holdfast.model.call import Principal
from holdfast.model.errors import NotFound, StoreError
from holdfast.model.people import Alert, Notice, Tally
from holdfast.ports import Outbox, Ports

if TYPE_CHECKING:
    from holdfast.upstreams.secrets.wallet import Wallet

log = logging.getLogger(__name__)

AT_ONCE = 200
"""Questions looked at in one round."""
EVERYWHERE = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A channel, and how it fares."""

    name: str
    kind: str
    events: tuple[str, ...]
    roles: tuple[str, ...]
    tally: Tally


class Notices:
    """Hung on the gateway as `notices`."""

    def __init__(
        self, config: Config, outbox: Outbox, ports: Ports, egress: Egress, wallet: "Wallet | None"
    ) -> None:
        self._channels = config.channels
        self._ways = ways(config, ports, egress, wallet)
        self._outbox, self._ports = outbox, ports
        self._sending = Sending(outbox, self._ways, ports, self.wake)
        self._answered: dict[tuple[str, str], None] = {}
        self._keeping = False
        self.news = News()

    # --- what there is to tell ------------------------------------------------------------

    def wake(self) -> None:
        """There may be something to tell."""
        self.news.hear("notices")

    def answered(self, approval: Approval) -> None:
        """Somebody has voted; told as soon as that was the last voice, also where nobody was told before."""
        if self._channels and approval.answer is not Answer.PENDING:
            self._answered[approval.ref.tenant, approval.id] = None
        self.wake()

    async def alert(self, alert: Alert) -> None:
        """Tell of an alert, or that it is over; telling it twice tells it once."""
        for notice in found.of_alert(alert, self._channels, self._ports):
            await self._outbox.put(notice)
        self.wake()

    async def look(self) -> int:
        """Put whatever people were not told yet into the outbox; how many questions had something new."""
        if not self._channels:
            return 0
        untold = await self._outbox.untold(AT_ONCE)
        for one in untold:
            await self._tried(one.tenant, one.approval_id, one.level)
        for tenant, approval_id in list(self._answered):
            await self._tried(tenant, approval_id, -1)
            self._answered.pop((tenant, approval_id), None)
        return len(untold)

    async def _tried(self, tenant: str, approval_id: str, level: int) -> None:
        """One question that cannot be told must not keep the others from being told."""
        try:
            await self._tell(tenant, approval_id, level)
        except StoreError:
            raise
        except Exception:
            log.exception("nobody can be told of approval %s; it is tried again", approval_id)

    async def _tell(self, tenant: str, approval_id: str, level: int) -> None:
        asked = await self._ports.approvals.get(tenant, approval_id)
        if asked is None:
            await self._outbox.told(tenant, approval_id, level, True)
            return
        for notice in found.of_approval(asked, level, self._channels, self._ports):
            await self._outbox.put(notice)
        # Last of all: whoever dies before this is followed by one who puts the same notices again.
        await self._outbox.told(tenant, approval_id, asked.level, asked.answer is not Answer.PENDING)

    # --- telling it -----------------------------------------------------------------------

    async def keep_telling(self) -> None:
        """Look and send, as long as this process lives."""
        self._keeping = True
        rounds = Rounds(
            self._look_and_send, waits="notices wait for the store", failed="telling people failed"
        )
        while self._channels:
            await rounds.next()
            await self.news.wait(self._ports.clock, defaults.SWEEP_S)

    async def _look_and_send(self) -> None:
        await self.look()
        while await self._sending.begin():
            pass

    async def round(self) -> None:
        """Look once, and send what is due to its end; for tests and embedders without `start`."""
        await self.look()
        await self._sending.begin()
        await self._sending.finish()

    async def forget(self) -> int:
        return await self._outbox.forget(self._ports.clock.now() - defaults.NOTICE_KEPT_S)

    async def close(self) -> None:
        """A process that was only there to ask or answer tells of it before it goes, where that is quick."""
        try:
            if self._keeping:
                await self.look()
                await self._sending.begin()
            await self._sending.close()
        except StoreError as error:  # another process finds it where it is
            log.warning("notices are left to another process: %s", error)

    # --- for operators --------------------------------------------------------------------

    async def channels(self, by: Principal) -> list[State]:
        """Every channel that tells of `by`'s tenant, and how it fares."""
        need_operator(by, self._ports.people)
        tallies = {tally.channel: tally for tally in await self._outbox.tally(by.tenant)}
        own = {tally.channel: tally for tally in await self._outbox.tally(EVERYWHERE)}
        return [
            State(
                name=name,
                kind="webhook" if channel.webhook is not None else "mail",
                events=channel.events,
                roles=channel.roles,
                tally=_sum(name, [some[name] for some in (tallies, own) if name in some]),
            )
            for name, channel in self._channels.items()
            if not channel.tenants or by.tenant in channel.tenants
        ]

    async def list(self, by: Principal, limit: int = 100) -> Sequence[Notice]:
        """The newest notices of `by`'s tenant."""
        need_operator(by, self._ports.people)
        return await self._outbox.list(by.tenant, limit)

    async def test(self, by: Principal, name: str) -> dict[str, Outcome]:
        """Send a test now; what came of it, by recipient (`""`: the receiver of a webhook)."""
        need_operator(by, self._ports.people)
        channel = self._channels.get(name)
        if channel is None or (channel.tenants and by.tenant not in channel.tenants):
            known = ", ".join(map(repr, self._channels)) or "none"
            raise NotFound(f"there is no channel {name!r} here; configured are: {known}")
        now = self._ports.clock.now()
        trial = Notice(
            tenant=by.tenant,
            id=f"ntc_{self._ports.ids.nonce()}",
            channel=name,
            event="test",
            about="test",
            body=told.test_notice(name, self._ports.base_url),
            at=now,
            due_at=now,
        )
        way, people = self._ways[name], found.recipients(channel, None)
        return {to: await way.send(replace(trial, to=to)) for to in people}


def _sum(name: str, tallies: Sequence[Tally]) -> Tally:
    times = [tally.last_sent_at for tally in tallies if tally.last_sent_at is not None]
    return Tally(
        channel=name,
        sent=sum(tally.sent for tally in tallies),
        waiting=sum(tally.waiting for tally in tallies),
        failed=sum(tally.failed for tally in tallies),
        last_sent_at=max(times, default=None),
        said=next((tally.said for tally in tallies if tally.said), ""),
    )
