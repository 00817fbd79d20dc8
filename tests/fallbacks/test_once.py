"""Does at most one level of a capability have an effect under a key, whatever happens at once? EXE-4."""

import asyncio
import random
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Code, Gateway, NoEffect
from holdfast.model.observation import Observation, Status
from holdfast.stores.memory import MemoryStore
from holdfast.testing import ManualClock
from tests.fallbacks.post import ANA, Apart, Post, gateway_on, send
from tests.requirements import requirement
from tests.stored import DURABLE, durable, place

AWAY, WELL, LOST = "away", "well", "lost"
DIRECT = {"recipient": "bob", "body": "hello"}


class Fickle(Post):
    """Each attempt takes some turns of the loop, and then does what is next on the list."""

    def __init__(self, fate: list[tuple[int, str]]) -> None:
        super().__init__()
        self._fate = iter(fate)

    async def act(self, name: str, to: str, text: str) -> dict[str, str]:
        turns, mood = next(self._fate, (0, WELL))
        for _ in range(turns):
            await asyncio.sleep(0)
        if mood == AWAY:
            raise NoEffect(f"{name} is away", Code.DEPENDENCY_UNAVAILABLE)
        self.sent.append((name, to, text))
        if mood == LOST:
            raise ConnectionError("the answer got lost")
        return {"by": name, "to": to}


def call_of(gateway: Gateway, kind: str) -> "asyncio.Future[Observation]":
    """One of the callers of a key: most ask the first tool, some go straight to the second."""
    if kind == "direct":
        return asyncio.ensure_future(gateway.call("backup.post", DIRECT, principal=ANA, key="k"))
    return asyncio.ensure_future(send(gateway))


FATES = st.lists(st.tuples(st.integers(0, 6), st.sampled_from([AWAY, WELL, LOST])), max_size=8)
CALLERS = st.lists(
    st.tuples(st.sampled_from(["first", "first", "direct", "gone"]), st.integers(0, 12)),
    min_size=2,
    max_size=5,
)


@requirement("EXE-4", "IDM-4")
@settings(max_examples=150, deadline=None)
@given(fate=FATES, callers=CALLERS)
async def test_whoever_calls_whenever_and_whatever_fails_one_level_acts(
    fate: list[tuple[int, str]], callers: list[tuple[str, int]]
) -> None:
    post, clock = Fickle(fate), ManualClock()
    async with gateway_on(MemoryStore(clock), post, clock) as gateway:
        calls = []
        for kind, turns in callers:
            calls.append(call_of(gateway, kind))
            for _ in range(turns):
                await asyncio.sleep(0)
            if kind == "gone":
                calls[-1].cancel()
        everybody = asyncio.gather(*calls, return_exceptions=True)
        await clock.drive(everybody)
        seen, last = everybody.result(), await send(gateway)
    assert len(post.sent) <= 1
    done = [one for one in (*seen, last) if isinstance(one, Observation) and one.status is Status.DONE]
    assert {one.tool for one in done} <= {_tool(name) for name in post.senders}
    if last.status is Status.DONE:
        assert len(post.sent) == 1


def _tool(name: str) -> str:
    return {"mail": "mail.send", "backup": "backup.post", "pigeon": "pigeon.send"}[name]


@requirement("EXE-4", "IDM-4")
@pytest.mark.parametrize("store", DURABLE)
async def test_duplicates_in_two_gateways_on_one_database_make_one_effect(store: str, tmp_path: Path) -> None:
    dice = random.Random(9)
    async with place(store, tmp_path), AsyncExitStack() as stack:
        clock, worlds, gateways = ManualClock(), [], []
        for _ in range(2):
            kept = await stack.enter_async_context(durable(store, tmp_path, clock))
            fate = [(dice.randrange(4), dice.choice([AWAY, AWAY, WELL, LOST])) for _ in range(400)]
            worlds.append(Fickle(fate))
            made = gateway_on(kept, worlds[-1], clock, ids=Apart())
            gateways.append(await stack.enter_async_context(made))
        for number in range(25):
            calls = [dice.choice(gateways) for _ in range(4)]
            everybody = asyncio.gather(
                *(send(gateway, f"k{number}") for gateway in calls),
                gateways[0].call("backup.post", DIRECT, principal=ANA, key=f"k{number}"),
            )
            await clock.drive(everybody)
            effects = sum(len(world.sent) for world in worlds)
            assert effects <= 1, f"key k{number} acted {effects} times"
            for world in worlds:
                world.sent.clear()


async def test_the_turns_of_a_call_end_where_others_keep_moving_its_key() -> None:
    """Two that disagree about where to go must not go on for ever."""
    clock, post = ManualClock(), Post()
    post.mood |= dict.fromkeys(("mail", "backup", "pigeon"), "DEPENDENCY_UNAVAILABLE")
    async with gateway_on(MemoryStore(clock), post, clock) as gateway:
        gateway.fallbacks._kept = Restless(gateway.fallbacks._kept)
        seen = await send(gateway)
        assert seen.status in (Status.FAILED, Status.REFUSED)
        assert len(post.asked) < 20


class Restless:
    """Somebody else moves every key back as soon as it is moved on."""

    def __init__(self, kept: Any) -> None:
        self._kept = kept

    async def tool(self, at: Any) -> str | None:
        found: str | None = await self._kept.tool(at)
        return found

    async def move(self, at: Any, tool: str, to: str, tools: Any = ()) -> str:
        await self._kept.move(at, tool, to, tools)
        back: str = await self._kept.move(at, to, tool)
        return to if back == tool else back


@requirement("EXE-4")
@pytest.mark.parametrize("store", DURABLE)
async def test_a_key_stays_with_its_tool_when_the_configuration_changes_their_order(store: str) -> None:
    """Who answers for a key is kept by name."""
    with tempfile.TemporaryDirectory() as folder:
        async with place(store, Path(folder)):
            clock, post = ManualClock(), Post()
            post.mood["mail"] = "DEPENDENCY_UNAVAILABLE"
            same = {"tools": ["mail.send", "pigeon.send"]}
            turned = {"tools": ["pigeon.send", "mail.send"]}
            async with (
                durable(store, Path(folder), clock) as kept,
                gateway_on(kept, post, clock, {"send-message": same}) as gateway,
            ):
                assert (await send(gateway)).tool == "pigeon.send"
            post.mood.clear()
            async with (
                durable(store, Path(folder), clock) as kept,
                gateway_on(kept, post, clock, {"send-message": turned}, ids=Apart()) as gateway,
            ):
                direct = await send(gateway)
                again = await gateway.call("pigeon.send", {"to": "bob"}, principal=ANA, key="k")
            assert (direct.code, again.replayed, post.senders) == (Code.KEY_MISMATCH, True, ["pigeon"])
