"""A process that paints rooms which others paint too, and writes down when it was in which.

    python -m tests.conflicts.worker STORE FOLDER NAME

It says `ready`, and does for each line of its input what that says: `hold ROOM` paints a room and never ends,
`many COUNT` paints so many at once, `blind COUNT` with tools that tell nobody what they touch.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns
from typing import Annotated, Any

from pydantic import Field

from holdfast import Effect, Gateway, Principal, Undo, tool
from holdfast import config as configuration

PLACE = "HOLDFAST_TEST_ROOMS"
ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=80)
STEPS = 5
"""Turns that painting takes, in each of which somebody else may come in."""
WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "idempotency": "none",
    "timeout_class": "long_running",
}
Rooms = Annotated[list[str], Field(json_schema_extra={"x-resource": "rooms"})]
PEOPLE = {"auth": {"people": {"ana": {"scopes": ["**"], "trust": 80}}}}


async def _work(rooms: list[str]) -> str:
    began = monotonic_ns()
    for _ in range(STEPS):
        await asyncio.to_thread(_touch)
    line = json.dumps({"rooms": rooms, "from": began, "to": monotonic_ns(), "by": os.getpid()}) + "\n"
    file = os.open(_place() / "seen", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)
    return ",".join(rooms)


def _touch() -> None:
    """Something that takes its time, as work does: it waits for the disk."""
    file = os.open(_place() / f"paint{os.getpid()}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, b"paint")
    os.fsync(file)
    os.close(file)


def _place() -> Path:
    return Path(os.environ[PLACE])


@tool(**WRITE, manifest=[("rooms", "UPDATE", "some")])
async def paint(rooms: Rooms) -> str:
    """Paint some rooms.

    Args:
        rooms: which ones
    """
    return await _work(rooms)


@tool(**WRITE, manifest=[("rooms", "UPDATE", "*")])
async def gut() -> str:
    """Empty all of them."""
    return await _work(["*"])


@tool(**WRITE, manifest=[("rooms", "UPDATE", "some")])
async def blind(rooms: list[str]) -> str:
    """Paint some rooms, and tell nobody which.

    Args:
        rooms: which ones
    """
    return await _work(rooms)


@tool(**WRITE, manifest=[("rooms", "UPDATE", "some")])
async def hold(rooms: Rooms) -> str:
    """Stay in some rooms for ever.

    Args:
        rooms: which ones
    """
    sys.stdout.write("inside\n")
    sys.stdout.flush()
    await asyncio.Event().wait()
    return ""


TOOLS = [paint, gut, blind, hold]


def wishes(count: int) -> list[tuple[str, dict[str, Any]]]:
    """Some want one room, some two, some all of them."""
    found: list[tuple[str, dict[str, Any]]] = []
    for number in range(count):
        one, two = f"r{number % 3}", f"r{(number + 1) % 3}"
        every: tuple[str, dict[str, Any]] = ("gut", {})
        found.append(every if number % 5 == 4 else ("paint", {"rooms": [one, two] if number % 2 else [one]}))
    return found


async def main(store: str, folder: str, name: str) -> None:
    tree = {**PEOPLE, "upstreams": {"house": {"functions": "tests.conflicts.worker:TOOLS"}}, "store": store}
    os.environ[PLACE] = folder
    async with Gateway.open(configuration.parse(tree, folder=Path(folder))) as gateway:
        say = sys.stdout.write
        say("ready\n")
        sys.stdout.flush()
        while words := (await asyncio.to_thread(sys.stdin.readline)).split():
            await _obey(gateway, name, words, say)
            sys.stdout.flush()


async def _obey(gateway: Gateway, name: str, words: list[str], say: Callable[[str], object]) -> None:
    async def called(tool: str, given: dict[str, Any], number: int) -> str:
        key = f"{name}-{words[0]}-{number}"
        observation = await gateway.call(f"house.{tool}", given, key=key, principal=ANA)
        return str(observation.code or observation.status)

    if words[0] == "hold":
        await called("hold", {"rooms": words[1:]}, 0)
        return
    wanted = wishes(int(words[1])) if words[0] == "many" else [("blind", {"rooms": ["r0"]})] * int(words[1])
    found = await asyncio.gather(*[called(*wish, number) for number, wish in enumerate(wanted)])
    say(json.dumps(found) + "\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
