"""Under which key does an MCP call run?"""

from typing import Any

from tests.requirements import requirement
from tests.servers.mcp.conftest import ERAS, LEGACY, MODERN, Connect, seen, text
from tests.servers.mcp.office import Office

BOTH_WAYS = True


@ERAS
@requirement("NAM-5", "IDM-1")
async def test_a_write_offers_a_key_argument_and_the_tool_never_sees_it(
    connect: Connect, era: str, office: Office
) -> None:
    async with connect(era) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "idempotency_key" in listed["office__note"].input_schema["properties"]
        assert "idempotency_key" not in listed["office__note"].input_schema.get("required", [])
        assert "idempotency_key" not in listed["office__count"].input_schema.get("properties", {})
        first = await client.call_tool("office__note", {"text": "a", "idempotency_key": "k1"})
        again = await client.call_tool("office__note", {"text": "a", "idempotency_key": "k1"})
    assert office.notes == ["a"]
    assert dict(office.seen[0].arguments) == {"text": "a"}
    assert (seen(first)["key"], seen(first)["key_source"]) == ("k1", "caller")
    assert seen(again)["replayed"] is True
    assert again.structured_content == first.structured_content


@ERAS
@requirement("NAM-5", "IDM-1")
async def test_a_key_in_meta_names_the_operation_whatever_way_it_comes_again(
    connect: Connect, era: str, office: Office
) -> None:
    async with connect(era) as client:
        meta: Any = {"holdfast/key": "k2"}
        await client.call_tool("office__note", {"text": "a"}, meta=meta)
        again = await client.call_tool("office__note", {"text": "a", "idempotency_key": "k2"})
    assert seen(again)["replayed"] is True
    assert office.notes == ["a"]


@ERAS
@requirement("NAM-5")
async def test_two_different_keys_are_refused_and_nothing_happens(
    connect: Connect, era: str, office: Office
) -> None:
    async with connect(era) as client:
        meta: Any = {"holdfast/key": "one"}
        result = await client.call_tool("office__note", {"text": "a", "idempotency_key": "two"}, meta=meta)
    assert (result.is_error, seen(result)["code"]) == (True, "STRUCTURAL_VIOLATION")
    assert "differ" in text(result)
    assert office.notes == []


@requirement("NAM-5")
async def test_a_tool_with_a_key_argument_of_its_own_keeps_it(connect: Connect, office: Office) -> None:
    async with connect() as client:
        result = await client.call_tool("office__own_key", {"text": "a", "idempotency_key": "its"})
    assert result.structured_content == {"key": "its"}
    assert seen(result)["key_source"] == "request"


@ERAS
@requirement("IDM-1")
async def test_a_client_that_knows_no_keys_gets_one_per_request(
    connect: Connect, era: str, office: Office
) -> None:
    async with connect(era) as client:
        results = [await client.call_tool("office__note", {"text": "a"}) for _ in range(2)]
    assert [seen(result)["key_source"] for result in results] == ["request", "request"]
    assert seen(results[0])["key"] != seen(results[1])["key"]
    assert office.notes == ["a", "a"]


@requirement("IDM-1", "AUT-7")
async def test_an_older_clients_key_is_its_session_and_request_and_gives_neither_away(
    connect: Connect,
) -> None:
    async with connect(LEGACY) as client, connect(LEGACY) as other:
        keys = {
            seen(await one.call_tool("office__note", {"text": name}))["key"]
            for one, name in ((client, "a"), (other, "b"))
        }
    assert len(keys) == 2
    assert all(key.startswith("mcp-") and len(key) == 36 for key in keys)


@ERAS
async def test_members_of_meta_of_the_wrong_kind_are_refused_together(connect: Connect, era: str) -> None:
    wrong: Any = {"holdfast/key": 7, "holdfast/preview": "yes", "holdfast/deadline_ms": 0}
    async with connect(era) as client:
        result = await client.call_tool("office__note", {"text": "a"}, meta=wrong)
    assert seen(result)["code"] == "STRUCTURAL_VIOLATION"
    assert {fault["path"] for fault in seen(result)["field_errors"]} == {
        "/_meta/holdfast~1key",
        "/_meta/holdfast~1preview",
        "/_meta/holdfast~1deadline_ms",
    }


@requirement("IDM-1")
async def test_a_read_needs_no_key_and_is_given_none(connect: Connect) -> None:
    async with connect(MODERN) as client:
        result = await client.call_tool("office__count", {})
    assert seen(result)["key_source"] is None
