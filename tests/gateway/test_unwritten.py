"""What becomes of a call that says what no record can say?"""

from typing import Any

import pytest

from holdfast import Effect, testing, tool
from holdfast.model.errors import Code
from tests.requirements import requirement


@tool(effect=Effect.READ_ONLY)
async def look(order: str) -> str:
    """Look at an order."""
    return order


@requirement("VAL-4")
@pytest.mark.parametrize("member", ["task", "step", "session", "version", "trace_id"])
async def test_half_a_character_is_refused_as_bad_input(member: str) -> None:
    said: dict[str, Any] = {member: "a\ud800"}
    async with testing.gateway(look) as gateway:
        answer = await gateway.call("test.look", {"order": "o-1"}, **said)
    assert answer.code is Code.STRUCTURAL_VIOLATION
    assert [fault.path for fault in answer.field_errors] == [f"/{member}"]


@requirement("VAL-4")
async def test_a_tool_of_half_a_character_is_refused_and_a_whole_one_is_looked_for() -> None:
    async with testing.gateway(look) as gateway:
        half = await gateway.call("test.\ud800", {})
        whole = await gateway.call("test.\U0001f600", {})
    assert (half.code, whole.code) == (Code.STRUCTURAL_VIOLATION, Code.TOOL_NOT_FOUND)
