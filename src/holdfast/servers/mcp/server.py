"""Which methods does the MCP server have, and how do its results leave it whole?

Built on the SDK's low-level `Server`, which serves both eras from one set of handlers. Its runner checks a
request, finds the handler, and passes the result through a model of the protocol version that drops every
member it does not know. A gateway must pass on what it does not know. So a handler leaves its finished result
on the exchange and returns an empty one; the runner checks that and stamps it with what its era wants; and
`Whole`, the outermost middleware, puts the real result in its place. The runner trusts what a middleware
returns. Requests are still checked by the SDK, handshakes are still kept, nothing of it is patched.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import mcp_types as t
from mcp.server.lowlevel import NotificationOptions, Server

from holdfast.model.call import Principal
from holdfast.servers.mcp import calls, levels, listing, prompts, resources, tasks
from holdfast.servers.mcp.delivery import Delivery
from holdfast.servers.mcp.errors import told
from holdfast.servers.mcp.exchange import Exchange, connection, exchanged
from holdfast.servers.mcp.http import VISIT
from holdfast.servers.mcp.hub import Hub
from holdfast.servers.mcp.results import enveloped

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.lowlevel.server import HandlerEntry

SESSION = "holdfast/session"

Handler = Callable[[Hub, Exchange], Awaitable[dict[str, Any]]]
Sender = Callable[[], Principal]
"""Who is at the other end now."""

EMPTY: Mapping[str, t.Result] = {
    "tools/list": t.ListToolsResult(tools=[]),
    "tools/call": t.CallToolResult(content=[]),
    "resources/list": t.ListResourcesResult(resources=[]),
    "resources/templates/list": t.ListResourceTemplatesResult(resource_templates=[]),
    "resources/read": t.ReadResourceResult(contents=[]),
    "prompts/list": t.ListPromptsResult(prompts=[]),
    "prompts/get": t.GetPromptResult(messages=[]),
    "completion/complete": t.CompleteResult(completion=t.Completion(values=[])),
}
"""What the runner checks instead of the real result."""

PARAMS: Mapping[str, type[t.RequestParams]] = {
    "tools/list": t.PaginatedRequestParams,
    "tools/call": t.CallToolRequestParams,
    "resources/list": t.PaginatedRequestParams,
    "resources/templates/list": t.PaginatedRequestParams,
    "resources/read": t.ReadResourceRequestParams,
    "resources/subscribe": t.SubscribeRequestParams,
    "resources/unsubscribe": t.UnsubscribeRequestParams,
    "prompts/list": t.PaginatedRequestParams,
    "prompts/get": t.GetPromptRequestParams,
    "completion/complete": t.CompleteRequestParams,
    "logging/setLevel": t.SetLevelRequestParams,
    "tasks/get": tasks.TaskParams,
    "tasks/update": tasks.TaskParams,
    "tasks/cancel": tasks.TaskParams,
}

HANDLERS: Mapping[str, Handler] = {
    "tools/list": listing.list_tools,
    "tools/call": calls.call_tool,
    "resources/list": resources.list_resources,
    "resources/templates/list": resources.list_templates,
    "resources/read": resources.read_resource,
    "resources/subscribe": lambda hub, exchange: hub.subscriptions.subscribe(exchange),
    "resources/unsubscribe": lambda hub, exchange: hub.subscriptions.unsubscribe(exchange),
    "prompts/list": prompts.list_prompts,
    "prompts/get": prompts.get_prompt,
    "completion/complete": prompts.complete,
    "logging/setLevel": levels.set_level,
    "tasks/get": tasks.get,
    "tasks/update": tasks.update,
    "tasks/cancel": tasks.cancel,
}

CACHEABLE = ("tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list")
OFFERED_BY = {
    "resources": "resources",
    "prompts": "prompts",
    "completion": "completions",
    "logging": "logging",
}
"""The first word of a method, and the capability some upstream must have for it to be served here."""


class Served(Server[Any]):
    """The server of one hub. What upstreams offer comes and goes, so it is looked up with every request."""

    def __init__(self, hub: Hub, sender: Sender | None) -> None:
        super().__init__(
            "holdfast",
            version=version("holdfast"),
            title="Holdfast",
            get_tool_input_schema=hub.input_schema,
            on_subscriptions_listen=hub.subscriptions.listen,
        )
        self.hub = hub
        self.middleware = [Whole(hub, sender)]  # instead of the SDK's spans: the gateway has its own
        for method, params in PARAMS.items():
            self.add_request_handler(method, params, _leaving(hub, method, HANDLERS[method]))

    def get_request_handler(self, method: str) -> "HandlerEntry[Any] | None":
        capability = OFFERED_BY.get(method.partition("/")[0])
        if capability is not None and capability not in self._offered():
            return None
        return super().get_request_handler(method)

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> t.ServerCapabilities:
        """Asked for with a version in the modern era only."""
        offered, modern = self._offered(), protocol_version is not None
        reads = offered.get("resources")
        subscribes = isinstance(reads, Mapping) and (modern or bool(reads.get("subscribe")))
        return t.ServerCapabilities(
            tools=t.ToolsCapability(list_changed=True),
            resources=None
            if reads is None
            else t.ResourcesCapability(subscribe=subscribes, list_changed=True),
            prompts=t.PromptsCapability(list_changed=True) if "prompts" in offered else None,
            completions=t.CompletionsCapability() if "completions" in offered else None,
            logging=t.LoggingCapability() if "logging" in offered else None,
            extensions={tasks.EXTENSION: {}} if modern else None,
            experimental=experimental_capabilities,
        )

    @property
    def instructions(self) -> str | None:
        native = self.hub.gateway.native
        return None if native is None else native.instructions

    @instructions.setter
    def instructions(self, value: str | None) -> None:
        """The SDK's constructor sets it; what upstreams say is what is told."""

    def _offered(self) -> Mapping[str, Any]:
        native = self.hub.gateway.native
        return {} if native is None else native.capabilities


