"""A real MCP server behind the gateway: resources, prompts, completion, news, and tools that come and go."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as t
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ServerEvent
from mcp.shared.exceptions import MCPError

from tests.servers.serving import serving

OBJECT = {"type": "object", "properties": {"name": {"type": "string"}}}
HEADED = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


class Bus(InMemorySubscriptionBus):
    """Tells when somebody joined it."""

    def __init__(self) -> None:
        super().__init__()
        self.joined = asyncio.Event()

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        self.joined.set()
        return super().subscribe(listener)


class Archive:
    """What it has, and what it was asked."""

    def __init__(self, name: str = "archive") -> None:
        self.bus = Bus()
        self.tools = ["find"]
        self.texts = {"memo://one": "first", "memo://two": "second"}
        self.asked: list[tuple[str, Any]] = []
        self.server = Server(
            name,
            version="1",
            instructions=f"the {name} is kind",
            on_list_tools=self._tools,
            on_call_tool=self._call,
            on_list_resources=self._resources,
            on_list_resource_templates=self._templates,
            on_read_resource=self._read,
            on_list_prompts=self._prompts,
            on_get_prompt=self._prompt,
            on_completion=self._complete,
            on_subscriptions_listen=self._listen,
        )
        self._listening = ListenHandler(self.bus)
        self._wanted: list[str] = []

    async def _listen(self, ctx: Any, params: t.SubscriptionsListenRequestParams) -> Any:
        self._wanted = list(params.notifications.resource_subscriptions or [])
        return await self._listening(ctx, params)

    async def watched(self, uri: str) -> None:
        """Somebody listens for changes of this resource."""
        while uri not in self._wanted:
            self.bus.joined.clear()
            await self.bus.joined.wait()

    async def _tools(self, ctx: Any, params: Any) -> t.ListToolsResult:
        return t.ListToolsResult(
            tools=[
                t.Tool(
                    name=name,
                    title=name.title(),
                    description=f"{name} something in the archive",
                    input_schema=HEADED if name == "headed" else OBJECT,
                    annotations=t.ToolAnnotations(read_only_hint=True),
                    _meta={"archive/shelf": 7},
                )
                for name in self.tools
            ]
        )

    async def _call(self, ctx: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
        self.asked.append((params.name, params.arguments))
        return t.CallToolResult(content=[t.TextContent(type="text", text=f"{params.name} done")])

    async def _resources(self, ctx: Any, params: Any) -> t.ListResourcesResult:
        return t.ListResourcesResult(resources=[t.Resource(uri=uri, name=uri[7:]) for uri in self.texts])

    async def _templates(self, ctx: Any, params: Any) -> t.ListResourceTemplatesResult:
        template = t.ResourceTemplate(uri_template="memo://by/{name}", name="by name")
        return t.ListResourceTemplatesResult(resource_templates=[template])

    async def _read(self, ctx: Any, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        self.asked.append(("read", params.uri))
        text = f"by {params.uri[10:]}" if params.uri.startswith("memo://by/") else self.texts.get(params.uri)
        if text is None:
            raise MCPError(-32602, "no such memo")
        return t.ReadResourceResult(
            contents=[t.TextResourceContents(uri=params.uri, text=text)], ttl_ms=5000, cache_scope="public"
        )

    async def _prompts(self, ctx: Any, params: Any) -> t.ListPromptsResult:
        return t.ListPromptsResult(
            prompts=[t.Prompt(name="greet", arguments=[t.PromptArgument(name="name")])]
        )

    async def _prompt(self, ctx: Any, params: t.GetPromptRequestParams) -> t.GetPromptResult:
        self.asked.append(("prompt", (params.name, params.arguments)))
        text = t.TextContent(type="text", text=f"hello {(params.arguments or {}).get('name')}")
        return t.GetPromptResult(messages=[t.PromptMessage(role="user", content=text)])

    async def _complete(self, ctx: Any, params: t.CompleteRequestParams) -> t.CompleteResult:
        self.asked.append(("complete", params.model_dump(exclude_none=True, exclude={"meta"})))
        return t.CompleteResult(completion=t.Completion(values=["Ada", "Alan"], total=2, has_more=False))

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """On a port of this machine; gives the URL."""
        app = self.server.streamable_http_app()
        async with app.router.lifespan_context(app), serving(app) as one:
            yield f"{one.url}/mcp"
