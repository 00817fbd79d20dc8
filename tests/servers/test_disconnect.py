"""What becomes of a write whose caller went away?

A real server and a real socket: nothing else shows what happens when one is closed.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import orjson
import pytest
from starlette.applications import Starlette

from tests.requirements import requirement
from tests.servers.desk import Desk
from tests.servers.serving import Served, serving

BOTH_WAYS = True

BODY = {"tool": "desk.add_slowly", "arguments": {"text": "kept"}, "key": "k-1"}
HEADERS = {"X-Holdfast-User": "ann"}


async def ask(
    sent: AbstractAsyncContextManager[aiohttp.ClientResponse],
) -> tuple[int, Mapping[str, str], Any]:
    """Status, headers and body; nothing is left open."""
    async with sent as answer:
        return answer.status, answer.headers, await answer.json()


async def send_and_leave(served: Served, path: str, body: bytes, desk: Desk) -> None:
    """Sends a request, waits until the tool has started, and closes the connection."""
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "X-Holdfast-User: ann",
        f"Content-Length: {len(body)}",
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    await desk.started.wait()
    writer.transport.abort()
    await served.until_nobody_is_connected()


@requirement("EXE-1", "IDM-1")
@pytest.mark.parametrize("path", ["/v1/calls", "/rpc"])
async def test_a_dispatched_write_outlives_the_connection_of_its_caller(
    app: Starlette, desk: Desk, path: str
) -> None:
    body = (
        BODY if path == "/v1/calls" else {"jsonrpc": "2.0", "method": "tools.call", "params": BODY, "id": 1}
    )
    async with serving(app) as served:
        await send_and_leave(served, path, orjson.dumps(body), desk)
        assert desk.notes == []
        desk.go_on.set()
        async with aiohttp.ClientSession(served.url, headers=HEADERS) as client:
            status, headers, said = await ask(client.post("/v1/calls", json=BODY))
            assert (status, said["status"], said["replayed"]) == (200, "done", True)
            assert headers["Idempotent-Replayed"] == "true"
            _, _, kept = await ask(client.get(f"/v1/calls/{said['call_id']}"))
    assert kept["status"] == "done"
    assert kept["outcome"]["rung"] in ("accepted", "observed", "verified")
    assert desk.notes == ["kept"]


@requirement("NAM-1", "NAM-3")
async def test_a_real_server_speaks_to_a_real_client(app: Starlette, desk: Desk) -> None:
    async with serving(app) as served, aiohttp.ClientSession(served.url, headers=HEADERS) as client:
        assert (await ask(client.get("/health")))[0] == 200
        body = {"tool": "desk.add", "arguments": {"text": "x"}, "key": "k"}
        assert (await ask(client.post("/v1/calls", json=body)))[0] == 200
        status, _, said = await ask(client.post("/v1/calls", data=b" " * 20_001))
        assert (status, set(said)) == (413, {"error", "next"})
        assert (await ask(client.get("/v1/tools", headers={"Origin": "https://evil.example"})))[0] == 403
    assert desk.notes == ["x"]


async def test_a_client_that_leaves_in_the_middle_of_its_body_starts_nothing(
    app: Starlette, desk: Desk
) -> None:
    async with serving(app) as served:
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(b"POST /v1/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\n{")
        async with aiohttp.ClientSession(served.url) as client:
            assert (await ask(client.get("/health")))[0] == 200  # by now the server has seen the first half
        writer.transport.abort()
        await served.until_nobody_is_connected()
        async with aiohttp.ClientSession(served.url) as client:
            assert (await ask(client.get("/health")))[0] == 200
    assert desk.notes == []
