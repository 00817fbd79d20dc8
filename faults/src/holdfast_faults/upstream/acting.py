"""What happens when a tool of the upstream is called?

It asks the stage, makes the effect, asks the stage again. Both transports share it; what differs is how a
question reaches the client and how an answer gets lost.
"""

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from holdfast_faults.upstream import protocol
from holdfast_faults.upstream.protocol import Json

Ask = Callable[[Json], Awaitable[Json]]
"""Sends a request to the client and returns its answer, whole."""


class Lost(Exception):
    """The effect happened and this is not to be answered; `args[0]` says how."""


@dataclass(frozen=True)
class Acting:
    effects: int
    stage: int
    kinds: dict[str, str]

    async def call(self, params: Json, ask: Ask | None) -> Json:
        """The result; raises Lost. `ask` is None where the client can answer no questions."""
        kind, item = self.kinds[params["name"]], params["arguments"]["item"]
        if kind == "seen":
            lines = await self._effect(f"seen {item}")
            return protocol.done({"lines": lines}, f"{len(lines)} lines")
        if kind == "confirmed" and (no := await self._confirmed(item, ask)):
            return no
        return await self._act(item)

    async def _act(self, item: str) -> Json:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.stage)
        try:
            await _asked(reader, writer, f"before {item}")
            [line] = await self._effect(f"effect {item}")
            ending = await _asked(reader, writer, f"after {item}")
        finally:
            writer.close()
        if ending != "answer":
            raise Lost(ending)
        return protocol.done({"line": line}, f"line {line}")

    async def _confirmed(self, item: str, ask: Ask | None) -> Json | None:
        """What to say if nobody said yes."""
        if ask is None:
            return protocol.refused("a person must confirm this, and the client says it cannot ask one")
        said = await ask(protocol.question(f"ask-{item}", item))
        result = said.get("result") or {}
        if result.get("action") == "accept" and (result.get("content") or {}).get("yes") is True:
            return None
        return protocol.refused("nobody confirmed this, so nothing was changed")

    async def _effect(self, request: str) -> list[int]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.effects)
        try:
            return [int(number) for number in (await _asked(reader, writer, request)).split()]
        finally:
            writer.close()


def can_ask(params: Json) -> bool:
    """Whether who sent `initialize` answers questions."""
    return "elicitation" in (params.get("capabilities") or {})


def ordered(arguments: list[str] | None = None) -> Acting:
    """What the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--effects", type=int, required=True)
    parser.add_argument("--stage", type=int, required=True)
    parser.add_argument("--tools", required=True, help="a JSON file: name to kind")
    asked: Any = parser.parse_known_args(arguments)[0]
    with open(asked.tools) as file:
        return Acting(asked.effects, asked.stage, json.load(file))


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: str) -> str:
    writer.write(line.encode() + b"\n")
    answer = await reader.readline()
    if not answer.endswith(b"\n"):
        raise ConnectionError(f"no answer to '{line}'")
    return answer.decode().strip()
