"""Who is told what is wrong, and when is it over? TEL-3.

Every process looks every few seconds. That an alert is raised once is the store's doing, and the record of it
is written in the same transaction; what is told outside is told again until it is known to be on its way.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from holdfast.config.alerts import Alerts as Thresholds
from holdfast.gateway.alarms import DAY_S, Finding, Situation, Waiting, findings
from holdfast.gateway.health import HealthDesk, Look
from holdfast.gateway.operators import operates
from holdfast.model import defaults
from holdfast.model.approval import Approval
from holdfast.model.call import Principal
from holdfast.model.errors import Forbidden, HoldfastError
from holdfast.model.moment import iso
from holdfast.model.people import Alert
from holdfast.model.signs import Costed
from holdfast.ports import Alerts as KeptAlerts
from holdfast.ports import Ports, Runs, Signs
from holdfast.telemetry import instruments as i
from holdfast.telemetry.exposition import Gauges

log = logging.getLogger(__name__)

Tell = Callable[[Alert], Awaitable[None]]
"""Carries an alert, raised or ended, to people; the same one may be told again and again."""
COST_EVERY_S = 300.0
SEEN_S = 60.0
"""How often it is written down that an alert is still true."""
TOLD_S = 600.0
"""How long a new one is told again: who raised it may have ended before it was on its way."""
MOST_ALIKE = 50
"""Open alerts of one kind: whoever has so many reads no more of them."""
MOST = 200
"""Alerts of one look into the past."""


def shown(alert: Alert) -> dict[str, Any]:
    """For programs."""
    return {
        "id": alert.id,
        "kind": alert.kind,
        "subject": alert.subject,
        "text": alert.text,
        "facts": dict(alert.facts),
        "at": iso(alert.at),
        "seen_at": iso(alert.seen_at),
        "ended_at": None if alert.ended_at is None else iso(alert.ended_at),
    }


def bounded(found: Iterable[Finding], was: Collection[tuple[str, str]]) -> dict[tuple[str, str], Finding]:
    """So many of a kind, by kind and subject: agents name their tasks as they like, and each could be one.

    What is open already comes first, so that none ends for another's sake.
    """
    kept: dict[tuple[str, str], Finding] = {}
    kinds: Counter[str] = Counter()
    for one in sorted(found, key=lambda one: (one.kind, one.subject) not in was):
        kinds[one.kind] += 1
        if kinds[one.kind] <= MOST_ALIKE:
            kept[one.kind, one.subject] = one
    return kept


class AlertDesk:
    """Hung on the gateway as `alerts`."""

    def __init__(
        self,
        kept: KeptAlerts,
        signs: Signs,
        health: HealthDesk,
        ports: Ports,
        limits: Thresholds,
        tell: Tell,
        runs: Runs,
    ) -> None:
        self._kept = kept
        self._signs = signs
        self._health = health
        self._ports = ports
        self._limits = limits
        self._tell = tell
        self._runs = runs
        self._looked_at = ports.clock.monotonic()  # a process that only runs a command does not look
        self._well = True
        self._backlogs: dict[tuple[str, str], float] = {}
        self._counts: dict[str, Mapping[str, int]] = {}
        self._costs: dict[str, tuple[float, Sequence[Costed]]] = {}

    # --- looking --------------------------------------------------------------------------

    async def open(self, by: Principal) -> Sequence[Alert]:
        """What is wrong now in `by`'s tenant, newest first; for operators."""
        self._need_operator(by)
        return await self._kept.open(by.tenant)

    async def list(self, by: Principal, since: float, limit: int = MOST) -> Sequence[Alert]:
        """What is and was wrong since a time, newest first; for operators."""
        self._need_operator(by)
        return await self._kept.list(by.tenant, since, min(limit, MOST))

    def gauges(self, tenants: Iterable[str]) -> Gauges:
        """What the last look found, as metrics: of several tenants the lowest health, and all alerts."""
        health: dict[tuple[str, ...], float] = {}
        alerts: dict[tuple[str, ...], float] = {}
        for tenant in tenants:
            for tool, score in self._health.scores(tenant).items():
                health[tool,] = min(score, health.get((tool,), 1.0))
            for kind, count in self._counts.get(tenant, {}).items():
                alerts[kind,] = alerts.get((kind,), 0) + count
        return {i.HEALTH: health, i.ALERTS: alerts}

    def _need_operator(self, by: Principal) -> None:
        if not operates(by, self._ports.people):
            raise Forbidden(f"{by.user!r} may not see alerts; this needs the role 'operator'")

    # --- housekeeping ---------------------------------------------------------------------

    async def tend(self, tenants: Iterable[str], *, now: bool = False) -> None:
        """Look for what is wrong, if it is time to; `now`: whether it is or not."""
        passed = self._ports.clock.monotonic() - self._looked_at
        if not now and passed < self._limits.every_s:
            return
        self._looked_at = self._ports.clock.monotonic()
        try:
            for tenant in sorted(tenants):
                look = await self._health.look(tenant)  # selection wants it, alerts or not
                if self._limits.enabled:
                    await self._judge(tenant, look)
            self._well = True
        except Exception as error:  # calls and the rest of housekeeping go on without
            if self._well:
                log.error(
                    "alerts: nobody is told for now: %s", error, exc_info=not isinstance(error, HoldfastError)
                )
            self._well = False

    async def forget(self) -> int:
        return await self._kept.forget(self._ports.clock.now() - defaults.ALERT_KEPT_S)

    async def _judge(self, tenant: str, look: Look) -> None:
        seen = await self._situation(tenant, look)
        was = {(one.kind, one.subject): one for one in await self._kept.open(tenant)}
        found = bounded(findings(seen, self._limits), was)
        raising = (self._raise(tenant, finding, seen.now, was.get(name)) for name, finding in found.items())
        await asyncio.gather(*raising)  # together they are one or two commits
        for name, alert in was.items():
            if name not in found and not self._lasts(alert, seen) and await self._kept.end(alert):
                log.info("alert ended: %s", alert.text)
                await self._told(await self._again(alert))
        self._counts[tenant] = Counter(kind for kind, _ in found)

    async def _raise(self, tenant: str, finding: Finding, now: float, was: Alert | None) -> None:
        alert = Alert(
            tenant=tenant,
            id=f"alert_{self._ports.ids.nonce()}" if was is None else was.id,
            kind=finding.kind,
            subject=finding.subject,
            text=finding.text,
            facts=finding.facts,
            at=now if was is None else was.at,
            seen_at=now,
        )
        if was is not None and now - was.seen_at < SEEN_S:
            return
        new = await self._kept.raise_(alert)
        if new:
            log.warning("alert: %s", alert.text)
        if new or alert.at > now - TOLD_S:
            await self._told(alert)

    async def _again(self, alert: Alert) -> Alert:
        """As it is kept now that it is over."""
        for kept in await self._kept.list(alert.tenant, alert.at, MOST):
            if kept.id == alert.id:
                return kept
        return alert

    async def _told(self, alert: Alert) -> None:
        try:
            await self._tell(alert)
        except Exception:  # telling is no reason not to look at the rest
            log.exception("alert %s could not be told; it is tried again", alert.id)

    def _lasts(self, alert: Alert, seen: Situation) -> bool:
        """A backlog is over when it is worked off; a process that just came does not know how long it is."""
        if alert.kind != "approval_backlog":
            return False
        waiting = seen.waiting.get(alert.subject)
        return waiting is not None and waiting.asked >= self._limits.backlog

    # --- the figures ----------------------------------------------------------------------

    async def _situation(self, tenant: str, look: Look) -> Situation:
        now, limits = look.at, self._limits
        since = now - defaults.HEALTH_WINDOW_S
        least = min(limits.loop_failures, limits.loop_calls)
        return Situation(
            now=now,
            window=look.window,
            tools=look.tools,
            contracts=look.contracts,
            waiting=self._waiting(tenant, await self._ports.approvals.open(tenant), now),
            exhausted=await self._signs.exhausted(tenant, since),
            repeats=await self._signs.repeats(tenant, now - defaults.LOOP_S, least),
            costs=await self._costed(tenant, now),
            stuck=await self._runs.stuck(tenant, MOST),
        )

    async def _costed(self, tenant: str, now: float) -> Sequence[Costed]:
        """Two weeks of it: looked at less often than the rest."""
        at, found = self._costs.get(tenant, (float("-inf"), ()))
        if not 0 <= now - at < COST_EVERY_S:
            found = await self._signs.costs(tenant, now - defaults.COST_DAYS * DAY_S)
            self._costs[tenant] = (now, found)
        return found

    def _waiting(self, tenant: str, asked: Sequence[Approval], now: float) -> dict[str, Waiting]:
        by_role: dict[str, list[float]] = {}
        for one in asked:
            for role in one.missing:
                by_role.setdefault(role, []).append(one.created_at)
        many = {(tenant, role) for role, since in by_role.items() if len(since) >= self._limits.backlog}
        kept = {p: at for p, at in self._backlogs.items() if p[0] != tenant or p in many}
        self._backlogs = kept | {place: now for place in many if place not in kept}
        return {
            role: Waiting(len(since), now - self._backlogs.get((tenant, role), now), now - min(since))
            for role, since in by_role.items()
        }
