"""How does a client that starts its servers itself get on?"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from mcp import Client, StdioServerParameters

from tests.requirements import requirement
from tests.servers.mcp.conftest import LEGACY, MODERN, seen, text

TOOLS = '''
from pathlib import Path

from holdfast import Effect, Undo, tool
from holdfast.model.vocabulary import Floor

print("printed while loading")

@tool(effect=Effect.READ_ONLY)
async def hello(name: str) -> dict[str, str]:
    """Say hello."""
    print("printed while running")
    return {"said": f"hello {name}"}

@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.EXACT,
    manifest=[("notes", "CREATE", "one")],
    idempotency="none",
)
async def note(text: str) -> dict[str, str]:
    """Write a note."""
    with Path("notes.txt").open("a") as notes:
        notes.write(text + "\\n")
    return {"text": text}

@tool(
    effect=Effect.HIGH_RISK_EXTERNAL,
    undo=Undo.NONE,
    manifest=[("money", "CREATE", "one")],
    idempotency="none",
    floor=Floor.USER,
    preview={},
    rollback_plan="none",
    verification={"target": "the account"},
)
async def pay(to: str) -> dict[str, str]:
    """Pay somebody."""
    return {"to": to}

tools = [hello, note, pay]
'''
CONFIG = """
store: sqlite:///holdfast.db
upstreams: {t: {functions: "served_tools:tools"}}
limits: {body_bytes: 5000}
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HOLDFAST_API_KEY": ""}
ARGUMENTS = ["-m", "holdfast", "stdio", "--config", "holdfast.yaml"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "served_tools.py").write_text(TOOLS)
    (tmp_path / "holdfast.yaml").write_text(CONFIG)
    return tmp_path


def client(folder: Path, era: str = MODERN) -> Client:
    process = StdioServerParameters(command=sys.executable, args=ARGUMENTS, cwd=folder, env=ENVIRONMENT)
    return Client(process, mode="legacy" if era == LEGACY else "auto")


@asynccontextmanager
async def started(folder: Path) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *ARGUMENTS, cwd=folder, env=ENVIRONMENT, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def say(process: Process, message: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(message if isinstance(message, bytes) else orjson.dumps(message) + b"\n")
    await process.stdin.drain()


async def hear(process: Process) -> Any:
    assert process.stdout is not None
    return orjson.loads(await process.stdout.readline())


def modern(number: int, method: str, **params: Any) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@requirement("PRO-1", "NAM-1", "AUT-1", "PPL-6")
async def test_a_client_calls_tools_and_what_they_print_is_not_in_its_way(folder: Path, era: str) -> None:
    async with client(folder, era) as one:
        assert one.protocol_version == era
        assert {tool.name for tool in (await one.list_tools()).tools} == {"t__hello", "t__note", "t__pay"}
        assert (await one.call_tool("t__hello", {"name": "Ada"})).structured_content == {"said": "hello Ada"}
        twice = [await one.call_tool("t__note", {"text": "a"}) for _ in range(2)]
        held = await one.call_tool("t__pay", {"to": "x"})
    assert [seen(result)["key_source"] for result in twice] == ["request", "request"]
    assert (folder / "notes.txt").read_text() == "a\na\n"
    assert seen(held)["status"] == "held"
    assert f"approve {seen(held)['approval']['id']}'" in text(held)
    assert "http" not in text(held)  # where no server runs there is no address to tell


@requirement("PPL-6", "IDM-4")
async def test_several_processes_share_one_store_and_a_key_is_one_operation_in_all_of_them(
    folder: Path,
) -> None:
    arguments = {"text": "once", "idempotency_key": "k"}
    async with client(folder) as one, client(folder) as two:
        results = await asyncio.gather(*(c.call_tool("t__note", arguments) for c in (one, two, one, two)))
    assert (folder / "notes.txt").read_text() == "once\n"
    assert {result.is_error for result in results} == {False}
    assert sum(seen(result)["replayed"] for result in results) == 3


@requirement("VAL-4")
async def test_what_cannot_be_read_is_answered_and_the_next_message_is_served(folder: Path) -> None:
    async with started(folder) as process:
        await say(process, b"{nonsense\n")
        await say(process, b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}\n')
        await say(process, b'{"jsonrpc":"2.0","id":3,"method":"' + b"x" * 9000 + b'"}\n\n')
        errors = [await hear(process) for _ in range(3)]
        await say(process, modern(4, "tools/call", name="t__hello", arguments={"name": "Ada"}))
        answer = await hear(process)
    assert [error["error"]["code"] for error in errors] == [-32700, -32700, -32600]
    assert answer["id"] == 4
    assert answer["result"]["structuredContent"] == {"said": "hello Ada"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_stops_in_order_when_it_is_told_to(folder: Path, number: int) -> None:
    async with started(folder) as process:
        await say(process, modern(1, "tools/list"))
        assert (await hear(process))["id"] == 1
        process.send_signal(number)
        assert await process.wait() == 0


@requirement("PPL-1")
async def test_a_configuration_that_cannot_be_used_is_said_on_stderr(folder: Path) -> None:
    (folder / "holdfast.yaml").write_text("upstream: {}\n")
    async with started(folder) as process:
        out, err = await process.communicate()
    assert (process.returncode, out) == (2, b"")
    assert b"did you mean 'upstreams'" in err
