"""A program that speaks MCP badly, in the one way it is told to.

It knows the handshake era only, needs nothing but the standard library and starts fast.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

FOREVER = threading.Event()
MODE = sys.argv[1] if len(sys.argv) > 1 else ""


def write(raw: bytes) -> None:
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()


def send(message: Any) -> None:
    write(json.dumps(message).encode() + b"\n")


def result(number: Any, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": members}


def done(number: Any, text: str = "done") -> dict[str, Any]:
    return result(number, content=[], structuredContent={"text": text})


def note(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def initialize(number: Any) -> None:
    version = "2099-01-01" if MODE == "future" else "2025-11-25"
    send(
        result(
            number,
            protocolVersion=version,
            capabilities={"tools": {"listChanged": True}},
            serverInfo={"name": "rogue", "version": "0"},
        )
    )


def list_tools(number: Any, params: dict[str, Any]) -> None:
    page = int(params.get("cursor", "0"))
    tool = {"name": f"tool_{page}", "inputSchema": {"type": "object"}, "x-own": {"kept": [1, None]}}
    if MODE == "endless":
        send(result(number, tools=[tool], nextCursor=str(page + 1)))
    elif MODE == "circle":
        send(result(number, tools=[tool], nextCursor=str((page + 1) % 3)))
    elif MODE == "untidy":
        send(result(number, tools=[tool, 7, None, "tool"]))
    else:
        send(result(number, tools=[tool]))


def call(number: Any, params: dict[str, Any]) -> None:
    how = params.get("arguments", {}).get("how", MODE)
    match how:
        case "hang":
            return
        case "drip":
            for byte in json.dumps(done(number)).encode():
                write(bytes([byte]))
                FOREVER.wait(1)
        case "flood":
            while True:
                write((json.dumps(note("notifications/whatever")).encode() + b"\n") * 99)
        case "endless-line":
            while True:
                write(b"x" * 65536)
        case "invalid":
            send({"jsonrpc": "2.0", "id": number})
            send({"id": number, "method": 7})
            write(b'7\nnull\n"text"\n{}\n[]\n[[]]\n')
            send(done(number))
        case "no-outcome":
            send({"jsonrpc": "2.0", "id": number, "result": 7})
        case "wrong-id":
            for wrong in (number + 1000, -1, str(number) + "x", None, True, 1.5, {"a": 1}):
                send(done(wrong, "for somebody else"))
            send(done(number))
        case "text-id":
            send(done(str(number)))
        case "twice":
            send(done(number, "first"))
            send(done(number, "second"))
        case "storm":
            for _ in range(20_000):
                send(note("notifications/tools/list_changed"))
            send(done(number))
        case "questions":
            for n in range(500):
                send({"jsonrpc": "2.0", "id": f"q{n}", "method": "sampling/createMessage", "params": {}})
            send(done(number))
        case "noise":
            write(b"Loading model...\n\n\xff\xfe not text\n{not json}\n")
            send(done(number))
        case "die":
            os._exit(3)
        case "say":
            sys.stderr.write(os.environ.get("API_TOKEN", "") + "\n")
            sys.stderr.flush()
            error = {"code": -32603, "message": f"denied for {os.environ.get('API_TOKEN')}"}
            write(b"debug: " + os.environ.get("API_TOKEN", "").encode() + b"\n")
            send({"jsonrpc": "2.0", "id": number, "error": error})
        case "environment":
            send(result(number, content=[], structuredContent=dict(os.environ)))
        case "which":
            send(which(number))
        case "wait":  # until somebody writes to the pipe; others are served meanwhile
            threading.Thread(target=wait_for, args=(number, params["arguments"]["pipe"]), daemon=True).start()
        case "large":
            send(done(number, "x" * (17 * 1024 * 1024)))
        case "precise":
            write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],' % number)
            write(b'"structuredContent":{"n":123456789012345678901234567890},"x-more":{"y":[null]}}}\n')
        case "deaf":
            send(done(number))
            FOREVER.wait()
        case _:
            send(done(number))


def which(number: Any) -> dict[str, Any]:
    """Which process this is, and how long its secret."""
    told = {"pid": os.getpid(), "length": len(os.environ.get("API_TOKEN", ""))}
    return result(number, content=[], structuredContent=told)


def wait_for(number: Any, pipe: str) -> None:
    with open(pipe) as there:
        there.read()
    send(which(number))


def serve() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "initialize":
            initialize(number)
        elif method == "tools/list":
            list_tools(number, params)
        elif method == "tools/call":
            call(number, params)
        elif method == "ping" and MODE != "mute":
            send(result(number))
        elif method == "ping":
            continue
        elif number is not None and method and MODE != "ignores":
            send({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": f"no {method}"}})


def begin() -> None:
    if MODE == "crash":
        sys.stderr.write("cannot find my settings\n")
        sys.stderr.flush()
        os._exit(1)
    if MODE == "silent":
        FOREVER.wait()
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "parent":
        subprocess.Popen([sys.executable, "-S", "-E", "-c", "import threading; threading.Event().wait()"])
    serve()
    if MODE == "stubborn":
        FOREVER.wait()


begin()
