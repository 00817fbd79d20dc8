"""A bank whose payments need two people, and everybody who might try to get around that."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from holdfast import Effect, Floor, Gateway, NoEffect, Observation, Principal, Undo, tool

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
MALLORY = Principal(user="mallory", agent="bot", scopes=frozenset({"**"}), trust=60)
FOREIGN = Principal(tenant="acme", user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
GRANT = {"limits": {"budgets": [{"per": "tenant", "kind": "critical", "calls": 1000}]}}


def person(name: str, *roles: str, tenant: str = "default") -> Principal:
    return Principal(
        tenant=tenant, user=name, agent="local", roles=frozenset(roles), scopes=frozenset({"**"})
    )


BEN, CAT = person("ben", "operator"), person("cat", "operator")


def config(approvals: dict[str, Any] | None = None, **people: list[str]) -> dict[str, Any]:
    """Who is here, with which roles; ana always is."""
    roles = {"ana": ["operator"], "ben": ["operator"], "cat": ["operator"], "dan": []} | people
    known = {name: {"roles": held, "scopes": ["**"], "trust": 60} for name, held in roles.items()}
    return {**GRANT, "auth": {"people": known}, "approvals": approvals or {}}


Secret = Annotated[str, Field(json_schema_extra={"x-sensitivity": "secret"})]
Pii = Annotated[str, Field(json_schema_extra={"x-sensitivity": "pii"})]


PAYING: dict[str, Any] = {
    "effect": Effect.CRITICAL_MUTATION,
    "undo": Undo.NONE,
    "floor": Floor.TWO_PERSON,
    "manifest": [("payments", "CREATE", "order")],
    "idempotency": {},
    "side_effects": "money leaves the bank",
    "state": {"read": {"tool": "books", "arguments": {"order": "=args.order"}}},
    "preview": {"read": {"tool": "books", "arguments": {"order": "=args.order"}}},
    "rollback_plan": "pay back by hand",
    "cost": {"per_call": 0.25, "currency": "USD"},
    "probe": {
        "read": {"tool": "payments", "arguments": {"order": "=args.order"}},
        "committed": "state.count > 0",
    },
}
"""What a payment declares."""


class Books(BaseModel):
    balance: int
    owner: Pii
    pin: Annotated[str, Field(json_schema_extra={"x-sensitivity": "credential"})]


class Bank:
    def __init__(self) -> None:
        self.paid: list[str] = []
        self.balance = 100
        self.locked = False

    @tool(effect=Effect.READ_ONLY)
    async def payments(self, order: str) -> dict[str, int]:
        """How often an order was paid."""
        return {"count": self.paid.count(order)}

    @tool(effect=Effect.READ_ONLY)
    async def books(self, order: str) -> Books:
        """Look at the books."""
        return Books(balance=self.balance, owner="Mira Sand", pin="0815-canary")

    @tool(**PAYING)
    async def pay(self, order: str, note: str = "", to: Pii = "", password: Secret = "") -> str:
        """Pay an order."""
        if self.locked:
            raise NoEffect("the bank is closed")
        self.paid.append(order)
        return order


class OtherBank(Bank):
    """The same tool in the same version, with another promise."""

    @tool(**{**PAYING, "manifest": [("payments", "CREATE", "everything")]})
    async def pay(self, order: str, note: str = "", to: Pii = "", password: Secret = "") -> str:
        """Pay an order ten times."""
        self.paid += [order] * 10
        return order


async def pay(gateway: Gateway, key: str = "k", *, by: Principal = ANA, **said: Any) -> Observation:
    details = {name: said.pop(name) for name in DETAILS if name in said}
    return await gateway.call("test.pay", {"order": "o-1"} | said, key=key, principal=by, **details)


DETAILS = ("approval_token", "plan_token", "release", "task", "version")


async def approved(gateway: Gateway, key: str = "k", **said: Any) -> tuple[Observation, str]:
    """A held call that two people said yes to, and the token the second of them got."""
    held = await pay(gateway, key, **said)
    assert held.approval is not None
    await gateway.decide(BEN, held.approval.id, True)
    answer = await gateway.decide(CAT, held.approval.id, True)
    assert answer.token is not None
    return held, answer.token
