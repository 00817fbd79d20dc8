"""A help desk's tools: one of each kind that the command line treats differently."""

import os
from pathlib import Path

from holdfast import Effect, Floor, NoEffect, Undo, tool

MANIFEST = [("tickets", "UPDATE", "one ticket")]


def effects() -> list[str]:
    """What happened, in a file of its own so that other processes' effects count too."""
    path = Path(os.environ["DESK_EFFECTS"])
    return path.read_text().splitlines() if path.exists() else []


def act(what: str) -> None:
    with Path(os.environ["DESK_EFFECTS"]).open("a") as file:
        file.write(f"{what}\n")


@tool(
    effect=Effect.READ_ONLY,
    scopes=["tickets:read"],
    examples=[{"description": "the first ticket", "arguments": {"number": 1}}],
)
def get_ticket(number: int) -> dict[str, int | str]:
    """Look up one ticket by its number.

    Args:
        number: the ticket's number
    """
    if number > 100:
        raise NoEffect(f"there is no ticket {number}")
    return {"number": number, "title": "a \x1b[31mred\x1b[0m door"}


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.SEMANTIC,
    scopes=["tickets:write"],
    manifest=MANIFEST,
    idempotency="none",
    examples=[{"description": "close the first", "arguments": {"number": 1}}],
)
def close_ticket(number: int) -> dict[str, int]:
    """Close one ticket.

    Args:
        number: the ticket's number
    """
    act(f"close {number}")
    return {"number": number}


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.SEMANTIC,
    scopes=["tickets:write"],
    manifest=MANIFEST,
    idempotency="none",
)
def lose_ticket(number: int) -> dict[str, int]:
    """Forward one ticket, and lose the answer.

    Args:
        number: the ticket's number
    """
    act(f"lose {number}")
    raise ConnectionError("the answer never came")


@tool(
    effect=Effect.MEDIUM_RISK_WRITE,
    undo=Undo.SEMANTIC,
    rollback_plan="open the tickets again",
    scopes=["tickets:admin"],
    floor=Floor.TWO_PERSON,
    manifest=MANIFEST,
    idempotency="none",
    examples=[{"description": "a clean desk", "arguments": {"older_than_days": 30}}],
)
def close_all(older_than_days: int) -> dict[str, int]:
    """Close every old ticket.

    Args:
        older_than_days: how old
    """
    act(f"close all {older_than_days}")
    return {"closed": 7}


TOOLS = [get_ticket, close_ticket, lose_ticket, close_all]
