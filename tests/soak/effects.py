"""The process that counts effects, as tools and tests here speak to it; it is the fault kit's own."""

import asyncio
import os

from holdfast_faults.effects import Effects, counting

__all__ = ["ADDRESS", "Effects", "counting", "happen", "name_of", "seen", "told_of"]

ADDRESS = "HOLDFAST_TEST_EFFECTS"
"""The environment variable with the port, for the tools inside the gateways."""


def told_of(effects: Effects) -> dict[str, str]:
    """The environment of a gateway whose tools act there."""
    return {ADDRESS: str(effects.port)}


def name_of(key: str | None) -> str:
    """The caller's key, without the mark of its scope that upstreams see."""
    return (key or "").rpartition(".")[0]


async def happen(key: str, port: int | None = None) -> int:
    """Make the effect happen; raises ConnectionError when nobody can say whether it did."""
    return (await _ask(f"effect {key}", port))[0]


async def seen(key: str, port: int | None = None) -> list[int]:
    return await _ask(f"seen {key}", port)


async def _ask(line: str, port: int | None) -> list[int]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port or int(os.environ[ADDRESS]))
    try:
        writer.write(line.encode() + b"\n")
        answer = await reader.readline()
    finally:
        writer.close()
    if not answer.endswith(b"\n"):
        raise ConnectionError("the process that counts effects did not answer")
    return [int(number) for number in answer.split()]
