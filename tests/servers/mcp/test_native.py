"""Does everything beside tools pass through, from a real server to a real client?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp.server.subscriptions import ResourceUpdated, ToolsListChanged
from mcp_types import PromptReference, ResourceTemplateReference

from holdfast.gateway import Gateway
from holdfast.servers.app import build
from tests.requirements import requirement
from tests.servers.mcp.archive import Archive
from tests.servers.mcp.conftest import ERAS, Connect
from tests.servers.mcp.raw import LEGACY, MODERN, speaking
from tests.servers.serving import Served, serving

PEOPLE = {
    "ann": {"scopes": ["**"], "trust": 80},
    "bob": {"scopes": ["nothing:here"], "trust": 80},
}


@pytest.fixture
def archive() -> Archive:
    return Archive()


@pytest.fixture
def prefix() -> str | None:
    return None


@pytest.fixture
async def gateway(tmp_path: Path, archive: Archive, prefix: str | None) -> AsyncIterator[Gateway]:
    """Ends before its upstream does, however the test went."""
    stopped, opened = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def held() -> None:
        async with AsyncExitStack() as stack:
            url = await stack.enter_async_context(archive.served())
            upstream: dict[str, Any] = {"mcp": {"url": url}, "trust_annotations": True}
            if prefix is not None:
                upstream["prefix"] = prefix
            config = {
                "store": f"sqlite:///{tmp_path}/holdfast.db",
                "lock": str(tmp_path / "holdfast.lock"),
                "auth": {"mode": "local", "people": PEOPLE},
                "upstreams": {"archive": upstream},
            }
            opened.set_result(await stack.enter_async_context(Gateway.open(config)))
            await stopped.wait()

    holding = asyncio.create_task(held())
    await asyncio.wait((holding, opened), return_when=asyncio.FIRST_COMPLETED)
    if holding.done():
        await holding
    yield await opened
    stopped.set()
    await holding


@pytest.fixture
async def served(gateway: Gateway) -> AsyncIterator[Served]:
    app = build(gateway)
    async with app.state.mcp.running(), serving(app) as one:
        yield one


@ERAS
@requirement("NAM-5", "PRO-1")
async def test_a_tools_own_descriptor_and_answer_come_through(served: Served, era: str) -> None:
    async with speaking(served, era) as line:
        [tool] = (await line.ask("tools/list"))["result"]["tools"]
        result = (await line.ask("tools/call", {"name": "archive__find", "arguments": {"name": "x"}}))[
            "result"
        ]
    assert tool["name"] == "archive__find"
    assert (tool["title"], tool["_meta"]) == ("Find", {"archive/shelf": 7})
    assert result["content"] == [{"type": "text", "text": "find done"}]
    assert result["_meta"]["holdfast/observation"]["tool"] == "archive.find"
    stamp = result["_meta"].get("io.modelcontextprotocol/serverInfo", {}).get("name")
    assert stamp == ("holdfast" if era == MODERN else None)


@ERAS
@requirement("PRO-1")
async def test_resources_are_listed_and_read_under_their_own_uris(
    connect: Connect, era: str, archive: Archive
) -> None:
    async with connect(era) as client:
        assert client.instructions == "the archive is kind"
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        templates = (await client.list_resource_templates()).resource_templates
        one = await client.read_resource("memo://one")
        by = await client.read_resource("memo://by/ada")
    assert listed == ["memo://one", "memo://two"]
    assert [template.uri_template for template in templates] == ["memo://by/{name}"]
    assert [result.contents[0].text for result in (one, by)] == ["first", "by ada"]  # type: ignore[union-attr]
    assert (one.meta or {})["holdfast/observation"]["tool"] == "archive.mcp-resources-read"
    assert archive.asked == [("read", "memo://one"), ("read", "memo://by/ada")]


@requirement("AUT-6", "PRO-1")
async def test_what_one_may_read_is_never_cached_for_others_whatever_the_upstream_says(
    served: Served,
) -> None:
    async with speaking(served, MODERN) as line:
        result = (await line.ask("resources/read", {"uri": "memo://one"}))["result"]
    assert (result["cacheScope"], result["ttlMs"]) == ("private", 5000)


@pytest.mark.parametrize(("era", "code"), [(LEGACY, -32002), (MODERN, -32602)])
@pytest.mark.parametrize("uri", ["memo://nothing", "other://x"])
@requirement("PRO-1")
async def test_a_resource_that_is_not_there_is_told_as_its_era_expects(
    served: Served, era: str, code: int, uri: str
) -> None:
    async with speaking(served, era) as line:
        error = (await line.ask("resources/read", {"uri": uri}))["error"]
    assert (error["code"], error["data"]) == (code, {"uri": uri})


@ERAS
@requirement("PRO-1", "SEL-4")
async def test_who_may_not_read_there_sees_nothing_and_gets_nothing(
    connect: Connect, era: str, archive: Archive
) -> None:
    async with connect(era, user="bob") as client:
        assert (await client.list_resources()).resources == []
        assert (await client.list_resource_templates()).resource_templates == []
        assert (await client.list_prompts()).prompts == []
        for attempt in (
            lambda: client.read_resource("memo://one"),
            lambda: client.get_prompt("archive__greet"),
        ):
            with pytest.raises(MCPError, match="not yours"):
                await attempt()
    assert archive.asked == []


@ERAS
@requirement("PRO-1", "NAM-5")
async def test_a_prompt_has_its_upstreams_prefix_and_comes_as_it_was(
    connect: Connect, era: str, archive: Archive
) -> None:
    async with connect(era) as client:
        [prompt] = (await client.list_prompts()).prompts
        got = await client.get_prompt("archive__greet", {"name": "Ada"})
    assert prompt.name == "archive__greet"
    assert got.messages[0].content.text == "hello Ada"  # type: ignore[union-attr]
    assert archive.asked == [("prompt", ("greet", {"name": "Ada"}))]


@ERAS
@requirement("PRO-1")
async def test_completion_knows_the_upstream_by_prompt_and_by_template(
    connect: Connect, era: str, archive: Archive
) -> None:
    prompt = PromptReference(type="ref/prompt", name="archive__greet")
    template = ResourceTemplateReference(type="ref/resource", uri="memo://by/{name}")
    async with connect(era) as client:
        for ref in (prompt, template):
            done = await client.complete(ref, {"name": "name", "value": "A"})
            assert done.completion.values == ["Ada", "Alan"]
        with pytest.raises(MCPError, match="not yours"):
            await client.complete(PromptReference(type="ref/prompt", name="x"), {"name": "n", "value": ""})
    assert [asked["ref"].get("name") or asked["ref"]["uri"] for _, asked in archive.asked] == [
        "greet",
        "memo://by/{name}",
    ]


class News:
    """What a client of the older era hears between its requests."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        if (method := getattr(message, "method", None)) is not None:
            uri = getattr(message.params, "uri", None)
            self.heard.put_nowait(method if uri is None else f"{method} {uri}")

    async def next(self) -> str:
        return await asyncio.wait_for(self.heard.get(), 20)


