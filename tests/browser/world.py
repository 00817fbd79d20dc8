"""Which gateway does the browser open, and how does a test act on it from outside?"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

from holdfast.gateway import Gateway
from holdfast.identity.keys import hash_chosen
from holdfast.model.call import Principal
from holdfast.servers.app import build
from tests.servers.serving import serving

OTTO = {"scopes": ["orders:**", "refunds:**", "mail:**"], "trust": 60}
OPERATOR = {"roles": ["operator"], "scopes": ["orders:**", "refunds:**", "mail:**"]}
SECRETS = {"ana": "correct horse", "ben": "battery staple"}


def config(folder: Path, **more: Any) -> dict[str, Any]:
    """As the demo's: on this machine everybody is who they say; a refund needs two operators."""
    return {
        "store": f"sqlite:///{folder}/holdfast.db",
        "upstreams": {"shop": {"functions": "tests.browser.shop:TOOLS"}},
        "approvals": {"release": "gateway"},
        "limits": {
            "budgets": [
                {"per": "tenant", "kind": "critical", "calls": 10_000, "window_s": 86_400},
                {"per": "task", "kind": "external", "calls": 10},
            ],
            "ingress": {"rate": 10_000, "burst": 10_000},
        },
        "auth": {"mode": "local", "people": {"ana": OPERATOR, "ben": OPERATOR, "otto": OTTO, "eve": {}}},
        **more,
    }


def with_keys(folder: Path) -> dict[str, Any]:
    """People show who they are: a key each, and operators a secret to decide with."""
    people: dict[str, Any] = {
        name: {**OPERATOR, "approver_secret": hash_chosen(secret)} for name, secret in SECRETS.items()
    }
    return config(folder, auth={"mode": "api_key", "people": {**people, "otto": OTTO}})


@dataclass(slots=True)
class World:
    """A gateway that is served on a socket."""

    gateway: Gateway
    url: str
    _numbers: Iterator[int] = field(default_factory=lambda: count(1001))

    def order(self) -> str:
        """One that no other test has."""
        return f"o-{next(self._numbers)}"

    def person(self, name: str) -> Principal:
        """Somebody at the command line, where a browser is not what is tested."""
        return self.gateway.identity.at_terminal(name)

    async def call(self, tool: str, arguments: dict[str, Any], *, key: str = "", **more: Any) -> Any:
        """As an agent of otto's does, over HTTP; the observation."""
        body = {"tool": f"shop.{tool}", "arguments": arguments, **({"key": key} if key else {}), **more}
        return await self.ask("POST", "/v1/calls", "otto", body)

    async def ask(self, method: str, path: str, user: str, body: Any = None) -> Any:
        headers = {"X-Holdfast-User": user, "X-Holdfast-Agent": "support-bot"}
        async with (
            aiohttp.ClientSession(self.url, headers=headers) as client,
            client.request(method, path, json=body) as answer,
        ):
            return await answer.json()

    async def hold_refund(self, cents: int = 1500, **more: Any) -> Any:
        """The approval that a refund waits for."""
        order = self.order()
        said = {"order_id": order, "amount_cents": cents, "reason": "damaged"}
        seen = await self.call("refund", said, key=f"refund-{order}", **more)
        assert seen["status"] == "held", seen
        return seen


@asynccontextmanager
async def served(told: dict[str, Any]) -> AsyncIterator[World]:
    async with Gateway.open(told) as gateway, serving(build(gateway)) as server:
        yield World(gateway, server.url)
