"""Is a call the same whichever way its arguments are looked at?

A value that is plainly right is taken in one pass; whatever is not is examined one question after the other.
Both must come to the same end.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Effect, Gateway, Principal, testing, tool
from holdfast.gates.arguments import _examined
from holdfast.lifecycle import GATES, admit, receive
from holdfast.model.call import Call, Proposal
from holdfast.model.verdict import Refusal
from tests.requirements import requirement

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
TO_ARGUMENTS = GATES[:3]


@tool(effect=Effect.READ_ONLY)
async def look(
    item: str, limit: int = 10, share: float = 0.5, tags: list[str] | None = None, deep: bool = False
) -> dict[str, str]:
    """Look something up."""
    return {}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway() -> AsyncIterator[Gateway]:
    async with testing.gateway(look) as opened:
        yield opened


async def examined(gateway: Gateway, arguments: Any, key: str | None = None) -> Call:
    call = receive(Proposal("test.look", arguments, ANA, key=key), gateway._ports)
    await admit(call, gateway._ports, TO_ARGUMENTS)
    return call


async def assert_both_ways_agree(gateway: Gateway, arguments: dict[str, Any], key: str | None = None) -> None:
    taken = await examined(gateway, arguments, key)
    call = await examined(gateway, arguments, key)
    assert taken.verdicts[-1] == ("arguments", _examined(call, gateway._ports))
    if not isinstance(taken.verdicts[-1][1], Refusal):
        text = await examined(gateway, json.dumps(arguments), key)
        assert taken.arguments == call.arguments == text.arguments
        assert taken.fingerprint == call.fingerprint == text.fingerprint
        assert taken.commitment == call.commitment == text.commitment


parts = {
    "item": st.text(max_size=8) | st.integers(),
    "limit": st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False),
    "share": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    "tags": st.none() | st.lists(st.text(max_size=4) | st.none(), max_size=3),
    "deep": st.booleans() | st.none(),
    "unknown": st.text(max_size=3),
}
sent = st.fixed_dictionaries({}, optional=parts)


@requirement("VAL-4", "IDM-2")
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"item": "a"}, None),
        ({"item": "a", "limit": 10}, "k"),
        ({"item": "a", "limit": 10.0}, None),
        ({"item": "é", "share": 12.5}, None),
        ({"item": "a", "share": 1e-7}, None),
        ({"item": "a", "limit": 2**53}, None),
        ({"item": "a" * 300_000}, None),
        ({"item": "a", "tags": ["x"] * 10_001}, None),
        ({"item": "a"}, "no\nkey"),
        ({"item": "a", "deep": 1, "other": 2}, "no\nkey"),
        ({}, None),
    ],
)
async def test_the_short_way_and_the_long_way_come_to_the_same_end(
    gateway: Gateway, arguments: dict[str, Any], key: str | None
) -> None:
    await assert_both_ways_agree(gateway, arguments, key)


@requirement("VAL-4", "IDM-2")
async def test_whatever_is_sent_both_ways_agree() -> None:
    async with testing.gateway(look) as gateway:

        @given(sent)
        def both(arguments: dict[str, Any]) -> None:
            coroutine = assert_both_ways_agree(gateway, arguments)
            with pytest.raises(StopIteration):  # these gates wait for nothing
                coroutine.send(None)

        both()


@requirement("IDM-2")
@pytest.mark.asyncio(loop_scope="module")
async def test_a_default_given_and_a_default_left_out_are_one_call(gateway: Gateway) -> None:
    whole = {"item": "a", "limit": 10, "share": 0.5, "tags": None, "deep": False}
    calls = [await examined(gateway, given) for given in ({"item": "a"}, whole)]
    assert calls[0].arguments == calls[1].arguments == whole
    assert calls[0].fingerprint == calls[1].fingerprint
