"""Tools whose effects are counted elsewhere. They run inside the gateways that are killed.

They take milliseconds and have seconds: an outcome is lost to a blow, not to the deadline of a busy machine.
"""

import asyncio
import random

from holdfast import Effect, Invocation, TimeoutClass, Undo, tool
from tests.soak import effects

SETTLE_AFTER_S = 0.5
"""An effect under way when its gateway dies arrives well within this."""


def _name(invocation: Invocation) -> str:
    return effects.name_of(invocation.key)


async def _act(invocation: Invocation) -> dict[str, int]:
    """5 to 20 ms in all, the effect somewhere in between."""
    await asyncio.sleep(random.uniform(0.003, 0.012))
    line = await effects.happen(_name(invocation))
    if random.random() < 0.5:
        await asyncio.sleep(random.uniform(0.002, 0.008))
    return {"line": line}


@tool(effect=Effect.READ_ONLY)
async def effect_seen(name: str) -> dict[str, list[int]]:
    """Look up how often an effect of this name happened.

    Args:
        name: The key of the operation.
    """
    return {"lines": await effects.seen(effects.name_of(name))}


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.EXACT,
    manifest=[("register", "CREATE", "line")],
    idempotency="none",
    timeout_class=TimeoutClass.STANDARD,
)
async def apply(item: int, invocation: Invocation) -> dict[str, int]:
    """Add one line to the register.

    Args:
        item: What the line is about.
    """
    return await _act(invocation)


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.EXACT,
    manifest=[("register", "CREATE", "line")],
    idempotency="none",
    timeout_class=TimeoutClass.STANDARD,
    probe={
        "read": {"tool": "effect_seen", "arguments": {"name": "=key"}},
        "committed": "size(state.lines) > 0",
        "result": "{'line': state.lines[0]}",
        "settle_after_s": SETTLE_AFTER_S,
    },
)
async def apply_probed(item: int, invocation: Invocation) -> dict[str, int]:
    """Add one line to the register, in a way that can be checked afterwards.

    Args:
        item: What the line is about.
    """
    return await _act(invocation)


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.EXACT,
    manifest=[("greetings", "CREATE", "one")],
    idempotency="none",
    timeout_class=TimeoutClass.STANDARD,
)
async def greet() -> dict[str, bool]:
    """Do nothing, so that the ledger tells which worker a server is."""
    return {"greeted": True}


TOOLS = [apply, apply_probed, effect_seen, greet]
