"""How does an agent have its whole plan approved at once? APR-8.

Where the configuration says so (`mcp.plans`), whoever may call a tool that people must approve is offered one
tool more, which asks them about several calls together. A tool of an upstream with the same name goes before.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from holdfast.model.constraint import WORDS
from holdfast.model.derive import confirmation_required
from holdfast.model.vocabulary import Floor
from holdfast.servers.mcp.errors import wrong
from holdfast.servers.mcp.names import Entry
from holdfast.servers.members import faults, given
from holdfast.servers.standing import PLAN, proposed, shown_planned, step_faults

if TYPE_CHECKING:
    from holdfast.servers.mcp.exchange import Exchange
    from holdfast.servers.mcp.hub import Hub

NAME = "propose_plan"
DESCRIPTOR: dict[str, Any] = {
    "name": NAME,
    "description": (
        "Ask people once to approve several calls you are about to make, instead of once for each. "
        "Propose it before the first call that needs approval. Once approved, make each call as proposed. "
        'An argument you do not know yet is {"$any": {constraint}, "like": example}; constraints: '
        f"{', '.join(WORDS)}. A call that does not fit is asked about on its own."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "task": {"type": "string", "description": "What it is all for."},
            "steps": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "tool": {"type": "string", "description": "A tool's name, as listed."},
                        "arguments": {"type": "object"},
                    },
                    "required": ["tool", "arguments"],
                    "additionalProperties": False,
                },
            },
            "cost": {"type": "number", "description": "What all steps may cost at most."},
        },
        "required": ["steps"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": False, "destructiveHint": False},
}


def applies(hub: "Hub", entries: Sequence[Entry]) -> bool:
    if not hub.gateway.config.mcp.plans:
        return False
    return any(_asks(entry) for entry in entries) and all(entry.name != NAME for entry in entries)


def _asks(entry: Entry) -> bool:
    """Whether every call of it waits for a person; what policy asks for besides is known call by call."""
    contract = entry.listing.tool.contract
    floor = contract.security.approval_floor
    promise = contract.transactional
    always = not promise.composed and confirmation_required(contract.effect, promise.undo, floor)
    return entry.writes and (floor is not Floor.NONE or always)


async def answered(
    hub: "Hub", exchange: "Exchange", entries: Sequence[Entry], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    said = dict(arguments)
    found = faults(said, PLAN) or step_faults(said["steps"])
    if found:
        raise wrong("; ".join(fault.message for fault in found))
    names = {entry.name: entry.tool for entry in entries}
    steps = [{**step, "tool": names.get(step["tool"], step["tool"])} for step in said["steps"]]
    seen = await proposed(hub.gateway, exchange.principal, {**given(said), "steps": steps})
    told = shown_planned(seen)
    text = orjson.dumps(told).decode()
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": told,
        "isError": seen.status == "refused",
    }
