"""Where do tools live, how are they, and how is one started anew?"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from holdfast.gateway.auditing import ALL_TENANTS, Auditing
from holdfast.gateway.operators import need_operator, operates
from holdfast.model.call import Principal
from holdfast.model.errors import HoldfastError, NotFound
from holdfast.model.visible import visible
from holdfast.ports import Listing, Ports, Upstream

if TYPE_CHECKING:
    from holdfast.upstreams.mcp.owner import State

HERE = "here"
"""The state of an upstream that runs in this process: it cannot be away."""


@runtime_checkable
class Startable(Protocol):
    """An upstream that is connected to, and can be connected to again."""

    @property
    def state(self) -> "State": ...
    @property
    def last_error(self) -> str | None: ...
    @property
    def starts(self) -> int: ...
    @property
    def place(self) -> str: ...
    def restart(self) -> None: ...


class Breaker(Protocol):
    @property
    def state(self) -> str: ...


class Bulkhead(Protocol):
    size: int

    @property
    def in_use(self) -> int: ...


class Running(Protocol):
    """What of the runtime is looked at; nothing here runs a tool."""

    @property
    def upstreams(self) -> Mapping[str, Upstream]: ...
    @property
    def breakers(self) -> Mapping[str, Breaker]: ...
    @property
    def bulkheads(self) -> Mapping[str, Bulkhead]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSeen:
    """One upstream, as this process sees it."""

    name: str
    state: str
    """`here`, `connecting`, `ready` or `down`."""
    tools: tuple[Listing, ...]
    """All for an operator, else what the reader may use."""
    in_use: int
    size: int
    """Calls it takes at once."""
    breakers: dict[str, str]
    """By tool; a tool that was not called yet has none."""
    restarts: bool = False
    """Whether the reader may start it anew."""
    starts: int = 0
    place: str = ""
    """For operators."""
    error: str = ""
    """Why it is down; for operators."""


class UpstreamDesk:
    """Hung on the gateway as `upstreams`."""

    def __init__(self, ports: Ports, runtime: Running, auditing: Auditing) -> None:
        self._ports = ports
        self._runtime = runtime
        self._auditing = auditing

    def list(self, by: Principal) -> list[UpstreamSeen]:
        """Every one for an operator, else those with a tool that `by` may use."""
        everything = operates(by, self._ports.people)
        tools: dict[str, list[Listing]] = {}
        for listing in self._ports.catalog.list():
            if everything or visible(by, listing.tool.contract):
                tools.setdefault(listing.upstream, []).append(listing)
        names = sorted(self._runtime.upstreams)
        return [
            self._seen(name, tuple(tools.get(name, ())), everything)
            for name in names
            if everything or name in tools
        ]

    async def restart(self, by: Principal, name: str) -> None:
        """End the connection to an MCP server, or its process, and begin another at once.

        Calls that are under way there lose their answer: they become unknown, and are settled.
        """
        need_operator(by, self._ports.people)
        upstream = self._runtime.upstreams.get(name)
        if upstream is None:
            raise NotFound(f"there is no upstream {name[:64]!r} here")
        if not isinstance(upstream, Startable):
            raise HoldfastError(f"{name!r} runs in this process; it starts anew with the gateway")
        await self._auditing.note(ALL_TENANTS, "restart", by.user, upstream=name)
        upstream.restart()

    def _seen(self, name: str, tools: tuple[Listing, ...], everything: bool) -> UpstreamSeen:
        upstream, bulkhead = self._runtime.upstreams[name], self._runtime.bulkheads.get(name)
        known = {listing.tool.contract.tool for listing in tools}
        breakers = {tool: one.state for tool, one in self._runtime.breakers.items() if tool in known}
        size = upstream.concurrency if bulkhead is None else bulkhead.size
        use = 0 if bulkhead is None else bulkhead.in_use
        seen = UpstreamSeen(name=name, state=HERE, tools=tools, in_use=use, size=size, breakers=breakers)
        if not isinstance(upstream, Startable):
            return seen
        seen = replace(seen, state=upstream.state, starts=upstream.starts, restarts=everything)
        if not everything:
            return seen
        return replace(seen, place=upstream.place, error=upstream.last_error or "")
