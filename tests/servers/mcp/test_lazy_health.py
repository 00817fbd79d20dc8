"""Is what fails found after what works?"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import Effect, Gateway, Principal, tool
from tests.requirements import requirement
from tests.servers.mcp.conftest import Connect, opened
from tests.servers.mcp.office import Office

ANN = Principal(user="ann", agent="bot", scopes=frozenset({"**"}))


@tool(effect=Effect.READ_ONLY, scopes=["notes:read"], max_retries=0)
async def find_a(word: str) -> str:
    """Search the archive for a word."""
    raise RuntimeError("the archive is closed")


@tool(effect=Effect.READ_ONLY, scopes=["notes:read"])
async def find_b(word: str) -> str:
    """Search the archive for a word."""
    return word


@pytest.fixture
def config(config: dict[str, Any]) -> dict[str, Any]:
    return {**config, "mcp": {"lazy_above": 4}}


@pytest.fixture
async def gateway(config: dict[str, Any], office: Office) -> AsyncIterator[Gateway]:
    async with opened(config, office, [find_a, find_b]) as one:
        yield one


async def found(connect: Connect, query: str) -> list[str]:
    async with connect() as client:
        said = await client.call_tool("search_tools", {"query": query})
    return [one["name"] for one in said.structured_content["tools"]]


@requirement("SEL-4", "TEL-4")
async def test_of_two_tools_that_fit_as_well_the_healthier_is_found_first(
    connect: Connect, gateway: Gateway
) -> None:
    assert await found(connect, "search archive") == ["more__find_a", "more__find_b"]
    for _ in range(3):
        await gateway.call("more.find_a", {"word": "x"}, principal=ANN)
        await gateway.call("more.find_b", {"word": "x"}, principal=ANN)
    await gateway.views.fresh()
    await gateway.health.look("default")
    assert await found(connect, "search archive") == ["more__find_b", "more__find_a"]
    assert (await found(connect, "more__find_a archive"))[0] == "more__find_a"  # asked for by its name
