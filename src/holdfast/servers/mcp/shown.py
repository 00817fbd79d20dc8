"""Which tools may this caller use over MCP, and what are they told about each?

The upstream's own descriptor as it came, under its MCP name; a write also offers `idempotency_key` (NAM-5).
A tool the caller may not use is never shown, nor one that cannot be called now.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.model.contract import Contract
from holdfast.model.keys import MAX_KEY
from holdfast.model.vocabulary import Reach, Undo
from holdfast.servers.mcp.names import KEY, Entry

if TYPE_CHECKING:
    from holdfast.model.call import Principal
    from holdfast.servers.mcp.hub import Hub

KEY_SCHEMA: Mapping[str, Any] = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_KEY,
    "description": (
        "Optional name for this operation. Use the same one when you repeat the call because you got no "
        "answer: then it happens once."
    ),
}


def visible(hub: "Hub", principal: "Principal") -> list[Entry]:
    """What this caller may use now, in the order of the catalog."""
    allowed = {listing.tool.contract.tool for listing in hub.gateway.tools(principal)}
    return [entry for tool, entry in hub.names.by_tool.items() if tool in allowed and entry.shown]


def descriptor(entry: Entry) -> dict[str, Any]:
    native = entry.listing.native
    contract = entry.listing.tool.contract
    shown = _own(contract) if native is None else dict(native)
    shown["name"] = entry.name
    if contract.runtime.job is not None or contract.transactional.composed:
        shown.pop("outputSchema", None)  # that it goes on is an answer too, and clients check every answer
    if entry.takes_key:
        schema = shown.get("inputSchema")
        known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {"type": "object"}
        properties = known.get("properties")
        mine = {**(properties if isinstance(properties, Mapping) else {}), KEY: dict(KEY_SCHEMA)}
        shown["inputSchema"] = {**known, "properties": mine}
    return shown


def _own(contract: Contract) -> dict[str, Any]:
    """A tool that has no MCP descriptor of its own."""
    face, promise = contract.affordance, contract.transactional
    shown: dict[str, Any] = {
        "name": contract.identity.name,
        "description": _description(contract),
        "inputSchema": face.input_schema,
        "annotations": {
            "readOnlyHint": not contract.effect.writes,
            "destructiveHint": contract.effect.writes and promise.undo in (Undo.NONE, Undo.PARTIAL),
            "openWorldHint": contract.runtime.reach.at_least(Reach.NETWORK),
        },
    }
    if face.output_schema.get("type") == "object":
        shown["outputSchema"] = face.output_schema
    return shown


def _description(contract: Contract) -> str:
    """What a model should know, in one text: MCP has one place for it."""
    face = contract.affordance
    parts = [face.description]
    for label, lines in (
        ("Use when", face.use_when),
        ("Do not use when", face.do_not_use_when),
        ("Needs", face.preconditions),
    ):
        parts += [f"{label}: {line}" for line in lines]
    if face.side_effects:
        parts.append(f"Effect: {face.side_effects}")
    return "\n".join(parts)
