"""A shop whose refunds one person must approve, and whose letters leave the house."""

from typing import Any

from holdfast import Effect, Floor, Gateway, NoEffect, Observation, Principal, Undo, tool
from holdfast.gateway.rules import Wish
from holdfast.model.standing import Rule
from tests.approvals.bank import ANA, BEN

WRITES: dict[str, Any] = {
    "effect": Effect.MEDIUM_RISK_WRITE,
    "undo": Undo.PARTIAL,
    "floor": Floor.OPERATOR,
    "idempotency": {},
    "side_effects": "somebody outside hears of it",
    "rollback_plan": "call them",
}


class Shop:
    def __init__(self) -> None:
        self.refunds: list[tuple[str, float]] = []
        self.letters: list[tuple[str, str]] = []
        self.closed = False

    @tool(effect=Effect.READ_ONLY)
    async def balance(self, order: str) -> dict[str, float]:
        """What an order was refunded."""
        return {"refunded": sum(amount for name, amount in self.refunds if name == order)}

    @tool(
        **WRITES,
        manifest=[("refunds", "CREATE", "order")],
        cost={"per_call": 0.5, "currency": "USD"},
        preview={"read": {"tool": "balance", "arguments": {"order": "=args.order"}}},
    )
    async def refund(self, order: str, amount: float = 1.0) -> str:
        """Pay money back."""
        if self.closed:
            raise NoEffect("the shop is closed")
        self.refunds.append((order, amount))
        return order

    @tool(**WRITES, manifest=[("letters", "CREATE", "address")])
    async def write(self, to: str, text: str) -> str:
        """Send a letter."""
        self.letters.append((to, text))
        return to


class OtherShop(Shop):
    """The same tools in the same version, with another promise."""

    @tool(**WRITES, manifest=[("refunds", "CREATE", "everything")])
    async def refund(self, order: str, amount: float = 1.0) -> str:
        """Pay a lot of money back."""
        self.refunds.append((order, amount * 10))
        return order


SMALL: dict[str, Any] = {"order": {"prefix": "o-"}, "amount": {"at_least": 0, "at_most": 50}}


async def refund(
    gateway: Gateway, key: str, order: str = "o-1", amount: float = 10, *, by: Principal = ANA, **said: Any
) -> Observation:
    return await gateway.call(
        "test.refund", {"order": order, "amount": amount}, key=key, principal=by, **said
    )


async def accepted(gateway: Gateway, by: Principal = BEN, **said: Any) -> Rule:
    """A rule that one operator proposed and said yes to."""
    wish = Wish(**{"tool": "test.refund", "principals": "ana/*", "arguments": SMALL} | said)
    rule = await gateway.rules.propose(by, wish)
    await gateway.rules.accept(by, rule.id)
    return rule
