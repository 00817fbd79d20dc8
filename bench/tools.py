"""The tools every benchmark calls: one read, one durable write, neither doing any work."""

from typing import Any

from holdfast import Effect, Undo, tool
from holdfast.model.function import FunctionTool


@tool(effect=Effect.READ_ONLY)
async def look(item: str, limit: int = 10) -> dict[str, str]:
    """Look an item up.

    Args:
        item: the item's number
        limit: how many lines to give at most
    """
    return {"item": item}


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.EXACT,
    manifest=[("items", "UPDATE", "item")],
    idempotency={},
    do_not_use_when=["the item is to be looked at only"],
    side_effects="marks the item",
)
async def mark(item: str, colour: str = "red") -> dict[str, str]:
    """Mark an item.

    Args:
        item: the item's number
        colour: the colour to mark it in
    """
    return {"item": item, "colour": colour}


TOOLS: list[FunctionTool[..., Any]] = [look, mark]
