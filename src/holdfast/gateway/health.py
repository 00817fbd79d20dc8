"""How well are the tools of a tenant, as its own calls found them? TEL-4.

Worked out beside the calls, from the view of them; selection asks `of`, which only looks it up.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.gateway.operators import operates
from holdfast.model import defaults
from holdfast.model.call import Principal
from holdfast.model.contract import Contract
from holdfast.model.signs import Latency
from holdfast.model.view import Traffic
from holdfast.model.visible import visible
from holdfast.ports import Ports, Signs, Views
from holdfast.telemetry.health import Health, of_tools, of_upstreams

__all__ = ["Health", "HealthDesk", "Look"]

MINUTE_S = 60.0
MOMENT_S = 2.0


Fresh = Callable[[], Awaitable[None]]
"""Takes into the view what was recorded last."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was found at one time in one tenant."""

    at: float = float("-inf")
    window: Sequence[Traffic] = ()
    tools: Mapping[str, Health] = field(default_factory=dict)
    """Those that were called."""
    contracts: Mapping[str, Contract] = field(default_factory=dict)
    """Of the same, the newest."""


@dataclass(frozen=True, slots=True)
class _Before:
    at: float
    latencies: Sequence[Latency]


class HealthDesk:
    """Hung on the gateway as `health`."""

    def __init__(self, views: Views, signs: Signs, ports: Ports, fresh: Fresh) -> None:
        self._views = views
        self._fresh = fresh
        self._signs = signs
        self._ports = ports
        self._looks: dict[str, Look] = {}
        self._before: dict[str, _Before] = {}

    def of(self, tenant: str, tool: str) -> float:
        """The score when it was last worked out, 0 to 1; 1 for what nobody knows anything against."""
        look = self._looks.get(tenant)
        found = None if look is None else look.tools.get(tool)
        return 1.0 if found is None else found.score

    def usual_ms(self, tenant: str, tool: str) -> float | None:
        """The 99th percentile of its latency when it was last worked out."""
        look = self._looks.get(tenant)
        found = None if look is None else look.tools.get(tool)
        return None if found is None else found.p99_ms

    def scores(self, tenant: str) -> dict[str, float]:
        """The same, of every tool that was called."""
        look = self._looks.get(tenant, Look())
        return {tool: health.score for tool, health in look.tools.items()}

    async def tools(self, by: Principal) -> list[Health]:
        """Of every tool that `by` may use, the worst first; for an operator, of every tool."""
        look = await self.fresh(by.tenant)
        names = {listing.tool.contract.tool for listing in self._ports.catalog.list()} | set(look.tools)
        shown = [_of(look, tool) for tool in names if self._may_see(by, tool)]
        return sorted(shown, key=_order)

    async def tool(self, by: Principal, tool: str) -> Health | None:
        """Of one tool; None where `by` may not use it."""
        return _of(await self.fresh(by.tenant), tool) if self._may_see(by, tool) else None

    async def upstreams(self, by: Principal) -> list[Health]:
        """The same, of the tools of a namespace together."""
        return sorted(of_upstreams({one.subject: one for one in await self.tools(by)}).values(), key=_order)

    async def fresh(self, tenant: str) -> Look:
        """With what was recorded last; what was found a moment ago is as good."""
        known = self._looks.get(tenant)
        if known is not None and 0 <= self._ports.clock.now() - known.at < MOMENT_S:
            return known
        await self._fresh()
        return await self.look(tenant)

    async def look(self, tenant: str) -> Look:
        """Work it out anew from what is in the view."""
        now = self._ports.clock.now()
        since = now - defaults.HEALTH_WINDOW_S
        window = await self._views.traffic(tenant, since, now + MINUTE_S)  # this one is not over yet
        contracts = self._contracts({row.tool for row in window if row.tool})
        tools = of_tools(window, await self._latencies(tenant, since, now), contracts) if window else {}
        found = self._looks[tenant] = Look(now, window, tools, contracts)
        return found

    async def _latencies(self, tenant: str, until: float, now: float) -> Sequence[Latency]:
        """A day of them changes little within a window: it is counted once in each."""
        known = self._before.get(tenant)
        if known is None or not 0 <= now - known.at < defaults.HEALTH_WINDOW_S:
            counted = await self._signs.latencies(tenant, until - defaults.BASELINE_S, until)
            known = self._before[tenant] = _Before(now, counted)
        return known.latencies

    def _contracts(self, tools: Iterable[str]) -> dict[str, Contract]:
        found = {tool: self._ports.catalog.find(tool, None) for tool in tools}
        return {tool: listing.tool.contract for tool, listing in found.items() if listing is not None}

    def _may_see(self, by: Principal, tool: str) -> bool:
        if operates(by, self._ports.people):
            return True
        listing = self._ports.catalog.find(tool, None)
        return listing is not None and visible(by, listing.tool.contract)


def _of(look: Look, tool: str) -> Health:
    """What was not called is well."""
    return look.tools.get(tool) or Health(subject=tool)


def _order(health: Health) -> tuple[float, int, str]:
    return health.score, -health.calls, health.subject
