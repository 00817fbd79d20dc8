"""The least an MCP server can cost: tools that answer at once, in both eras, over HTTP or stdio.

    python -m bench.upstream http          one process, raw ASGI; prints its URL
    python -m bench.upstream http 1000     with so many tools more
    python -m bench.upstream stdio         for gateways that start their servers themselves

`GET /calls` tells how many calls came through, so that a gateway that answers by itself is found out.
"""

import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
SERVER = {"name": "bench-upstream", "version": "1"}
IDLE_S = 3600
"""A gateway that waits for its turn keeps its connections."""

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Message = dict[str, Any]


def _tool(name: str, description: str, second: str, kind: str) -> Message:
    properties = {"item": {"type": "string"}, second: {"type": kind}}
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": ["item"]},
        "annotations": {"readOnlyHint": name != "write"},
    }


TOOLS = [
    _tool("read", "Look an item up.", "limit", "integer"),
    _tool("cached", "Look up an item that changes seldom.", "limit", "integer"),
    _tool("write", "Mark an item in a colour.", "colour", "string"),
]
COUNT = {"calls": 0}


def answer(message: Message) -> Message | None:
    """What is said to a message; None where nothing is."""
    if "id" not in message:
        return None
    params = message.get("params") or {}
    modern = "io.modelcontextprotocol/protocolVersion" in (params.get("_meta") or {})
    result = _result(str(message.get("method")), params)
    if result is None:
        error = {"code": -32601, "message": "method not found"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    if modern:
        result = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": SERVER}, **result}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _result(method: str, params: Message) -> Message | None:
    match method:
        case "tools/call":
            COUNT["calls"] += 1
            text = f'{{"item":"{params["arguments"]["item"]}","found":true}}'
            return {"content": [{"type": "text", "text": text}], "isError": False}
        case "initialize":
            asked = params.get("protocolVersion")
            version = asked if isinstance(asked, str) and asked < LEGACY else LEGACY
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": SERVER}
        case "server/discover":
            versions = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
            return {**versions, "ttlMs": 0, "cacheScope": "public"}
        case "tools/list":
            return {"tools": TOOLS, "ttlMs": 60_000, "cacheScope": "public"}
        case "ping":
            return {}
    return None


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    if scope["method"] != "POST":
        known = scope["path"] == "/calls"
        await _send(send, 200 if known else 405, str(COUNT["calls"]).encode() if known else b"")
        return
    body = b""
    while True:
        part = await receive()
        body += part.get("body", b"")
        if not part.get("more_body"):
            break
    message = orjson.loads(body)
    said = answer(message)
    session = [(b"mcp-session-id", b"bench")] if message.get("method") == "initialize" else []
    await _send(send, 202 if said is None else 200, b"" if said is None else orjson.dumps(said), session)


async def _send(send: Send, status: int, body: bytes, more: list[tuple[bytes, bytes]] | None = None) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *(more or []),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def http() -> None:
    import uvicorn

    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", 0))
        bound.listen(1024)
        print(f"http://127.0.0.1:{bound.getsockname()[1]}/mcp", flush=True)
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            lifespan="off",
            loop="uvloop",
            http="httptools",
            timeout_keep_alive=IDLE_S,
        )
        uvicorn.Server(config).run(sockets=[bound])


def stdio() -> None:
    lines, out = sys.stdin.buffer, sys.stdout.buffer
    for line in lines:
        if line.strip() and (said := answer(orjson.loads(line))) is not None:
            out.write(orjson.dumps(said) + b"\n")
            out.flush()


if __name__ == "__main__":
    _, transport, *more = sys.argv
    TOOLS += [
        _tool(f"other{n}", f"Look up {n}.", f"limit{n}", "integer")
        for n in range(int(more[0]) if more else 0)
    ]
    {"http": http, "stdio": stdio}[transport]()
