"""Tools for the crash points: one effect, counted elsewhere, with a probe and without."""

from typing import Any, Final

from holdfast import Effect, Invocation, Undo, tool
from tests.soak import effects

WRITE: Final[Any] = {
    "undo": Undo.EXACT,
    "manifest": [("register", "CREATE", "line")],
    "idempotency": "none",
    "timeout_ms": 2000,
}
PROBE: Final[dict[str, Any]] = {
    "read": {"tool": "effect_seen", "arguments": {"name": "=key"}},
    "committed": "size(state.lines) > 0",
    "result": "{'line': state.lines[0]}",
    "settle_after_s": 1.0,
}


@tool(effect=Effect.READ_ONLY)
async def effect_seen(name: str) -> dict[str, list[int]]:
    """Look up how often an effect of this name happened.

    Args:
        name: The key of the operation.
    """
    return {"lines": await effects.seen(effects.name_of(name))}


@tool(effect=Effect.LOW_RISK_INTERNAL, **WRITE)
async def plain(invocation: Invocation) -> dict[str, int]:
    """Add one line to the register."""
    return {"line": await effects.happen(effects.name_of(invocation.key))}


@tool(effect=Effect.LOW_RISK_INTERNAL, probe=PROBE, **WRITE)
async def probed(invocation: Invocation) -> dict[str, int]:
    """Add one line to the register, in a way that can be checked afterwards."""
    return {"line": await effects.happen(effects.name_of(invocation.key))}


TOOLS = [plain, probed, effect_seen]