@requirement("PRO-1", "REG-2")
async def test_an_older_client_hears_of_new_tools_and_can_call_them(
    connect: Connect, archive: Archive
) -> None:
    news = News()
    async with connect(LEGACY, message_handler=news) as client:
        archive.tools.append("sort")
        await archive.bus.publish(ToolsListChanged())
        assert await news.next() == "notifications/tools/list_changed"
        assert {tool.name for tool in (await client.list_tools()).tools} == {"archive__find", "archive__sort"}
        assert (await client.call_tool("archive__sort", {})).is_error is False


@requirement("PRO-1", "REG-2")
async def test_a_modern_client_listens_for_new_tools(connect: Connect, archive: Archive) -> None:
    async with connect() as client, client.listen(tools_list_changed=True) as events:
        archive.tools.append("sort")
        await archive.bus.publish(ToolsListChanged())
        assert await asyncio.wait_for(anext(aiter(events)), 20) == ToolsListChanged()
        assert {tool.name for tool in (await client.list_tools()).tools} == {"archive__find", "archive__sort"}


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@requirement("PRO-1")
async def test_an_older_client_hears_of_the_resources_it_subscribed_to(
    connect: Connect, archive: Archive
) -> None:
    news = News()
    async with connect(LEGACY, message_handler=news) as client:
        await client.session.subscribe_resource("memo://one")
        await archive.watched("memo://one")
        for uri in ("memo://two", "memo://one"):
            await archive.bus.publish(ResourceUpdated(uri))
        assert await news.next() == "notifications/resources/updated memo://one"
        await client.session.unsubscribe_resource("memo://one")
    async with connect(LEGACY, user="bob") as client:
        with pytest.raises(MCPError, match="not yours"):
            await client.session.subscribe_resource("memo://one")


@requirement("PRO-1")
async def test_a_modern_client_listens_for_the_resources_it_names_and_may_read(
    connect: Connect, archive: Archive
) -> None:
    async with (
        connect() as ann,
        connect(user="bob") as bob,
        ann.listen(resource_subscriptions=["memo://one"]) as hers,
        bob.listen(tools_list_changed=True, resource_subscriptions=["memo://one"]) as his,
    ):
        await archive.watched("memo://one")
        await archive.bus.publish(ResourceUpdated("memo://one"))
        assert await asyncio.wait_for(anext(aiter(hers)), 20) == ResourceUpdated("memo://one")
        archive.tools.append("sort")
        await archive.bus.publish(ToolsListChanged())
        assert await asyncio.wait_for(anext(aiter(his)), 20) == ToolsListChanged()


class TestMountedOneToOne:
    @pytest.fixture
    def prefix(self) -> str:
        return ""

    @ERAS
    @requirement("NAM-5")
    async def test_everything_keeps_the_name_the_upstream_gave_it(self, connect: Connect, era: str) -> None:
        async with connect(era) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["find"]
            assert (await client.call_tool("find", {})).is_error is False
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["greet"]
            assert (await client.get_prompt("greet", {"name": "Ada"})).messages


class TestHeaders:
    @pytest.fixture
    def archive(self) -> Archive:
        found = Archive()
        found.tools.append("headed")
        return found

    @requirement("PRO-1", "LIF-2")
    async def test_headers_are_held_to_the_arguments_only_where_the_tool_is_yours(
        self, served: Served, archive: Archive
    ) -> None:
        call = {"name": "archive__headed", "arguments": {"region": "eu"}}
        async with speaking(served, MODERN) as line:
            body, headers = line.request("tools/call", call)
            async with line.post(body, {**headers, "mcp-param-region": "us"}) as response:
                assert (await response.json())["error"]["code"] == -32020
            async with line.post(body, {**headers, "mcp-param-region": "eu"}) as response:
                assert "result" in await response.json()
            line.headers["x-holdfast-user"] = "bob"
            body, headers = line.request("tools/call", call)
            async with line.post(body, {**headers, "mcp-param-region": "us"}) as response:
                error = (await response.json())["error"]
        assert (error["code"], "not yours" in error["message"]) == (-32602, True)
        assert archive.asked == [("headed", {"region": "eu"})]
