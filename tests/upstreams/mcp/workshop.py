"""A well-behaved MCP server on the SDK: what do real servers do with what we send?

Run as a program it serves stdio (`both` eras, or `legacy` alone); imported it is served over HTTP.
"""

import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import mcp_types as t
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

SIZED = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "text": {"type": "string"},
        "note": {"type": "string"},
    },
}
FORM: dict[str, Any] = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
NAMES = (
    "echo",
    "fail",
    "wait",
    "waits",
    "ask",
    "progress",
    "log",
    "crash",
    "grow",
    "unknown",
    "broken",
    "headers",
    "large",
)


@dataclass
class Workshop:
    """What the server saw, for tests in the same process."""

    waiting: anyio.Event = field(default_factory=anyio.Event)
    cancelled: anyio.Event = field(default_factory=anyio.Event)
    stopped: int = 0
    begun: int = 0
    grown: int = 0
    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    subscribed: list[str] = field(default_factory=list)

    async def tools(self, ctx: Any, params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
        names = (*NAMES, *(f"grown_{n}" for n in range(self.grown)))
        start = int(params.cursor) if params is not None and params.cursor else 0
        page = [t.Tool(name=name, input_schema=SIZED) for name in names[start : start + 5]]
        following = str(start + 5) if start + 5 < len(names) else None
        return t.ListToolsResult(tools=page, next_cursor=following)

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        self.begun += 1
        arguments = params.arguments or {}
        match params.name:
            case "echo":
                meta = {k: v for k, v in (ctx.meta or {}).items() if not k.startswith("io.modelcontext")}
                return said({"arguments": arguments, "meta": meta, "version": ctx.protocol_version})
            case "fail":
                text = t.TextContent(type="text", text="the drill is blunt")
                return t.CallToolResult(content=[text], is_error=True)
            case "wait":
                return await self._wait()
            case "waits":
                return said({"stopped": self.stopped, "begun": self.begun})
            case "ask":
                return await self._ask(ctx, params)
            case "progress":
                for step in (1, 2, 3):
                    await ctx.session.report_progress(step, 3, f"step {step}")
                return said({"steps": 3})
            case "log":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    await ctx.session.send_log_message("info", "cutting", related_request_id=ctx.request_id)
                return said({"logged": True})
            case "crash":
                sys.stderr.write(f"going down with {arguments.get('text', 'nothing')}\n")
                sys.stderr.flush()
                os._exit(3)
            case "grow":
                self.grown += 1
                await self.bus.publish(ToolsListChanged())
                if ctx.protocol_version < "2026":
                    await ctx.session.send_tool_list_changed()
                return said({"grown": self.grown})
            case "headers":
                return said(dict(ctx.request.headers))
            case "large":
                return said({"text": "x" * (17 * 1024 * 1024)})
            case "broken":
                raise RuntimeError("the bench broke")
        raise MCPError(t.INVALID_PARAMS, f"no tool called {params.name} with {arguments.get('text')}")

    async def _wait(self) -> Any:
        self.waiting.set()
        try:
            await anyio.Event().wait()
        finally:
            self.stopped += 1
            self.cancelled.set()
        raise AssertionError

    async def _ask(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        if ctx.protocol_version < "2026":
            got = await ctx.session.elicit_form("Which color?", FORM, related_request_id=ctx.request_id)
            return said({"action": got.action, "content": got.content})
        if params.input_responses and params.request_state == "asked":
            answer: Any = params.input_responses["color"]
            return said({"action": answer.action, "content": answer.content})
        form = t.ElicitRequestFormParams(message="Which color?", requested_schema=FORM)
        question = t.ElicitRequest(params=form)
        return t.InputRequiredResult(input_requests={"color": question}, request_state="asked")

    async def resources(self, ctx: Any, params: Any) -> t.ListResourcesResult:
        return t.ListResourcesResult(resources=[t.Resource(uri="shop://plan", name="plan")])

    async def templates(self, ctx: Any, params: Any) -> t.ListResourceTemplatesResult:
        found = t.ResourceTemplate(uri_template="shop://part/{id}", name="part")
        return t.ListResourceTemplatesResult(resource_templates=[found])

    async def read(self, ctx: Any, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        return t.ReadResourceResult(contents=[t.TextResourceContents(uri=params.uri, text="a plan")])

    async def subscribe(self, ctx: Any, params: t.SubscribeRequestParams) -> t.EmptyResult:
        self.subscribed.append(str(params.uri))
        await ctx.session.send_resource_updated(params.uri)
        return t.EmptyResult()

    async def prompts(self, ctx: Any, params: Any) -> t.ListPromptsResult:
        return t.ListPromptsResult(prompts=[t.Prompt(name="greet")])

    async def prompt(self, ctx: Any, params: t.GetPromptRequestParams) -> t.GetPromptResult:
        text = t.TextContent(type="text", text=f"hello {(params.arguments or {}).get('who')}")
        return t.GetPromptResult(messages=[t.PromptMessage(role="user", content=text)])

    async def complete(self, ctx: Any, params: t.CompleteRequestParams) -> t.CompleteResult:
        values = [word for word in ("red", "rose") if word.startswith(params.argument.value)]
        return t.CompleteResult(completion=t.Completion(values=values))

    def server(self) -> Server[Any]:
        built: Server[Any] = Server(
            "workshop",
            version="1.2.3",
            instructions="Mind your fingers.",
            get_tool_input_schema=lambda name: SIZED,
            on_list_tools=self.tools,
            on_call_tool=self.call,
            on_list_resources=self.resources,
            on_list_resource_templates=self.templates,
            on_read_resource=self.read,
            on_subscribe_resource=self.subscribe,
            on_subscriptions_listen=ListenHandler(self.bus),
            on_list_prompts=self.prompts,
            on_get_prompt=self.prompt,
            on_completion=self.complete,
        )
        return built


def said(data: Mapping[str, Any]) -> t.CallToolResult:
    return t.CallToolResult(content=[], structured_content=dict(data))


async def main(era: str) -> None:
    server = Workshop().server()
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write):
        if era == "legacy":
            async with server.lifespan(server) as state:
                await serve_loop(server, read, write, lifespan_state=state, init_options=options)
        else:
            await server.run(read, write, options)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
