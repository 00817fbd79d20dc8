"""What does the upstream say about itself, in the words of MCP 2025-11-25?

By hand: a server that is to lose its answers cannot be built on one that does not let it.
"""

from typing import Any

Json = dict[str, Any]
VERSION = "2025-11-25"
SERVER = {"name": "holdfast-faults", "version": "0.1.0"}
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603

ABOUT = {
    "write": "Change one thing, and say in which line of the book that is.",
    "checked": "Change one thing whose state can be looked up, and say in which line of the book that is.",
    "confirmed": "Change one thing after a person said yes in a dialogue.",
    "guarded": "Change one thing that a person should approve.",
    "seen": "Look up in which lines of the book a thing is.",
}


def tools(kinds: dict[str, str]) -> list[Json]:
    return [_tool(name, kind) for name, kind in kinds.items()]


def _tool(name: str, kind: str) -> Json:
    properties: Json = {"item": {"type": "string", "description": "What it is about."}}
    if kind != "seen":
        properties["idempotency_key"] = {"type": "string", "description": "Names the operation."}
    answer = {"lines": {"type": "array"}} if kind == "seen" else {"line": {"type": "integer"}}
    return {
        "name": name,
        "description": ABOUT[kind],
        "inputSchema": {"type": "object", "properties": properties, "required": ["item"]},
        "outputSchema": {"type": "object", "properties": answer, "required": list(answer)},
        "annotations": {"readOnlyHint": kind == "seen"},
    }


def introduction(method: str, params: Json, kinds: dict[str, str]) -> Json | None:
    """The result of everything but a call; None for a method that is not served."""
    match method:
        case "initialize":
            asked = params.get("protocolVersion")
            version = asked if isinstance(asked, str) and asked < VERSION else VERSION
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": SERVER}
        case "tools/list":
            return {"tools": tools(kinds)}
        case "ping":
            return {}
    return None


def answer(number: Any, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def error(number: Any, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def done(data: Json, text: str) -> Json:
    return {"content": [{"type": "text", "text": text}], "structuredContent": data, "isError": False}


def refused(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def question(number: Any, item: str) -> Json:
    schema = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}
    params = {"mode": "form", "message": f"change {item!r}?", "requestedSchema": schema}
    return {"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": params}