class Whole:
    """The outermost middleware: says who is there, and puts finished results in the place of empty ones."""

    def __init__(self, hub: Hub, sender: Sender | None) -> None:
        self._hub = hub
        self._sender = sender
        """Who is there where requests do not say: at the other end of stdin. Asked for every request."""

    async def __call__(self, ctx: "ServerRequestContext[Any, Any]", call_next: "CallNext") -> "HandlerResult":
        if ctx.request_id is None:
            said = await call_next(ctx)
            if ctx.method == "notifications/initialized":
                self._hub.subscriptions.connected(ctx)
                self._hub.connected(connection(ctx))
            return said
        exchange = self._exchange(ctx)
        try:
            stamped = await call_next(replace(ctx, lifespan_context=exchange))
        except asyncio.CancelledError:  # nobody waits, and nobody is answered
            if (delivery := self._hub.awaiting.pop(ctx.request_id, None)) is not None:
                delivery.ended(False)
            raise
        except Exception as error:
            raise told(error, ctx.method) from error
        if exchange.whole is None or not isinstance(stamped, dict):
            return stamped
        stamp = stamped.get("_meta", {}) if exchange.modern else None
        return enveloped(exchange.whole, stamp, keeps=ctx.method in CACHEABLE)

    def _exchange(self, ctx: "ServerRequestContext[Any, Any]") -> Exchange:
        scope = {} if ctx.request is None else ctx.request.scope
        visit = scope.get(VISIT)
        if visit is not None:
            principal = visit.principal
        elif self._sender is not None:
            principal = self._sender()
        else:
            raise RuntimeError("a request came by without anybody having looked who sent it")
        if visit is None:
            delivery = self._hub.awaiting[ctx.request_id] = Delivery(self._hub.gateway, principal)
        else:
            delivery = visit.delivery
        exchange = exchanged(ctx, principal, delivery)
        if visit is None or visit.session is None:
            exchange.session = _session(exchange)
        else:
            exchange.session, exchange.asks = visit.session.name, visit.session.asks
        return exchange


def build(hub: Hub, sender: Sender | None = None) -> Served:
    return Served(hub, sender)


def _leaving(hub: Hub, method: str, handler: Handler) -> Any:
    async def handle(ctx: "ServerRequestContext[Any, Any]", params: Any) -> t.Result:
        exchange: Exchange = ctx.lifespan_context
        exchange.whole = await handler(hub, exchange)
        return EMPTY.get(method, t.EmptyResult())

    return handle


def _session(exchange: Exchange) -> str:
    """One name for one connection. A modern request stands alone: its connection is made for it."""
    state = exchange.line.connection.state
    name = state.get(SESSION)
    if name is None:
        name = state[SESSION] = token_hex(16)
    return str(name)
