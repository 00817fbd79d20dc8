"""Tools of every kind of effect, that count what they do."""

import asyncio
from collections import Counter
from typing import Any

from holdfast import Effect, Floor, Gateway, Invocation, NoEffect, Principal, Undo, tool
from holdfast.model.limits import Account, Amount, Kind, Per
from tests.lifecycle.world import WRITE

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
BEN = Principal(user="ben", agent="bot", scopes=frozenset({"**"}), trust=60)
ACME = Principal(tenant="acme", user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)


class Shop:
    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.mood = "well"
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.tries = 0

    @tool(effect=Effect.READ_ONLY)
    async def look(self, thing: str) -> dict[str, Any]:
        """Look at a thing."""
        if self.mood == "slow":
            self.entered.set()
            await self.release.wait()
        self.done["look"] += 1
        return {"thing": thing, "seen": self.done[thing] > 0}

    @tool(
        **WRITE,
        probe={
            "read": {"tool": "test.look", "arguments": {"thing": "=args.thing"}},
            "committed": "state.seen",
            "settle_after_s": 1.0,
        },
    )
    async def write(self, thing: str) -> str:
        """Write a thing."""
        return await self._act(thing)

    @tool(**WRITE)
    async def unprobed(self, thing: str) -> str:
        """Write a thing that nobody can look up."""
        return await self._act(thing)

    @tool(**{**WRITE, "idempotency": {"upstream": "meta"}}, cost={"per_call": 0.5, "currency": "USD"})
    async def buy(self, thing: str, invocation: Invocation) -> str:
        """Buy a thing; the seller honours the key."""
        self.tries += 1
        if self.mood == "flaky":
            raise ConnectionError("lost")
        return await self._act(thing)

    @tool(
        effect=Effect.CRITICAL_MUTATION,
        undo=Undo.EXACT,
        floor=Floor.TWO_PERSON,
        manifest=[("things", "DELETE", "thing")],
        idempotency={},
        rollback_plan="put it back",
        probe={
            "read": {"tool": "test.look", "arguments": {"thing": "=args.thing"}},
            "committed": "state.seen",
        },
    )
    async def destroy(self, thing: str) -> str:
        """Destroy a thing."""
        return await self._act(thing)

    async def _act(self, thing: str) -> str:
        if self.mood == "no_effect":
            raise NoEffect("it is locked")
        self.entered.set()
        if self.mood == "wait":
            await self.release.wait()
        self.done[thing] += 1
        if self.mood == "raise":
            raise RuntimeError("broke after the effect")
        return thing


def budget(**said: Any) -> dict[str, Any]:
    return {"limits": {"budgets": [said]}}


async def account(
    gateway: Gateway, per: Per = Per.TENANT, kind: Kind = Kind.WRITE, tenant: str = "default"
) -> Account:
    """The one account of this kind."""
    found = await gateway._ports.ledger.budgets(tenant)
    [one] = [a for a in found if (a.bucket.per, a.bucket.kind) == (per, kind)]
    return one


async def calls(gateway: Gateway) -> tuple[int, int]:
    """Used and reserved calls of the tenant's write budget."""
    found = await account(gateway)
    return found.used.calls, found.reserved.calls


NONE = Amount()
