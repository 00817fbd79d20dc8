"""What does a configuration want to be seen, and who may look?"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from holdfast.config import Config
from holdfast.config.tree import Telemetry as Section
from holdfast.execution.runtime import Runtime
from holdfast.identity import Identity
from holdfast.lifecycle import PHASES
from holdfast.model.call import Principal
from holdfast.model.errors import Forbidden, NotFound
from holdfast.model.scopes import covers_all
from holdfast.ports import Clock, Ports, Secrets
from holdfast.telemetry import instruments as i
from holdfast.telemetry.exposition import Exposition, Gauges, Labels, View, exposed
from holdfast.telemetry.metrics import Metrics
from holdfast.telemetry.watch import Watch

if TYPE_CHECKING:  # the SDK takes a while to import, and most gateways send nothing
    from holdfast.telemetry.otlp import MetricExport, SpanExport
    from holdfast.telemetry.spans import Spans

log = logging.getLogger(__name__)

PUSH_S = 60.0
"""Between two pushes of the metrics, as OpenTelemetry's own reader does."""
CLOSE_S = 1.0
"""How long closing waits for a collector to take the last spans, and then the last metrics."""
METRICS_SCOPE = "holdfast:metrics"
BREAKER_STATES = ("closed", "half_open", "open")


class Watching:
    """The observers of one gateway."""

    def __init__(self, said: Section, clock: Clock, secrets: Secrets) -> None:
        self._said = said
        self._export = _span_export(said)
        self._push = _metric_export(said)
        self._metrics = None if said.metrics == "off" else Metrics()
        self.watch = Watch(clock, _spans(said, self._export, secrets), self._metrics)

    async def shown(
        self,
        view: View,
        ports: Ports,
        runtime: Runtime,
        in_flight: int,
        tenants: Iterable[str],
        found: Callable[[Iterable[str]], Gauges],
    ) -> Exposition:
        """The metrics as they are now; `found` is what was found out about some tenants beside them."""
        if self._metrics is None:
            raise NotFound("metrics are switched off here; set 'telemetry.metrics' to 'on'")
        wanted = tuple(tenants) if view.tenant is None else (view.tenant,)
        gauges = {i.PENDING: await _pending(ports, wanted), **found(wanted)}
        if view.tenant is None:
            gauges |= _process(runtime, in_flight)
        return exposed(self._metrics.collect(), view, gauges, {i.CAPABILITY: _capabilities(ports)})

    async def keep_pushing(self, clock: Clock, look: Callable[[], Awaitable[Exposition]]) -> None:
        """Until cancelled; returns at once where nothing is pushed."""
        while self._push is not None:
            await clock.sleep(PUSH_S)
            await self.push(look)

    async def push(self, look: Callable[[], Awaitable[Exposition]]) -> None:
        if self._push is None:
            return
        try:
            if not await self._push.push((await look()).families):
                log.warning("the collector did not take the metrics; they are sent again with the next")
        except Exception:
            log.exception("the metrics could not be pushed")

    async def close(self, look: Callable[[], Awaitable[Exposition]]) -> None:
        """Send what waits, as far as the collector takes it in time."""
        last = asyncio.create_task(self.push(look))
        if self._export is not None:
            await self._export.close(CLOSE_S)
        await asyncio.wait((last,), timeout=CLOSE_S)
        if self._push is not None:
            self._push.close()  # ends a push that still waits for its collector
        await last


def _span_export(said: Section) -> "SpanExport | None":
    if said.traces == "off":
        return None
    from holdfast.telemetry.otlp import SpanExport, span_exporter

    return SpanExport(span_exporter(said.endpoint))


def _metric_export(said: Section) -> "MetricExport | None":
    if said.metrics != "otlp":
        return None
    from holdfast.telemetry.otlp import MetricExport

    return MetricExport(said.endpoint)


def _spans(said: Section, export: "SpanExport | None", secrets: Secrets) -> "Spans | None":
    if export is None:
        return None
    from holdfast.telemetry.spans import Spans

    return Spans(export.processor, secrets, PHASES, sample=said.sample)


def view_of(by: Principal, config: Config, who: Identity) -> View:
    """What `by` may see of the metrics: their tenant's, or everybody's; raises Forbidden."""
    said = config.telemetry
    everybodys = View(labelled=said.tenant_label)
    if config.auth.mode == "local" or by.user in said.all_tenants:
        return everybodys
    if "operator" not in by.roles and not covers_all(by.scopes, (METRICS_SCOPE,)):
        raise Forbidden(
            f"{by.user!r} may not see metrics; this needs the scope {METRICS_SCOPE!r} or the role 'operator'"
        )
    return everybodys if who.only_tenant(by.tenant) else View(by.tenant)


async def _pending(ports: Ports, tenants: Iterable[str]) -> dict[Labels, float]:
    found: dict[Labels, float] = {}
    for tenant in tenants:
        for asked in await ports.approvals.open(tenant):
            for role in asked.missing:
                labels = (asked.ref.tool, role)
                found[labels] = found.get(labels, 0) + 1
    return found


def _process(runtime: Runtime, in_flight: int) -> dict[str, dict[Labels, float]]:
    breakers: dict[Labels, float] = {
        (tool, state): float(breaker.state == state)
        for tool, breaker in runtime.breakers.items()
        for state in BREAKER_STATES
    }
    return {
        i.BREAKER: breakers,
        i.IN_USE: {(name,): float(bulkhead.in_use) for name, bulkhead in runtime.bulkheads.items()},
        i.SIZE: {(name,): float(bulkhead.size) for name, bulkhead in runtime.bulkheads.items()},
        i.IN_FLIGHT: {(): float(in_flight)},
        i.LATE: {(): float(len(runtime.late))},
    }


def _capabilities(ports: Ports) -> Mapping[Labels, float]:
    identities = [listing.tool.contract.identity for listing in ports.catalog.list()]
    return {(f"{it.namespace}.{it.name}", it.version, tag): 1.0 for it in identities for tag in it.tags}
