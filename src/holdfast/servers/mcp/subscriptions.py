"""Who wants to hear that a list or a resource has changed, and how are they told?

A modern client opens a stream and names what it wants. An older one is told of lists as soon as it is
connected, and of the resources it subscribed to. Both hear it from the same bus.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from holdfast.model.mcp import READ
from holdfast.servers.mcp.errors import no_resource, wrong
from holdfast.servers.mcp.exchange import connection

if TYPE_CHECKING:
    from mcp.server.connection import Connection

    from holdfast.servers.mcp.exchange import Exchange
    from holdfast.servers.mcp.hub import Hub

log = logging.getLogger(__name__)

LISTS: dict[str, ServerEvent] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}
MOST = 1000
"""Resources one client may subscribe to."""
SUBSCRIBED = "holdfast/subscribed"
"""Where a connection keeps the resources it subscribed to, and whose they are."""


def event(kind: str, uri: str | None) -> ServerEvent | None:
    if kind == "resource":
        return None if uri is None else ResourceUpdated(uri)
    return LISTS.get(kind)


class Outbox:
    """What one older client is still to be told. One that does not listen keeps nobody else waiting, and what
    it has not heard yet is not told twice."""

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self._waiting: dict[tuple[str, str | None], None] = {}
        self._telling: asyncio.Task[None] | None = None

    def put(self, method: str, uri: str | None) -> None:
        self._waiting[(method, uri)] = None
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        while self._waiting:
            method, uri = next(iter(self._waiting))
            del self._waiting[(method, uri)]
            await self.connection.notify(method, None if uri is None else {"uri": uri})

    def close(self) -> None:
        self._waiting.clear()
        if self._telling is not None:
            self._telling.cancel()


class Subscriptions:
    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self.bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self.bus)
        self._legacy: dict[int, Outbox] = {}

    async def publish(self, news: ServerEvent) -> None:
        await self.bus.publish(news)
        for connected in list(self._legacy.values()):
            if isinstance(news, ResourceUpdated):
                if news.uri in connected.connection.state.get(SUBSCRIBED, ()):
                    connected.put("notifications/resources/updated", news.uri)
            else:
                name = next(name for name, one in LISTS.items() if one == news)
                connected.put(f"notifications/{name}/list_changed", None)

    def close(self) -> None:
        """End every stream that would stay open for ever."""
        self._listening.close()

    # --- older clients ------------------------------------------------------------------

    def connected(self, context: Any) -> None:
        """A client of the older era is ready: from now on it hears of lists."""
        one = connection(context)
        self._legacy.setdefault(id(one), Outbox(one))
        one.exit_stack.push_async_callback(self._left, one)

    async def _left(self, one: "Connection") -> None:
        if (outbox := self._legacy.pop(id(one), None)) is not None:
            outbox.close()
        for uri, namespace in one.state.pop(SUBSCRIBED, {}).items():
            await self._unsubscribe(namespace, uri)

    async def subscribe(self, exchange: "Exchange") -> dict[str, Any]:
        uri = str(exchange.params["uri"])
        subscribed = exchange.line.connection.state.setdefault(SUBSCRIBED, {})
        if uri not in subscribed:
            namespace = self._owner(exchange, uri)
            if len(subscribed) >= MOST:
                raise wrong(f"{MOST} resources are subscribed to already; unsubscribe from some")
            if namespace is None:
                raise no_resource(uri, modern=exchange.modern)
            subscribed[uri] = namespace
            try:
                await self._hub.native.subscribe(namespace, uri)
            except BaseException:
                subscribed.pop(uri, None)
                raise
        return {}

    async def unsubscribe(self, exchange: "Exchange") -> dict[str, Any]:
        uri = str(exchange.params["uri"])
        namespace = exchange.line.connection.state.get(SUBSCRIBED, {}).pop(uri, None)
        if namespace is not None:
            await self._unsubscribe(namespace, uri)
        return {}

    # --- modern clients -----------------------------------------------------------------

    async def listen(
        self, context: Any, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """One stream of news; resources of others are not subscribed to, as if they were not there."""
        exchange: Exchange = context.lifespan_context
        uris = [] if self._hub.gateway.native is None else params.notifications.resource_subscriptions or []
        if len(uris) > MOST:
            raise wrong(f"more than {MOST} resources cannot be listened to at once")
        owned = {uri: owner for uri in uris if (owner := self._owner(exchange, uri)) is not None}
        held: list[tuple[str, str]] = []
        narrowed = params.notifications.model_copy(update={"resource_subscriptions": list(owned) or None})
        try:
            for uri, namespace in owned.items():
                await self._hub.native.subscribe(namespace, uri)
                held.append((namespace, uri))
            return await self._listening(context, params.model_copy(update={"notifications": narrowed}))
        finally:
            for namespace, uri in held:
                self._hub.later(self._unsubscribe(namespace, uri))

    def _owner(self, exchange: "Exchange", uri: str) -> str | None:
        """Whose resource it is, for somebody who may read there."""
        namespace = self._hub.native.owner_of(uri)
        if namespace is None or not self._hub.may(exchange.principal, f"{namespace}.{READ}"):
            return None
        return namespace

    async def _unsubscribe(self, namespace: str, uri: str) -> None:
        try:
            await self._hub.native.unsubscribe(namespace, uri)
        except Exception as error:  # it is down, slow, or does not know that anybody subscribed
            log.debug("upstream %s was not told of an ended subscription: %s", namespace, error)
