"""A shop whose tools do as they are told: answer, fail, dawdle, lie."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from holdfast import Effect, Floor, Gateway, Invocation, NoEffect, Principal, Undo, tool
from holdfast.model.people import Alert
from holdfast.model.vocabulary import TimeoutClass
from holdfast.testing import ManualClock
from tests.approvals.opening import House

CONFIG: dict[str, Any] = {
    "auth": {
        "people": {"olga": {"roles": ["operator"], "scopes": ["**"]}, "ana": {"scopes": ["**"]}},
    },
}
ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
BEN = Principal(user="ben", agent="bot", scopes=frozenset({"**"}), trust=60)
OLGA = Principal(user="olga", agent="cli", roles=frozenset({"operator"}), scopes=frozenset({"**"}))
EVERYBODY = ("default",)

SELL: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "manifest": [("orders", "CREATE", "order")],
    "idempotency": {},
}


@dataclass
class Shop:
    clock: ManualClock
    mood: str = "well"
    takes_s: float = 0.01
    cost: float = 0.0
    """What a tool says that it cost, in dollars."""

    @tool(effect=Effect.READ_ONLY, max_retries=0, cost={"parts": {"compute": 0.01, "token": 0.002}})
    async def find(self, thing: str, asked: Invocation) -> dict[str, Any]:
        """Find a thing."""
        if self.cost:
            asked.costs["token"] = self.cost
        return await self._answer(thing)

    @tool(effect=Effect.READ_ONLY, max_retries=2, cost={"per_call": 0.5})
    async def ask(self, thing: str) -> dict[str, Any]:
        """Ask the wholesaler, who may be away."""
        return await self._answer(thing)

    @tool(effect=Effect.READ_ONLY, max_retries=0, timeout_class=TimeoutClass.INTERACTIVE)
    async def peek(self, thing: str) -> dict[str, Any]:
        """Peek at a thing."""
        return await self._answer(thing)

    @tool(effect=Effect.READ_ONLY, max_retries=0)
    async def count(self, thing: str) -> dict[str, str]:
        """Count things, in words."""
        return await self._answer(thing)

    @tool(**SELL, cost={"per_call": 1.0, "categories": ["network"]})
    async def sell(self, thing: str) -> dict[str, Any]:
        """Sell a thing."""
        return await self._answer(thing)

    @tool(
        **SELL,
        postconditions=[
            {
                "read": {"tool": "test.find", "arguments": {"thing": "=args.thing"}},
                "holds": "state.thing == 'sold'",
            }
        ],
    )
    async def ship(self, thing: str) -> dict[str, Any]:
        """Ship a thing, and see whether it went."""
        return await self._answer(thing)

    @tool(**SELL, floor=Floor.OPERATOR, cost={"parts": {"external_api": 2.0}})
    async def refund(self, thing: str) -> dict[str, Any]:
        """Give money back, when somebody says so."""
        return await self._answer(thing)

    async def _answer(self, thing: str) -> dict[str, Any]:
        if self.takes_s:
            await self.clock.advance(self.takes_s)
        match self.mood:
            case "broken":
                raise RuntimeError("out of order")
            case "away":
                raise ConnectionError("nobody answers the phone")
            case "declines":
                raise NoEffect("there is no such thing")
            case "lies":
                return {"thing": 5}
        return {"thing": thing}


async def called(
    gateway: Gateway, times: int, tool: str = "find", by: Principal = ANA, **details: Any
) -> list[str]:
    """Call a tool so often; what became of each call."""
    statuses = []
    for _ in range(times):
        observation = await gateway.call(f"test.{tool}", {"thing": "x"}, principal=by, **details)
        statuses.append(observation.status.value)
    return statuses


async def wrong(gateway: Gateway) -> list[Alert]:
    """Look for what is wrong, now."""
    await gateway.views.fresh()
    await gateway.alerts.tend(EVERYBODY, now=True)
    return list(await gateway.alerts.open(OLGA))


async def kinds(gateway: Gateway) -> set[tuple[str, str]]:
    return {(alert.kind, alert.subject) for alert in await wrong(gateway)}


@asynccontextmanager
async def watched(house: House, shop: Shop, **alerts: Any) -> AsyncIterator[Gateway]:
    config = {**CONFIG, "telemetry": {"alerts": alerts}}
    async with house.gateway(shop, config=config) as gateway:
        yield gateway
