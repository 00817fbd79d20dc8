"""What does a server of ours say when it is asked who it is and what it can do?

Written by hand in both eras: a server that is to misbehave cannot be built on one that does not let it.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

Json = dict[str, Any]
Era = Literal["modern", "legacy"]

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
NAMES: Final = {"name": "tests", "version": "1.0.0"}
CAPABILITIES: Final[Json] = {"tools": {}}
PAGE: Final = 100
"""Tools on one page of the list."""

METHOD_NOT_FOUND: Final = -32601


def introduction(era: Era, method: str, params: Json, tools: Sequence[Json]) -> Json | None:
    """The result of everything but a call; None for a method that is not known in this era."""
    match era, method:
        case "modern", "server/discover":
            return modern({"supportedVersions": [MODERN], "capabilities": CAPABILITIES})
        case "legacy", "initialize":
            return {"protocolVersion": LEGACY, "capabilities": CAPABILITIES, "serverInfo": NAMES}
        case "legacy", "ping":
            return {}
        case _, "tools/list":
            page = _page(params, tools)
            return modern(page) if era == "modern" else page
    return None


def modern(result: Json) -> Json:
    """A result with what 2026-07-28 wants beside it."""
    about = {"io.modelcontextprotocol/serverInfo": NAMES}
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result, "_meta": about}


def done(era: Era, data: Json) -> Json:
    """The result of a call."""
    result = {"content": [{"type": "text", "text": str(data)}], "structuredContent": data, "isError": False}
    return {"resultType": "complete", **result} if era == "modern" else result


def answer(number: Any, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def error(number: Any, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def tool(name: str, argument: str, description: str, *answers: str) -> Json:
    """A descriptor: one argument, a string, and integers or strings to answer with."""
    return {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {argument: {"type": "string", "description": "Names what is asked for."}},
            "required": [argument],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {member: {} for member in answers},
            "required": list(answers),
        },
    }


def _page(params: Json, tools: Sequence[Json]) -> Json:
    start = int(params.get("cursor", 0))
    page: Json = {"tools": list(tools[start : start + PAGE])}
    return page if start + PAGE >= len(tools) else {**page, "nextCursor": str(start + PAGE)}
