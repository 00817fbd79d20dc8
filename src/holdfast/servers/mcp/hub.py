"""What do all MCP requests of one process share?

The gateway they go through, the names tools have here, calls that wait for their clients, and who listens
for news.
"""

import asyncio
import logging
from collections.abc import Coroutine
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from holdfast.model.call import Principal
from holdfast.servers.mcp.aliases import Aliases
from holdfast.servers.mcp.delivery import Delivery
from holdfast.servers.mcp.http import SENDER
from holdfast.servers.mcp.names import Entry, Names
from holdfast.servers.mcp.parked import Parking
from holdfast.servers.mcp.roster import Roster
from holdfast.servers.mcp.shown import descriptor
from holdfast.servers.mcp.subscriptions import Subscriptions, event

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.connection import Connection

    from holdfast.gateway import Gateway
    from holdfast.gateway.native import Native

log = logging.getLogger(__name__)


class Hub:
    def __init__(self, gateway: "Gateway", command: str = "holdfast", roster: Roster | None = None) -> None:
        self.gateway = gateway
        self.environment = gateway.config.environment
        self.command = command
        """How people here call the command line."""
        self._roster = roster or Roster(gateway)
        self.prefixes = self._roster.prefixes
        self.aliases = Aliases(self)
        self.parking = Parking(gateway)
        self.subscriptions = Subscriptions(self)
        self.awaiting: dict[Any, Delivery] = {}
        """Answers on their way to a client that is reached without HTTP, by request."""
        self.connections: dict[str, Connection] = {}
        """Clients of the older era that are connected, by the SDK's id of their session."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stop: Callable[[], None] | None = None

    @property
    def names(self) -> Names:
        return self._roster.names

    def open(self) -> None:
        """Hear of changes; must run in the event loop."""
        self._roster.open()  # hears of them first
        if self.gateway.native is not None:
            self._stop = self.gateway.native.listen(self._changed)

    def close(self) -> None:
        if self._stop is not None:
            self._stop()
        self._roster.close()
        self.parking.close()
        self.subscriptions.close()

    @property
    def native(self) -> "Native":
        """What upstreams offer beside tools; handlers that need it are served only where it is there."""
        found = self.gateway.native
        assert found is not None  # noqa: S101  # see `server.Served.get_request_handler`
        return found

    async def find(self, name: str) -> Entry | None:
        """The tool of this name; one that is not known makes its upstream list its tools again, once."""
        if (known := self.names.by_name.get(name) or self.aliases.find(name)) is not None:
            return known
        for namespace, upstream in self.gateway.config.upstreams.items():
            prefix = namespace if upstream.prefix is None else upstream.prefix
            if upstream.mcp is not None and (not prefix or name.startswith(f"{prefix}__")):
                await self.gateway.look_again(namespace)
        return self.names.by_name.get(name)

    def pinned(self, entry: Entry) -> bool:
        """An operator wants it in every list, by the configuration or by its overlay."""
        identity, native = entry.listing.tool.contract.identity, self.gateway.native
        if native is not None and native.pinned(identity.namespace, identity.name):
            return True
        return any(fnmatchcase(entry.tool, pattern) for pattern in self.gateway.config.mcp.pinned)

    def connected(self, one: "Connection") -> None:
        """A client of the older era has opened a session."""
        if one.session_id is not None:
            self.connections[one.session_id] = one
            one.exit_stack.callback(self.connections.pop, one.session_id, None)

    def arrived(self, request_id: Any) -> None:
        delivery = self.awaiting.pop(request_id, None)
        if delivery is not None:
            delivery.ended(True)

    def may(self, principal: Principal, tool: str) -> bool:
        return self.gateway.may_use(principal, tool)

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """For the SDK, which compares headers of a call with its arguments, before it asks who sent it."""
        entry, sender = self.names.by_name.get(name), SENDER.get()
        if entry is None or sender is None or not self.may(sender, entry.tool):
            return None
        return descriptor(entry).get("inputSchema")

    def later(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something that nobody waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _changed(self, kind: str, uri: str | None) -> None:
        news = event(kind, uri)
        if news is not None:
            self.later(self.subscriptions.publish(news))
