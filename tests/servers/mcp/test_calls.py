"""What does an MCP client get from a call?"""

from typing import Any

import pytest
from mcp import MCPError

from holdfast.ports import Attempt
from tests.requirements import requirement
from tests.servers.mcp.conftest import ERAS, MODERN, Connect, seen, text
from tests.servers.mcp.office import NO, RAW, Office
from tests.servers.mcp.raw import speaking
from tests.servers.serving import Served

BOTH_WAYS = True


@ERAS
@requirement("PRO-1", "NAM-3", "NAM-5")
async def test_a_tool_is_listed_and_called_by_its_prefixed_name(
    connect: Connect, era: str, office: Office
) -> None:
    async with connect(era) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "office__count" in listed
        assert listed["office__count"].annotations.read_only_hint is True  # type: ignore[union-attr]
        result = await client.call_tool("office__note", {"text": "a"})
    assert (result.structured_content, result.is_error) == ({"number": 1, "nothing": None}, False)
    assert text(result) == '{"number":1,"nothing":null}'
    assert office.notes == ["a"]
    assert seen(result)["tool"] == "office.note"


@ERAS
@requirement("NAM-5")
async def test_the_upstreams_own_answer_comes_as_it_was_with_members_nobody_knows(
    served: Served, era: str
) -> None:
    async with speaking(served, era) as line:
        raw = (await line.ask("tools/call", {"name": "office__raw", "arguments": {}}))["result"]
    for member in ("content", "structuredContent", "isError", "x-unknown"):
        assert raw[member] == RAW[member]
    assert raw["_meta"]["upstream/own"] == 1
    observation = raw["_meta"]["holdfast/observation"]
    assert observation["status"] == "done"
    assert not {"data", "native"} & set(observation)
    assert raw.get("resultType") == ("complete" if era == MODERN else None)


@ERAS
@requirement("NAM-5", "VER-1")
async def test_a_tool_that_says_no_answers_in_its_own_words(served: Served, era: str) -> None:
    async with speaking(served, era) as line:
        raw = (await line.ask("tools/call", {"name": "office__failing"}))["result"]
    assert (raw["content"], raw["isError"], raw["x-why"]) == (NO["content"], True, "moon")
    assert raw["_meta"]["holdfast/observation"]["status"] == "failed"


@ERAS
@requirement("NAM-5")
async def test_a_refusal_is_one_readable_paragraph_that_says_what_to_do(connect: Connect, era: str) -> None:
    async with connect(era) as client:
        result = await client.call_tool("office__note", {"txt": "a"})
    assert result.is_error is True
    assert "'/text' is required" in text(result)
    assert "Correct the arguments and call again." in text(result)
    assert "\n" not in text(result)
    assert seen(result)["code"] == "STRUCTURAL_VIOLATION"
    assert len(seen(result)["field_errors"]) == 2


@ERAS
@requirement("NAM-5", "LIF-2")
async def test_a_tool_that_is_not_there_and_one_that_is_not_yours_are_told_alike(
    connect: Connect, era: str
) -> None:
    async with connect(era, user="bob") as client:
        answers = []
        for name in ("office__note", "office__nothing"):
            with pytest.raises(MCPError) as raised:
                await client.call_tool(name, {"text": "a"})
            answers.append((raised.value.code, raised.value.message.replace(name, "X"), raised.value.data))
    assert answers[0] == answers[1]
    assert answers[0][0] == -32602


@requirement("PRO-1")
async def test_the_gateways_own_reads_cannot_be_called_as_tools(connect: Connect) -> None:
    async with connect() as client:
        for name in ("office__mcp-resources-read", "mcp-resources-read"):
            with pytest.raises(MCPError, match="there is no tool"):
                await client.call_tool(name, {"uri": "file:///x"})


@ERAS
@requirement("AUT-1")
async def test_nothing_of_the_clients_headers_reaches_an_upstream(
    connect: Connect, era: str, office: Office
) -> None:
    async with connect(era) as client:
        await client.call_tool("office__count", {})
    [attempt] = office.seen
    shown = repr({name: getattr(attempt, name) for name in Attempt.__annotations__ if name != "peer"})
    assert "x-holdfast-user" not in shown
    assert "authorization" not in shown.lower()


@ERAS
@requirement("PRO-1")
async def test_what_meta_says_about_a_call_is_heard(connect: Connect, era: str, office: Office) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    meta: Any = {"holdfast/task": "t", "holdfast/step": "s", "traceparent": parent}
    async with connect(era) as client:
        first = await client.call_tool("office__note", {"text": "a"}, meta=meta)
        again = await client.call_tool("office__note", {"text": "a"}, meta=meta)
    assert (seen(first)["key_source"], seen(again)["replayed"]) == ("derived", True)
    assert seen(first)["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
    assert office.notes == ["a"]


@ERAS
@requirement("APR-6")
async def test_a_preview_changes_nothing_and_shows_what_would(
    served: Served, era: str, office: Office
) -> None:
    params = {"name": "office__pay", "arguments": {"to": "x"}, "_meta": {"holdfast/preview": True}}
    async with speaking(served, era) as line:
        raw = (await line.ask("tools/call", params))["result"]
    assert raw["_meta"]["holdfast/observation"]["status"] == "preview"
    assert raw["isError"] is False
    assert "effects" in raw["content"][0]["text"]
    assert office.paid == []
