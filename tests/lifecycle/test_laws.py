"""What holds for all arguments, not only for those somebody thought of?"""

import asyncio
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast import Effect, Status, tool
from holdfast.model.function import FunctionTool
from holdfast.testing import ManualClock
from tests.lifecycle.world import ANA, WRITE, opened
from tests.requirements import requirement

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
keys = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=255)


def keeper(kept: list[Any]) -> FunctionTool[..., Any]:
    @tool(**WRITE)
    async def keep(value: Any) -> Any:
        """Keep a value."""
        kept.append(value)
        return {"kept": value}

    return keep


def shuffled(value: Any) -> Any:
    """The same value with the members of every object the other way round."""
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@requirement("IDM-3", "IDM-4")
@given(value=values, key=keys)
def test_a_replay_is_the_first_answer_whatever_the_order_of_members(value: Any, key: str) -> None:
    async def scenario() -> None:
        kept: list[Any] = []
        async with opened("memory", Path(), [keeper(kept)]) as gateway:
            first = await gateway.call("test.keep", {"value": value}, key=key, principal=ANA)
            again = await gateway.call("test.keep", {"value": shuffled(value)}, key=key, principal=ANA)
        assert first.status is Status.DONE
        assert again.to_json() == first.as_replayed().to_json()
        assert len(kept) == 1

    asyncio.run(scenario())


@requirement("IDM-4")
@given(st.lists(st.sampled_from(["deliver", "lose", "no_effect", "advance"]), max_size=12))
def test_no_order_of_deliveries_and_losses_acts_twice(events: list[str]) -> None:
    async def scenario() -> None:
        acted: list[str] = []
        mood = ["deliver"]
        clock = ManualClock()

        @tool(**WRITE)
        async def act(thing: str) -> str:
            """Act on a thing."""
            if mood[0] == "no_effect":
                from holdfast import NoEffect

                raise NoEffect("not now")
            acted.append(thing)
            if mood[0] == "lose":
                raise ConnectionError("the answer is lost")
            return thing

        told: list[Status] = []
        async with opened("memory", Path(), [act], clock=clock) as gateway:
            for event in events:
                mood[0] = event
                if event == "advance":
                    await clock.advance(3600)
                    await gateway.tidy(forget=True)
                    continue
                answer = await gateway.call("test.act", {"thing": "a"}, key="k", principal=ANA)
                told.append(answer.status)
        assert len(acted) <= 1
        if Status.DONE in told:
            assert acted == ["a"]

    asyncio.run(scenario())


@requirement("LIF-5")
@given(
    name=st.text(max_size=40)
    | st.sampled_from(["test.look", "test.look@", "test.look@1.0.0@2", "@", ".", "test."]),
    arguments=values | st.binary(max_size=40) | texts,
    key=st.none() | st.text(max_size=300),
    version=st.none() | st.text(max_size=10),
    deadline=st.none() | st.integers(-5, 10_000),
)
def test_whatever_is_proposed_an_observation_comes_back(
    name: str, arguments: Any, key: str | None, version: str | None, deadline: int | None
) -> None:
    async def scenario() -> None:
        @tool(effect=Effect.READ_ONLY)
        async def look(thing: str = "") -> str:
            """Look at a thing."""
            return thing

        async with opened("memory", Path(), [look]) as gateway:
            seen = await gateway.call(
                name, arguments, key=key, version=version, deadline_ms=deadline, principal=ANA
            )
        assert seen.status in (Status.DONE, Status.REFUSED, Status.FAILED)
        assert type(seen).from_json(seen.to_json()).to_json() == seen.to_json()
        assert seen.code is None or seen.code != "INTERNAL"

    asyncio.run(scenario())
