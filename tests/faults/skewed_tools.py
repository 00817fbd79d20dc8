"""Tools that run in processes whose clocks disagree. What they do is counted elsewhere."""

import asyncio
from typing import Any

from holdfast import Effect, Floor, Invocation, TimeoutClass, tool
from tests.faults.tools import PROBE, WRITE
from tests.soak import effects
from tests.soak.effects import name_of

POLL_S = 0.02
LONG: Any = {**WRITE, "timeout_ms": None, "timeout_class": TimeoutClass.LONG_RUNNING}


async def _act(invocation: Invocation) -> dict[str, int]:
    return {"line": await effects.happen(name_of(invocation.key))}


@tool(effect=Effect.READ_ONLY)
async def effect_seen(name: str) -> dict[str, list[int]]:
    """Look up how often an effect of this name happened."""
    return {"lines": await effects.seen(name_of(name))}


@tool(effect=Effect.LOW_RISK_INTERNAL, **LONG)
async def plain(invocation: Invocation) -> dict[str, int]:
    """Act."""
    return await _act(invocation)


@tool(effect=Effect.LOW_RISK_INTERNAL, probe=PROBE, **LONG)
async def probed(invocation: Invocation) -> dict[str, int]:
    """Act, in a way that can be looked up."""
    return await _act(invocation)


@tool(effect=Effect.LOW_RISK_INTERNAL, probe={**PROBE, "settle_after_s": 0.0}, **LONG)
async def slow(invocation: Invocation) -> dict[str, int]:
    """Act once somebody says so."""
    name = name_of(invocation.key)
    await effects.happen(f"begun.{name}")
    while not await effects.seen(f"go.{name}"):  # noqa: ASYNC110
        await asyncio.sleep(POLL_S)  # the one who says so is another process
    return await _act(invocation)


@tool(effect=Effect.LOW_RISK_INTERNAL, floor=Floor.OPERATOR, **LONG)
async def asked(invocation: Invocation) -> dict[str, int]:
    """Act, once a person has said yes."""
    return await _act(invocation)


@tool(effect=Effect.LOW_RISK_INTERNAL, rate_limit={"calls": 2, "per_s": 3000}, **LONG)
async def seldom(invocation: Invocation) -> dict[str, int]:
    """Act, twice in 50 minutes."""
    return await _act(invocation)


TOOLS = [effect_seen, plain, probed, slow, asked, seldom]
