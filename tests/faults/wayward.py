"""Tools that act and then go wrong, in every way a tool can.

The register stands for the world outside: what is in it has happened, whatever anybody was told.
"""

import asyncio
import sys
import threading
from collections import Counter
from typing import Any

from holdfast import Effect, Invocation, NoEffect, tool
from holdfast.model.function import FunctionTool
from tests.faults.tools import PROBE, WRITE
from tests.soak.effects import name_of

DEADLINE_S = 2.0
SETTLE_AFTER_S = 1.0


class Register:
    def __init__(self) -> None:
        self.effects: Counter[str] = Counter()
        self.acted = asyncio.Event()
        """Somebody has just acted, and goes wrong now."""
        self.released = threading.Event()
        """Lets synchronous tools that hang go on."""
        self._loop = asyncio.get_running_loop()

    def act(self, invocation: Invocation) -> int:
        self.effects[name_of(invocation.key)] += 1
        self._loop.call_soon_threadsafe(self.acted.set)
        return self.effects.total()

    def tools(self) -> list[FunctionTool[..., Any]]:
        return [*_tools(self, "plain"), *_tools(self, "probed"), _effect_seen(self)]


def _effect_seen(register: Register) -> FunctionTool[..., Any]:
    @tool(effect=Effect.READ_ONLY)
    async def effect_seen(name: str) -> dict[str, list[int]]:
        """Look up how often an effect of this name happened."""
        return {"lines": [1] * register.effects[name_of(name)]}

    return effect_seen


def _tools(register: Register, kind: str) -> list[FunctionTool[..., Any]]:
    declared: Any = {**WRITE, "probe": PROBE} if kind == "probed" else WRITE

    @tool(effect=Effect.LOW_RISK_INTERNAL, name=f"{kind}_async", **declared)
    async def acts(way: str, invocation: Invocation) -> dict[str, int]:
        """Act, then go wrong in this way."""
        if way == "raise before acting":
            raise RuntimeError("too early")
        if way == "no effect":
            raise NoEffect("there is no such line")
        line = register.act(invocation)
        if way == "hang":
            await asyncio.Event().wait()
        if way == "ignore the deadline":
            await _stubborn(register)
        return _answer(way, line)

    @tool(effect=Effect.LOW_RISK_INTERNAL, name=f"{kind}_sync", **declared)
    def acts_in_a_thread(way: str, invocation: Invocation) -> dict[str, int]:
        """Act, then go wrong in this way, in a thread."""
        if way == "hang, then no effect":
            register._loop.call_soon_threadsafe(register.acted.set)
            register.released.wait()
            raise NoEffect("it was not there after all")
        line = register.act(invocation)
        if way.startswith("hang"):
            register.released.wait()
        return _answer(way, line)

    return [acts, acts_in_a_thread]


async def _stubborn(register: Register) -> None:
    """Work that does not stop when it is told to."""
    while not register.released.is_set():
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            continue


def _answer(way: str, line: int) -> dict[str, int]:
    garbage: Any = None
    match way:
        case "raise" | "hang, then raise":
            raise RuntimeError("lost on the way back")
        case "exit":
            sys.exit(3)
        case "cancel itself":
            raise asyncio.CancelledError
        case "answer with the wrong type":
            garbage = {"line": "one"}
        case "answer with something that is not JSON":
            garbage = {"line": object()}
        case "answer with a number no JSON reader takes":
            garbage = {"line": 2**80}
    return garbage or {"line": line}
