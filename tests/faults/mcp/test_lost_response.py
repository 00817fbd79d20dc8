"""What is a client told whose write happened while its answer got lost, and what if it asks again?

The MCP server acts, and then drops the connection, hangs, answers 500 or answers garbage, a quarter each.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from tests.faults.mcp import plan
from tests.faults.mcp.book import Book
from tests.faults.mcp.client import Answered, Client
from tests.faults.mcp.front import READ, ROOT, WRITE, fronted
from tests.faults.mcp.lossy import Running, lossy
from tests.faults.mcp.protocol import Era, Json
from tests.requirements import requirement

T = TypeVar("T")

IN_FLIGHT: Final = 64
DEADLINE_MS: Final = 3000
"""How long the gateway waits for what hangs; far longer than anything else here takes."""
MANY: Final = 1000
ERAS: Final[tuple[Era, ...]] = ("modern", "legacy")
PROBED: Final = "the answer was lost; a probe saw that the effect happened"
PROBE: Final[Json] = {
    "read": {"tool": "seen", "arguments": {"key": "=key"}},
    "committed": "size(state.lines) > 0",
    "result": "{'line': state.lines[0]}",
    "settle_after_s": 1.0,
}


def overlay(numbers: int, deadline_ms: int = DEADLINE_MS) -> Json:
    write = {**WRITE, "timeout_ms": deadline_ms}
    kinds = {
        "plain": write,
        "probed": {**write, "probe": PROBE},
        "honoured": {**write, "idempotency": "meta"},
    }
    told = {name: kinds[name.partition("-")[0]] for name in plan.tools(numbers)}
    return {**told, "seen": READ, "patient": WRITE, "dying": kinds["honoured"]}


class World:
    """The server that loses answers, the gateway before it, and how to get a client."""

    def __init__(self, server: Running, client: Callable[[Era], Awaitable[Client]]) -> None:
        self.server, self.client = server, client


@asynccontextmanager
async def world(folder: Path, era: Era, numbers: int, deadline_ms: int = DEADLINE_MS) -> AsyncIterator[World]:
    async with (
        lossy(folder / "book.db", era, numbers) as server,
        fronted(folder, {"lossy": {"url": server.url}}, overlay(numbers, deadline_ms)) as (url, http),
    ):
        yield World(server, lambda era: Client(http, url, era).open())


async def each(numbers: Sequence[int], ask: Callable[[int], Awaitable[T]]) -> dict[int, T]:
    """Ask for every number, so many at once."""
    room = asyncio.Semaphore(IN_FLIGHT)

    async def one(number: int) -> T:
        async with room:
            return await ask(number)

    async with asyncio.TaskGroup() as group:
        asked = {number: group.create_task(one(number)) for number in numbers}
    return {number: task.result() for number, task in asked.items()}


def call(client: Client, number: int, **meta: Any) -> Awaitable[Answered]:
    return client.call(f"lossy__{plan.tool_of(number)}", {"thing": plan.name(number)}, **meta)


def expected(number: int, *, again: bool) -> str:
    """Cleared up at once by a probe, or by the server itself if it did not answer; what hung, only later."""
    name, kind = plan.name(number), plan.kind_of(number)
    later = plan.way(name) == "hang" or (kind == "honoured" and plan.misfits(name))
    return "unknown" if kind == "plain" or (later and not again) else "done"


def check(server: Running, answers: dict[int, Answered], *, again: bool) -> None:
    assert {number: answered.status for number, answered in answers.items()} == {
        number: expected(number, again=again) for number in answers
    }
    for number, answered in answers.items():
        said, name = answered.observation, plan.name(number)
        assert answered.result.get("isError", False) == (answered.status == "unknown")
        if answered.status == "unknown":
            assert (said["code"], said["remedy"]["retryable"]) == ("OUTCOME_UNKNOWN", False)
        else:
            assert answered.data == {"line": server.book.line_of(name)}
            strength = {"probed": "probed", "honoured": "exactly_once"}[plan.kind_of(number)]
            assert said["outcome"]["strength"] == strength


def told(first: dict[int, Answered], again: dict[int, Answered]) -> str:
    def counted(answers: dict[int, Answered]) -> dict[str, int]:
        return dict(Counter(f"{plan.kind_of(n)} {a.status}" for n, a in sorted(answers.items())))

    ways = dict(Counter(plan.way(plan.name(number)) for number in first))
    return f"\n{len(first)} keys, {ways}\n  first: {counted(first)}\n  again: {counted(again)}"


async def lose_and_ask_again(
    folder: Path, upstream: Era, client: Era, numbers: int, deadline_ms: int = DEADLINE_MS
) -> None:
    async with world(folder, upstream, numbers, deadline_ms) as here:
        asking, everything = await here.client(client), range(numbers)
        keys = {number: {"holdfast/key": f"k-{number}"} for number in everything}
        first = await each(everything, lambda number: call(asking, number, **keys[number]))
        assert here.server.book.effects() == Counter(map(plan.name, everything))
        check(here.server, first, again=False)

        again = await each(everything, lambda number: call(asking, number, **keys[number]))
        assert here.server.book.effects() == Counter(map(plan.name, everything))
        check(here.server, again, again=True)
        assert {number: a.observation["call_id"] for number, a in again.items()} == {
            number: a.observation["call_id"] for number, a in first.items()
        }
        async with asyncio.timeout(30):
            await here.server.quiet()
        print(told(first, again))


@requirement("IDM-5", "IDM-7", "PRO-1")
@pytest.mark.parametrize(
    ("upstream", "client"), [("modern", "modern"), ("legacy", "modern"), ("modern", "legacy")]
)
async def test_a_lost_answer_is_unknown_or_cleared_up_and_never_a_second_effect(
    tmp_path: Path, upstream: Era, client: Era
) -> None:
    await lose_and_ask_again(tmp_path, upstream, client, 240 if upstream == client else 48)


@pytest.mark.soak
@requirement("IDM-5", "IDM-7", "PRO-1")
async def test_a_thousand_lost_answers_are_unknown_or_cleared_up_and_never_a_second_effect(
    tmp_path: Path,
) -> None:
    await lose_and_ask_again(tmp_path, "modern", "modern", MANY, 2 * DEADLINE_MS)


@requirement("IDM-5", "IDM-7", "PRO-1")
async def test_over_stdio_a_lost_answer_or_a_dead_server_is_no_second_effect_either(tmp_path: Path) -> None:
    numbers = range(12)
    dying = [number for number in numbers if plan.way(plan.name(number)) == "drop"]
    args = ["-m", "tests.faults.mcp.lossy_pipe", str(tmp_path / "book.db"), str(len(numbers))]
    pipe = {"command": sys.executable, "args": args, "cwd": str(ROOT)}
    async with fronted(tmp_path, {"lossy": pipe}, overlay(len(numbers))) as (url, http):
        client = await Client(http, url, "modern").open()

        async def ask(number: int) -> Answered:
            return await call(client, number, **{"holdfast/key": f"k-{number}"})

        first = await each([number for number in numbers if number not in dying], ask)
        for number in dying:  # one after the other: a server that dies takes everything under way with it
            first[number] = await ask(number)
            while (await client.call("lossy__seen", {"key": ""})).status != "done":
                pass  # tries for a while by itself
        again = await each(numbers, ask)
    book = Book(tmp_path / "book.db")
    assert book.effects() == Counter(map(plan.name, numbers))
    for number in numbers:
        plain = plan.kind_of(number) == "plain"
        assert first[number].status in (("unknown",) if plain else ("unknown", "done"))
        assert again[number].status == ("unknown" if plain else "done")
        if not plain:
            assert again[number].data == {"line": book.line_of(plan.name(number))}
    book.close()


@requirement("IDM-1", "IDM-5", "PRO-1")
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_without_keys_that_was_told_unknown_and_calls_again_asks_after_the_same_operation(
    tmp_path: Path, era: Era
) -> None:
    numbers = range(48)
    async with world(tmp_path, "modern", len(numbers)) as here:
        before, after = await here.client(era), await here.client(era)
        first = await each(numbers, lambda number: call(before, number))
        lost = [number for number, answered in first.items() if answered.status == "unknown"]
        assert len(lost) == sum(expected(number, again=False) == "unknown" for number in numbers)

        again = await each(lost, lambda number: call(after, number))
        check(here.server, again, again=True)
        for number, answered in again.items():
            assert answered.observation["key_source"] == "adopted"
            assert answered.observation["call_id"] == first[number].observation["call_id"]
        assert here.server.book.effects() == Counter(map(plan.name, numbers))


@requirement("IDM-1", "EXE-1", "PRO-1")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("done", [True, False], ids=["done by then", "still running"])
async def test_a_client_without_keys_whose_connection_was_cut_gets_the_answer_when_it_calls_again(
    tmp_path: Path, era: Era, done: bool
) -> None:
    names = [plan.name(number) for number in range(40)]

    async def cut_and_ask_again(number: int) -> Answered:
        name, client = names[number], await here.client(era)
        async with client.leaving("lossy__patient", {"thing": name}):
            await here.server.acted(name)
        if done:
            await here.server.release(name)
        asking = await here.client(era)  # a client that starts anew knows nothing of before
        answer = asyncio.create_task(asking.call("lossy__patient", {"thing": name}))
        if not done:
            await here.server.release(name)
        return await answer

    async with world(tmp_path, "modern", 0) as here:
        answers = await each(range(len(names)), cut_and_ask_again)
        assert here.server.book.effects() == Counter(names)
        for number, answered in answers.items():
            assert answered.data == {"line": here.server.book.line_of(names[number])}
            assert (answered.status, answered.observation["key_source"]) == ("done", "adopted")


@requirement("IDM-5", "EXE-2")
async def test_what_never_reached_a_server_that_died_does_not_deny_what_it_did_before(tmp_path: Path) -> None:
    async with world(tmp_path, "modern", 0) as here:
        client = await here.client("modern")
        arguments, key = {"thing": "thing-1"}, {"holdfast/key": "k"}
        first = await client.call("lossy__dying", arguments, **key)
        again = await client.call("lossy__dying", arguments, **key)
        assert first.observation["attempts"] > 1
        assert not again.observation["replayed"]
        assert first.status == again.status == "unknown"
        assert here.server.book.effects() == {"thing-1": 1}


@requirement("IDM-1")
async def test_a_client_without_keys_that_got_its_answer_and_calls_again_means_a_second_operation(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, "modern", 0) as here:
        await here.server.release("thing-1")
        client = await here.client("modern")
        first = await client.call("lossy__patient", {"thing": "thing-1"})
        second = await client.call("lossy__patient", {"thing": "thing-1"})
        assert first.observation["key_source"] == second.observation["key_source"] == "request"
        assert first.data != second.data
        assert here.server.book.effects() == {"thing-1": 2}
