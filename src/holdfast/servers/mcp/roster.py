"""Which tools are there now, by their MCP names?

Known from the start, before any client asks: names are checked then, and who has one keeps it.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.model.call import Principal
from holdfast.servers.mcp.names import Names, Prefixes

if TYPE_CHECKING:
    from holdfast.gateway import Gateway

log = logging.getLogger(__name__)

EVERYBODY = Principal(user="holdfast", agent="mcp", scopes=frozenset({"**"}), system=True)
"""Sees every tool, so that names are the same for all; it calls nothing."""


class Roster:
    def __init__(self, gateway: "Gateway") -> None:
        """Raises ConfigError where two tools would have one name."""
        self._gateway = gateway
        self.prefixes: Prefixes = {name: one.prefix for name, one in gateway.config.upstreams.items()}
        self.names = self._read().checked()
        self._stop: Callable[[], None] | None = None

    def open(self) -> None:
        """Hear of changes; must run in the event loop."""
        if self._stop is None and self._gateway.native is not None:
            self._stop = self._gateway.native.listen(self._changed)

    def close(self) -> None:
        if self._stop is not None:
            self._stop()

    def _read(self, before: Names | None = None) -> Names:
        """Who had a name before keeps it: a newcomer with that name gets no calls meant for others."""
        listings = self._gateway.tools(EVERYBODY)
        if before is not None:
            listings.sort(key=lambda one: one.tool.contract.tool not in before.by_tool)
        return Names(listings, self.prefixes, self._gateway.config.pins)

    def _changed(self, kind: str, _: str | None) -> None:
        if kind != "tools":
            return
        self.names = self._read(self.names)
        for collision in self.names.collisions:
            log.error("%s; until then the one that was there first is meant", collision)
