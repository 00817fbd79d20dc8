"""A saga of five steps whose effects are lines of a file, so that whoever dies cannot forget them.

The file is in the folder that the environment names; each line is the key of a call that acted.
"""

import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from holdfast import Effect, Gateway, Invocation, Principal, Undo, tool
from holdfast import config as configuration
from holdfast.chains.declared import Chain
from holdfast.chains.reading import read
from holdfast.gateway.storing import store_of
from holdfast.gateway.wiring import Adapt, Store
from holdfast.model.errors import Code, NoEffect
from holdfast.model.function import FunctionTool
from holdfast.system import RandomIds, SystemClock
from holdfast.upstreams.function import FunctionUpstream
from tests.soak.effects import name_of

PLACE = "HOLDFAST_TEST_ORDERS"
FIVE = ("reserve", "charge", "pack", "ship", "bill")
BAD = "lead"
"""Nobody may order that, which is found out when everything is done."""
CONFIG: dict[str, Any] = {"auth": {"people": {"ann": {"scopes": ["**"], "trust": 80}}}}
TIMEOUT_MS = 2_000


class Fuse:
    """Where this process dies, by its own kill -9."""

    def __init__(self) -> None:
        self.point = ""

    def reached(self, point: str) -> None:
        if point == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


FUSE = Fuse()


def act(key: str | None) -> None:
    """The effect: one line, in one write."""
    name = name_of(key)
    line = os.open(Path(os.environ[PLACE]) / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(line, f"{name}\n".encode())
    finally:
        os.close(line)
    FUSE.reached(f"during {name.partition('.')[2]}")


def acted(folder: Path, run_id: str) -> list[str]:
    """The steps of a run that really did something, as they did."""
    lines = (folder / "effects").read_text().splitlines() if (folder / "effects").exists() else []
    return [line.partition(".")[2] for line in lines if line.startswith(f"{run_id}.")]


@tool(effect=Effect.READ_ONLY)
async def seen(name: str) -> dict[str, int]:
    """Look up how often an effect of this name happened.

    Args:
        name: the key of the operation
    """
    run_id, _, step = name_of(name).partition(".")
    return {"times": acted(Path(os.environ[PLACE]), run_id).count(step)}


@tool(effect=Effect.READ_ONLY)
async def check(item: str) -> str:
    """Look whether everything is as it should be.

    Args:
        item: what was ordered
    """
    if item == BAD:
        raise NoEffect("nobody may order that", Code.SEMANTIC_INVALIDITY)
    return item


def _write(result: str) -> Any:
    return {
        "effect": Effect.LOW_RISK_INTERNAL,
        "undo": Undo.EXACT,
        "manifest": [("order", "UPDATE", "one")],
        "idempotency": "none",
        "timeout_ms": TIMEOUT_MS,
        "probe": {
            "read": {"tool": "seen", "arguments": {"name": "=key"}},
            "committed": "state.times > 0",
            "result": result,
            "settle_after_s": 0.0,
        },
    }


def _pair(name: str) -> list[FunctionTool[..., Any]]:
    back = {"tool": f"un{name}", "arguments": {"id": "=result.id"}}

    @tool(name=name, compensation=back, **_write("{'id': args.item}"))
    async def do(item: str, invocation: Invocation) -> dict[str, str]:
        """Do one thing for an order.

        Args:
            item: what was ordered
        """
        act(invocation.key)
        return {"id": item}

    @tool(name=f"un{name}", **_write("{'id': args.id}"))
    async def undo(id: str, invocation: Invocation) -> dict[str, str]:
        """Take one thing back.

        Args:
            id: what was ordered
        """
        act(invocation.key)
        return {"id": id}

    return [do, undo]


TOOLS: list[FunctionTool[..., Any]] = [*(one for name in FIVE for one in _pair(name)), seen, check]


def saga(**said: Any) -> Chain:
    steps = [
        {"id": name, "tool": f"shop.{name}", "with": {"item": "=input.item"}} for name in (*FIVE, "check")
    ]
    order = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
    return read({"chain": "order", "saga": True, "input": order, "steps": steps, **said})


class Embedded:
    """A store with other parts before its own; without slots its runs are driven without DBOS."""

    def __init__(self, store: Store, **replaced: Any) -> None:
        self._store = store
        self._replaced: Mapping[str, Any] = replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced[name] if name in self._replaced else getattr(self._store, name)


@asynccontextmanager
async def shop(
    url: str,
    folder: Path,
    *,
    embedded: bool = True,
    runs: Any = None,
    adapt: Adapt | None = None,
    **said: Any,
) -> AsyncIterator[Gateway]:
    """A gateway of this process on a store that others may use too; `runs` stands before the store's own."""
    os.environ[PLACE] = str(folder)
    config = configuration.parse({**CONFIG, "store": url, **said}, folder=folder)
    async with store_of(config, SystemClock()) as store:
        replaced = {"runs": runs(store.runs)} if runs is not None else {}
        kept: Any = Embedded(store, **({"slots": None} if embedded else {}), **replaced)
        ports: dict[str, Any] = {"clock": store.clock, "ids": RandomIds(), "adapt": adapt}
        upstreams = {"shop": FunctionUpstream(TOOLS)}
        gateway = Gateway.assemble(config, cast(Store, kept), upstreams, **ports)
        try:
            await gateway.prepare()
            yield gateway
        finally:
            await gateway.close()


def ann(gateway: Gateway) -> Principal:
    return gateway.identity.at_terminal("ann")
