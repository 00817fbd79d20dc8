"""What do MCP servers offer beside tools, and who may see it?

Resources, templates and prompts as the servers listed them last. Reading one is a governed call of its own;
whoever may not make that call is not shown what it would read.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.catalog.imports.poison import suspicions
from holdfast.config import Config
from holdfast.model.call import Principal
from holdfast.model.mcp import COMPANIONS, GET, LEVELS, READ
from holdfast.model.visible import visible
from holdfast.ports import Catalog, Listing

if TYPE_CHECKING:
    from holdfast.upstreams.mcp.listing import Snapshot
    from holdfast.upstreams.mcp.upstream import McpUpstream

log = logging.getLogger(__name__)

Listener = Callable[[str, str | None], None]


class Native:
    def __init__(self, config: Config, upstreams: "Mapping[str, McpUpstream]", catalog: Catalog) -> None:
        self._upstreams = upstreams
        self._catalog = catalog
        self._seen: dict[str, Snapshot] = {}
        self._listeners: list[Listener] = []
        self._subscribed: dict[tuple[str, str], int] = {}
        self._levels: dict[str, str] = {}
        self._hidden: dict[str, frozenset[str]] = {}
        self._pinned: dict[str, frozenset[str]] = {}
        self.prefixes: Mapping[str, str | None] = {n: u.prefix for n, u in config.upstreams.items()}

    def standing(self, name: str, *, hidden: frozenset[str], pinned: frozenset[str]) -> None:
        self._hidden[name], self._pinned[name] = hidden, pinned

    def unlisted(self, listing: Listing) -> bool:
        """Carries resources, prompts or completion, or is hidden by its overlay: no list shows it."""
        name = listing.tool.contract.identity.name
        carries = listing.native is None and name in COMPANIONS and listing.upstream in self._upstreams
        return carries or self.hidden(listing.upstream, name)

    def hidden(self, name: str, tool: str) -> bool:
        """Callable, but in no list: the overlay says so."""
        return tool in self._hidden.get(name, ())

    def pinned(self, name: str, tool: str) -> bool:
        """In the list, however long it is: the overlay says so."""
        return tool in self._pinned.get(name, ())

    def seen(self, name: str, snapshot: "Snapshot") -> None:
        self._seen[name] = snapshot

    @property
    def capabilities(self) -> dict[str, Any]:
        """What some server offers."""
        together: dict[str, Any] = {}
        for snapshot in self._seen.values():
            for name, details in snapshot.capabilities.items():
                known = together.setdefault(name, {})
                if isinstance(details, Mapping):
                    known.update({k: v for k, v in details.items() if v})
        return together

    @property
    def instructions(self) -> str | None:
        told = [s.instructions for s in self._seen.values() if s.instructions and not distrusted(s)]
        return "\n\n".join(told) or None

    def resources(self, principal: Principal) -> list[dict[str, Any]]:
        return self._listed(principal, READ, "resources")

    def templates(self, principal: Principal) -> list[dict[str, Any]]:
        return self._listed(principal, READ, "templates")

    def prompts(self, principal: Principal) -> list[tuple[str, dict[str, Any]]]:
        return [
            (name, dict(prompt))
            for name, snapshot in self._seen.items()
            if self._may(principal, name, GET)
            for prompt in snapshot.prompts
        ]

    def owner_of(self, uri: str) -> str | None:
        """The server that lists this resource, or has a template for it; the first one wins."""
        for name, snapshot in self._seen.items():
            if any(resource.get("uri") == uri for resource in snapshot.resources):
                return name
        for name, snapshot in self._seen.items():
            if any(_fits(str(t.get("uriTemplate", "")), uri) for t in snapshot.templates):
                return name
        offering = [n for n, s in self._seen.items() if s.capabilities.get("resources") is not None]
        return offering[0] if len(offering) == 1 else None

    # --- news -----------------------------------------------------------------------------

    def listen(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def changed(self, kind: str, uri: str | None = None) -> None:
        for listener in list(self._listeners):
            listener(kind, uri)

    def wanted(self, name: str, uri: str | None) -> bool:
        """Whether somebody subscribed to this there; what else a server says of resources is for nobody."""
        return (name, uri) in self._subscribed

    async def subscribe(self, name: str, uri: str) -> None:
        """Hear of a resource's changes; the server is asked once however many clients want to."""
        count = self._subscribed.get((name, uri), 0)
        self._subscribed[(name, uri)] = count + 1
        if count == 0:
            try:
                await self._upstreams[name].subscribe(uri)
            except BaseException:
                self._subscribed.pop((name, uri), None)
                raise

    async def unsubscribe(self, name: str, uri: str) -> None:
        count = self._subscribed.pop((name, uri), 0)
        if count > 1:
            self._subscribed[(name, uri)] = count - 1
        elif count == 1:
            await self._upstreams[name].unsubscribe(uri)

    async def set_level(self, session: str, level: str) -> None:
        """Servers are asked for the most that any client wants; each client is told no more than it wants."""
        before = self._least()
        self._levels[session] = level
        if self._least() != before:
            told = [n for n, s in self._seen.items() if s.capabilities.get("logging") is not None]
            asked = (self._upstreams[name].set_level(self._least()) for name in told)
            for name, said in zip(told, await asyncio.gather(*asked, return_exceptions=True), strict=True):
                if isinstance(said, BaseException):
                    log.info("upstream %s could not be told how much to log: %s", name, said)

    def forget(self, session: str) -> None:
        self._levels.pop(session, None)

    def _least(self) -> str:
        return min(self._levels.values(), key=LEVELS.index, default="")

    # --- who may see what -----------------------------------------------------------------

    def _listed(self, principal: Principal, tool: str, kind: str) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = []
        for name, snapshot in self._seen.items():
            if self._may(principal, name, tool):
                listed: Sequence[Mapping[str, Any]] = getattr(snapshot, kind)
                shown += [dict(one) for one in listed]
        return shown

    def _may(self, principal: Principal, name: str, tool: str) -> bool:
        listing = self._catalog.find(f"{name}.{tool}", None)
        if listing is None:
            return False
        return visible(principal, listing.tool.contract)


def distrusted(snapshot: "Snapshot") -> list[str]:
    """Why a server's instructions are not passed on: a model reads them before anything else."""
    return [str(one) for one in suspicions(snapshot.instructions or "") if one.degree != "note"]


def _fits(template: str, uri: str) -> bool:
    """Whether an RFC 6570 template could give this URI; the server itself decides for good."""
    parts = re.split(r"\{[^{}]*\}", template)
    return bool(template) and re.fullmatch(".+".join(map(re.escape, parts)), uri) is not None
