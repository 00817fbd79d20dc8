"""A shop whose contracts say which orders a call touches, and who works there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from pydantic import Field

from holdfast import Effect, Floor, Gateway, Undo, tool
from holdfast.identity.keys import hash_random
from holdfast.policy import starter
from tests.approvals.opening import House

Order = Annotated[str, Field(json_schema_extra={"x-resource": "orders"})]


class Shop:
    def __init__(self) -> None:
        self.refunded: list[str] = []

    @tool(effect=Effect.READ_ONLY, scopes=["orders:read"])
    async def order(self, order: Order) -> str:
        """Look at an order."""
        return order

    @tool(effect=Effect.READ_ONLY, scopes=["orders:read"])
    async def search(self, text: str) -> list[str]:
        """Search everything."""
        return [text]

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.EXACT,
        manifest=[("orders", "UPDATE", "one order")],
        idempotency="none",
        scopes=["orders:refund"],
    )
    async def refund(self, order: Order) -> str:
        """Give money back."""
        self.refunded.append(order)
        return order

    @tool(
        effect=Effect.HIGH_RISK_EXTERNAL,
        undo=Undo.NONE,
        manifest=[("order notes", "CREATE", "one")],
        idempotency="none",
        scopes=["orders:write"],
        floor=Floor.OPERATOR,
        preview={},
        rollback_plan="write another",
        verification={"target": "the order"},
    )
    async def announce(self, text: str) -> str:
        """Tell customers, once an operator agrees."""
        self.refunded.append(text)
        return text


KEYS = {"alice": "a" * 64, "bot": "b" * 64, "olga": "c" * 64, "sam": "d" * 64}


def key(name: str) -> str:
    return f"hf_{name}key_{KEYS[name]}"


def _key(name: str, user: str, **more: Any) -> dict[str, Any]:
    return {"id": f"{name}key", "hash": hash_random(KEYS[name]), "user": user, **more}


def config(**auth: Any) -> dict[str, Any]:
    """Alice and her agent, an operator, and somebody of another tenant; each with a key."""
    people = {
        "alice": {"scopes": ["orders:*"], "trust": 80},
        "olga": {"roles": ["operator"], "scopes": ["orders:*"]},
        "sam": {"scopes": ["**"], "tenant": "south"},
    }
    agents = {"bot": {"user": "alice", "scopes": ["orders:read", "orders:refund"]}, "sams": {"user": "sam"}}
    keys = [
        _key("alice", "alice"),
        _key("bot", "alice", agent="bot"),
        _key("olga", "olga"),
        _key("sam", "sam"),
    ]
    return {"auth": {"mode": "api_key", "people": people, "agents": agents, "keys": keys, **auth}}


@asynccontextmanager
async def at_work(house: House, shop: Shop | None = None, **auth: Any) -> AsyncIterator[Gateway]:
    """The shop behind a gateway, with the starter's policies in force."""
    async with house.gateway(shop or Shop(), config=config(**auth)) as gateway:
        olga = gateway.identity.authenticate({"Authorization": f"Bearer {key('olga')}"})
        await gateway.policies.promote(olga, starter())
        yield gateway
