"""A tool that changes something, for those who hold the scope."""

from itertools import count

from holdfast import Effect, Undo, tool

_DONE = count(1)


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.EXACT,
    manifest=[("orders", "UPDATE", "one")],
    idempotency="none",
    scopes=["orders:refund"],
)
async def refund(order: str) -> dict[str, int]:
    """Refund an order.

    Args:
        order: Which one.
    """
    return {"number": next(_DONE)}


TOOLS = [refund]
