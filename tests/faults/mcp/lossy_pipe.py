"""The server that acts and loses its answer, over stdio and in the handshake era.

There is one pipe for everything: to drop the connection is to die.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import orjson

from tests.faults.mcp import plan
from tests.faults.mcp.book import Book
from tests.faults.mcp.lossy import listed
from tests.faults.mcp.protocol import METHOD_NOT_FOUND, Json, answer, done, error, introduction


def said(book: Book, tools: list[Json], message: Json) -> list[bytes]:
    """The lines a request gets; none where it hangs."""
    method, params, number = message["method"], message.get("params", {}), message["id"]
    if method == "tools/call":
        return _called(book, params, number)
    result = introduction("legacy", method, params, tools)
    if result is None:
        return [orjson.dumps(error(number, METHOD_NOT_FOUND, f"there is no {method}"))]
    return [orjson.dumps(answer(number, result))]


def _called(book: Book, params: Json, number: Any) -> list[bytes]:
    arguments = params["arguments"]
    if params["name"] == "seen":
        return [_well(number, {"lines": book.lines(arguments["key"])})]
    name = arguments["thing"]
    line, first = book.asked(params["name"], name, params["_meta"].get("holdfast/key", ""))
    return _lost(number, name, line) if first else [_well(number, {"line": line})]


def _lost(number: Any, name: str, line: int) -> list[bytes]:
    match plan.way(name):
        case "drop":
            os._exit(1)
        case "hang":
            return []
        case "error":
            return [orjson.dumps(error(number, -32603, "internal error"))]
    return [
        b"Traceback (most recent call last): ...",
        b'{"jsonrpc": "2.0", "result": {',
        orjson.dumps(answer(number + 1_000_000, done("legacy", {"line": line}))),
        orjson.dumps({"jsonrpc": "2.0", "id": number, "result": "done"}),
    ]


def _well(number: Any, data: Json) -> bytes:
    return orjson.dumps(answer(number, done("legacy", data)))


async def main(file: Path, numbers: int) -> None:
    book, tools = Book(file), listed(numbers)
    reader = asyncio.StreamReader(limit=1 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        message = orjson.loads(line)
        if "id" in message:
            for text in said(book, tools, message):
                sys.stdout.buffer.write(text + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
