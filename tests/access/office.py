"""Two gateways on one store, an office with orders, and people who may do different things with them."""

import json
from dataclasses import dataclass
from typing import Any

from holdfast import Effect, Gateway, Observation, Principal, Undo, tool
from holdfast.identity import mint
from holdfast.model.call import Call, Decision
from tests.approvals.opening import House

ANA_KEY, _ENTRY = mint("ana", "bot")
CONFIG: dict[str, Any] = {
    "auth": {
        "mode": "api_key",
        "people": {
            "ana": {"scopes": ["orders:read"]},
            "bea": {"scopes": ["orders:read"]},
            "olga": {"roles": ["operator"]},
            "otto": {"roles": ["operator"], "scopes": ["orders:read"]},
            "fred": {"tenant": "acme", "scopes": ["orders:read"]},
            "fina": {"tenant": "acme", "roles": ["operator"]},
        },
        "agents": {
            "bot": {"user": "ana"},
            "narrow": {"user": "ana", "scopes": ["orders:read"]},
        },
        "keys": [_ENTRY],
    }
}
ANA_KEY_ID = _ENTRY["id"]


def person(name: str, *roles: str, tenant: str = "default", agent: str = "person", **said: Any) -> Principal:
    return Principal(tenant=tenant, user=name, agent=agent, roles=frozenset(roles), **said)


ANA, BEA = person("ana"), person("bea")
OLGA, OTTO = person("olga", "operator"), person("otto", "operator")
FINA = person("fina", "operator", tenant="acme")


class Allow:
    """A policy that is not the question here."""

    version = "all"

    def decide(self, call: Call) -> Decision:
        return Decision(id="d-1", allow=True, version=self.version)


class Orders:
    def __init__(self) -> None:
        self.refunded: list[str] = []

    @tool(effect=Effect.READ_ONLY, scopes=["orders:read"])
    async def look(self, order: str) -> dict[str, str]:
        """Look at an order."""
        return {"order": order}

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.EXACT,
        scopes=["orders:refund"],
        manifest=[("orders", "UPDATE", "order")],
        idempotency={},
    )
    async def refund(self, order: str) -> dict[str, str]:
        """Refund an order."""
        self.refunded.append(order)
        return {"refunded": order}


@dataclass(frozen=True, slots=True)
class Office:
    house: House
    orders: Orders
    one: Gateway
    other: Gateway

    async def come_in(self, gateway: Gateway, key: str) -> Principal:
        """As a request does: refused once, the gateway looks whether it has learnt of the key."""
        headers = {"authorization": f"Bearer {key}"}
        try:
            return gateway.identity.authenticate(headers)
        except Exception:
            if not await gateway.identity.learn(headers):
                raise
            return gateway.identity.authenticate(headers)

    async def refund(self, gateway: Gateway, by: Principal, order: str = "o-1") -> Observation:
        return await gateway.call("test.refund", {"order": order}, principal=by, key=order)

    def told(self, kind: str = "access", tenant: str = "default") -> list[dict[str, Any]]:
        kept = [r for r in self.house.records() if r.kind == kind and r.tenant == tenant]
        return [json.loads(record.body) for record in kept]

    def done(self) -> list[str]:
        """What was done to keys and grants; each gateway has a log of its own, so in no order."""
        return sorted(told["operation"] for told in self.told())
