"""A shop with somebody who guesses what a customer wants, and how sure that is."""

from typing import Any

from holdfast import Effect, tool
from holdfast.model.errors import Code, NoEffect
from tests.chains.world import Outside, do, shop

INPUT = {
    "type": "object",
    "properties": {"item": {"type": "string"}},
    "required": ["item"],
    "additionalProperties": False,
}


class Guesser:
    """What it answers is said by a test."""

    def __init__(self) -> None:
        self.answer: Any = {"choice": "charge", "confidence": 0.9}
        self.asked = 0

    def tool(self) -> Any:
        @tool(effect=Effect.READ_ONLY, scopes=["shop:read"])
        async def guess(item: str) -> Any:
            """Guess what is wanted.

            Args:
                item: what about
            """
            self.asked += 1
            if self.answer is None:
                raise NoEffect("nobody guesses today", Code.DEPENDENCY_UNAVAILABLE)
            return self.answer

        return guess

    def shop(self, world: Outside) -> list[Any]:
        return [*shop(world), self.tool()]


def choice(**said: Any) -> dict[str, Any]:
    """Charge it, or pack it, as somebody guesses."""
    ask = {"id": "guess", "tool": "shop.guess", "with": {"item": "=input.item"}}
    cases = {"charge": [do("charge")], "pack": [do("pack")]}
    return {"branch": {"ask": ask, "cases": cases, **said}}
