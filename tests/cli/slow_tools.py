"""Tools that say when they begin, and go on when they are told: by a socket of the test's, never by time."""

import asyncio
import os
import socket

from holdfast import Effect, TimeoutClass, Undo, tool
from tests.cli.desk_tools import MANIFEST, act, close_ticket, get_ticket


def _gate() -> tuple[str, int]:
    return "127.0.0.1", int(os.environ["DESK_GATE"])


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.SEMANTIC,
    scopes=["tickets:write"],
    manifest=MANIFEST,
    idempotency="none",
    timeout_class=TimeoutClass.LONG_RUNNING,
)
async def move_ticket(number: int) -> dict[str, int]:
    """Move one ticket, slowly.

    Args:
        number: the ticket's number
    """
    reader, writer = await asyncio.open_connection(*_gate())
    await reader.readline()
    act(f"move {number}")
    writer.close()
    return {"number": number}


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.SEMANTIC,
    scopes=["tickets:write"],
    manifest=MANIFEST,
    idempotency="none",
    timeout_class=TimeoutClass.LONG_RUNNING,
)
def haul_ticket(number: int) -> dict[str, int]:
    """Move one ticket in a thread, which nobody can stop.

    Args:
        number: the ticket's number
    """
    with socket.create_connection(_gate()) as gate:
        gate.recv(16)
    act(f"haul {number}")
    return {"number": number}


@tool(effect=Effect.READ_ONLY, scopes=["tickets:read"], timeout_class=TimeoutClass.LONG_RUNNING)
async def watch_ticket(number: int) -> dict[str, int]:
    """Look at one ticket for a long time.

    Args:
        number: the ticket's number
    """
    reader, _ = await asyncio.open_connection(*_gate())
    await reader.readline()
    return {"number": number}


TOOLS = [get_ticket, close_ticket, move_ticket, haul_ticket, watch_ticket]
