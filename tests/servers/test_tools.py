"""Which tools may a caller see over HTTP?"""

from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest

from holdfast.model.contract import Contract
from holdfast.servers.openapi import document
from tests.requirements import requirement
from tests.servers.asgi import Client

PAGE = jsonschema_rs.Draft202012Validator(
    {"$ref": "#/components/schemas/ToolPage", "components": document()["components"]}
)


async def names(client: Client, query: str = "") -> list[str]:
    answer = await client.get(f"/v1/tools{query}")
    assert answer.status == 200
    PAGE.validate(answer.json())
    return [tool["name"].removeprefix("desk.") for tool in answer.json()["tools"]]


@requirement("NAM-3")
async def test_tools_are_listed_by_name(client: Client) -> None:
    found = await names(client)
    assert found == sorted(found)
    assert {"add", "count", "send"} <= set(found)


@requirement("LIF-2")
async def test_nobody_sees_a_tool_they_may_not_use(as_person: Callable[[str], Client]) -> None:
    assert await names(as_person("bob")) == ["count", "hourly", "read"]


@requirement("CON-4")
async def test_the_system_face_is_never_shown(client: Client) -> None:
    for tool in (await client.get("/v1/tools")).json()["tools"]:
        hidden = set(Contract.model_fields) - {"affordance"} | {
            "required_scopes",
            "approval_floor",
            "manifest",
        }
        assert not hidden & set(tool)
        assert tool["description"]
        assert tool["input_schema"]["type"] == "object"


async def test_a_listing_says_whether_a_key_is_needed(client: Client) -> None:
    needed = {tool["name"]: tool["key_required"] for tool in (await client.get("/v1/tools")).json()["tools"]}
    assert (needed["desk.add"], needed["desk.count"]) == (True, False)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?q=mail", ["send"]),
        ("?q=SEND+a", ["send"]),
        ("?q=search", ["count"]),
        ("?q=nothing-like-it", []),
        ("?q=note+lose", ["add_and_break"]),
    ],
)
async def test_words_narrow_the_list(client: Client, query: str, found: list[str]) -> None:
    assert await names(client, query) == found


async def test_pages_follow_each_other_without_gap_or_repetition(client: Client) -> None:
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await client.get(f"/v1/tools?limit=3{cursor and f'&cursor={cursor}'}")).json()
        assert 0 < len(page["tools"]) <= 3
        seen += [tool["name"].removeprefix("desk.") for tool in page["tools"]]
        cursor = page["next_cursor"]
    assert seen == await names(client)


@pytest.mark.parametrize(
    "query",
    ["?limit=0", "?limit=-1", "?limit=x", "?limit=99999999999999", "?cursor=%21", "?cursor=YQ", "?page=2"],
)
async def test_a_bad_parameter_is_refused(client: Client, observed: Callable[[Any], Any], query: str) -> None:
    answer = await client.get(f"/v1/tools{query}")
    assert answer.status == 400
    assert observed(answer.json())["code"] == "STRUCTURAL_VIOLATION"
