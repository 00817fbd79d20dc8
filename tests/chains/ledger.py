"""A shop with two of everything: one where it counts, and a twin where undoings are tried out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast import Effect, Floor, Undo, tool
from holdfast.config import parse
from holdfast.gateway import Gateway
from holdfast.gateway.wiring import connected
from holdfast.model.call import Principal
from holdfast.stores.memory import MemoryStore
from holdfast.system import RandomIds, SystemClock

PEOPLE = {
    "ada": {"scopes": ["shop:*"], "trust": 90},
    "ola": {"roles": ["operator"], "scopes": ["shop:*"]},
}
WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "scopes": ["shop:write"],
    "idempotency": "none",
}


class Books:
    """What a shop knows: its stock, and what each account owes."""

    def __init__(self) -> None:
        self.stock = {"tea": 5}
        self.owed: dict[str, int] = {}
        self.calls: list[str] = []

    @tool(effect=Effect.READ_ONLY, scopes=["shop:read"])
    async def look(self, item: str) -> dict[str, Any]:
        """Look at the books.

        Args:
            item: what is looked up
        """
        return {"stock": self.stock.get(item, 0), "owed": sum(self.owed.values()), "reads": len(self.calls)}

    @tool(
        **WRITE,
        manifest=[("stock", "UPDATE", "one")],
        compensation={"tool": "release", "arguments": {"item": "=args.item"}},
    )
    async def reserve(self, item: str) -> dict[str, str]:
        """Put one aside.

        Args:
            item: what is wanted
        """
        self.calls.append("reserve")
        self.stock[item] -= 1
        return {"item": item}

    @tool(**WRITE, manifest=[("stock", "UPDATE", "one")])
    async def release(self, item: str) -> str:
        """Put one back.

        Args:
            item: what is no longer wanted
        """
        self.calls.append("release")
        self.stock[item] += 1
        return item

    @tool(
        **WRITE,
        manifest=[("account", "UPDATE", "one")],
        compensation={"tool": "refund", "arguments": {"who": "=args.who"}},
    )
    async def charge(self, who: str, cents: int) -> dict[str, str]:
        """Write down what somebody owes.

        Args:
            who: the account
            cents: how much
        """
        self.calls.append("charge")
        self.owed[who] = self.owed.get(who, 0) + cents
        return {"who": who}

    @tool(**WRITE, manifest=[("account", "UPDATE", "one")])
    async def refund(self, who: str) -> str:
        """Give back half of what somebody owes, by mistake.

        Args:
            who: the account
        """
        self.calls.append("refund")
        self.owed[who] //= 2
        return who

    @tool(
        **{**WRITE, "floor": Floor.OPERATOR},
        manifest=[("stock", "UPDATE", "one")],
        compensation={"tool": "release", "arguments": {"item": "=args.item"}},
    )
    async def burn(self, item: str) -> dict[str, str]:
        """Take one away, if somebody agrees.

        Args:
            item: what is burnt
        """
        self.calls.append("burn")
        self.stock[item] -= 1
        return {"item": item}


REAL: list[Books] = []
TWINS: list[Books] = []


def real() -> Books:
    REAL.append(Books())
    return REAL[-1]


def twin() -> Books:
    TWINS.append(Books())
    return TWINS[-1]


@asynccontextmanager
async def proving(folder: Path, **more: Any) -> AsyncIterator[Gateway]:
    """Opened where it counts, with a twin beside it."""
    REAL.clear()
    TWINS.clear()
    upstream = {"functions": "tests.chains.ledger:real", "twin": {"functions": "tests.chains.ledger:twin"}}
    (folder / "open.cedar").write_text('@id("open")\npermit (principal, action, resource);\n')
    config = parse(
        {
            "environment": "staging",
            "policies": str(folder),
            "upstreams": {"shop": upstream},
            "auth": {"mode": "local", "people": PEOPLE},
            **more,
        }
    )
    clock = SystemClock()
    gateway = Gateway.assemble(config, MemoryStore(clock), connected(config), clock=clock, ids=RandomIds())
    await gateway.prepare()
    try:
        yield gateway
    finally:
        await gateway.close()


def person(gateway: Gateway, name: str) -> Principal:
    return gateway.identity.at_terminal(name)
