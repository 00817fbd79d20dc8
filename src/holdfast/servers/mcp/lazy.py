"""How does a client work with more tools than a model can read?

Above a number the list holds the pinned tools and three more: one that finds tools and tells a line about
each, one that tells everything about one, and one that calls it (SEL-1). Whatever is not listed can be called
all the same, by its name or through `call_tool`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from holdfast.servers.mcp.errors import wrong
from holdfast.servers.mcp.names import Entry
from holdfast.servers.mcp.shown import descriptor, visible

if TYPE_CHECKING:
    from holdfast.servers.mcp.exchange import Exchange
    from holdfast.servers.mcp.hub import Hub

CallEntry = Callable[["Hub", "Exchange", Entry, Mapping[str, Any]], Awaitable[dict[str, Any]]]

FOUND = 10
"""Tools a search tells of where the caller does not say; FIG-1's selection k."""
MOST_FOUND = 50
LEAST_HEALTH = 0.05
"""Nothing that a search matches is hidden for being sick."""

SEARCH, DESCRIBE, CALL = "search_tools", "describe_tool", "call_tool"


def _tool(
    name: str, text: str, properties: dict[str, Any], required: Sequence[str], **hints: bool
) -> dict[str, Any]:
    return {
        "name": name,
        "description": text,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
        "annotations": hints,
    }


_NAME = {"type": "string", "description": "The tool's name, as 'search_tools' tells it."}
TOOLS: Mapping[str, dict[str, Any]] = {
    SEARCH: _tool(
        SEARCH,
        "Find tools by words. Tells the name, what it does in a sentence and its effect. There are more "
        "tools than are listed: search before you say that something cannot be done.",
        {
            "query": {"type": "string", "description": "Words that say what you want to do."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": FOUND},
        },
        ["query"],
        readOnlyHint=True,
    ),
    DESCRIBE: _tool(
        DESCRIBE,
        "Everything about one tool: its description and the schema of its arguments. Ask before you call it.",
        {"name": _NAME},
        ["name"],
        readOnlyHint=True,
    ),
    CALL: _tool(
        CALL,
        "Call a tool that is not listed. It is checked and recorded like any other call.",
        {"name": _NAME, "arguments": {"type": "object", "description": "As its schema says."}},
        ["name", "arguments"],
        readOnlyHint=False,
        openWorldHint=True,
    ),
}


def applies(hub: "Hub", entries: Sequence[Entry]) -> bool:
    return len(entries) > hub.gateway.config.mcp.lazy_above


def descriptors() -> list[dict[str, Any]]:
    return [dict(tool) for tool in TOOLS.values()]


def pinned(hub: "Hub", entries: Sequence[Entry]) -> list[Entry]:
    return [hub.aliases.of(entry) for entry in entries if hub.pinned(entry)]


async def answered(
    hub: "Hub", exchange: "Exchange", name: str, arguments: Mapping[str, Any], call: CallEntry
) -> dict[str, Any]:
    if name == SEARCH:
        return _search(hub, exchange, arguments)
    entry = _named(hub, exchange, arguments)
    if name == DESCRIBE:
        return _said(descriptor(entry))
    inner = arguments.get("arguments")
    if not isinstance(inner, Mapping):
        raise wrong("'arguments' must be an object: what the tool itself is given")
    return await call(hub, exchange, entry, inner)


def _named(hub: "Hub", exchange: "Exchange", arguments: Mapping[str, Any]) -> Entry:
    for entry in visible(hub, exchange.principal):
        if entry.name == arguments.get("name"):
            return entry
    raise wrong(f"there is no tool '{str(arguments.get('name'))[:128]}' that you may use; search again")


def _search(hub: "Hub", exchange: "Exchange", arguments: Mapping[str, Any]) -> dict[str, Any]:
    query, limit = arguments.get("query"), arguments.get("limit", FOUND)
    if not isinstance(query, str) or not isinstance(limit, int) or isinstance(limit, bool):
        raise wrong("'query' must be a string, and 'limit' a whole number")
    words = query.lower().split()
    entries = visible(hub, exchange.principal)
    healths = hub.gateway.health.scores(exchange.principal.tenant)
    ranked = sorted(
        ((_score(entry, words) * _health(entry, healths), entry) for entry in entries),
        key=lambda found: -found[0],
    )
    found = [entry for score, entry in ranked if score > 0 or not words][: min(max(limit, 1), MOST_FOUND)]
    if not found:
        return _said({"tools": [], "hint": f"none of {len(entries)} tools mentions these words; use others"})
    return _said({"tools": [_line(entry) for entry in found]})


def _score(entry: Entry, words: Sequence[str]) -> float:
    """How many of the words a tool mentions; its name says more than its description."""
    contract = entry.listing.tool.contract
    name = f"{entry.name} {contract.tool}".lower()
    text = f"{contract.affordance.description} {' '.join(contract.identity.tags)}".lower()
    return sum(2.0 if word in name else 1.0 if word in text else 0.0 for word in words)


def _health(entry: Entry, healths: Mapping[str, float]) -> float:
    """What fails is found later, and still found: a model that asks for it by name means it; SEL-4."""
    return max(healths.get(entry.listing.tool.contract.tool, 1.0), LEAST_HEALTH)


def _line(entry: Entry) -> dict[str, str]:
    contract = entry.listing.tool.contract
    sentence = " ".join(contract.affordance.description.split()).partition(". ")[0].rstrip(".")
    return {"name": entry.name, "does": sentence, "effect": contract.effect.value}


def _said(data: dict[str, Any]) -> dict[str, Any]:
    text = orjson.dumps(data).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": data, "isError": False}
