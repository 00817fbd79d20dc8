"""An MCP server that takes its time, another one for every call, so that answers come in any order.

Over stdio, where everybody's calls share one pipe, or over HTTP. Every answer carries the argument back, a
number that no other answer has, and the trace it was called in. Who asks for progress is told the number
twice before the answer.
"""

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
from aiohttp import web

from tests.faults.mcp.protocol import METHOD_NOT_FOUND, Era, Json, answer, done, error, introduction, tool

SEED: Final = 20260728
USUAL_S, LONG_S = 0.01, 0.15
"""The longest of most calls, and of one in twenty."""
ANSWERS = ("token", "serial", "trace", "key")
TOOLS = [
    tool("echo", "token", "Say a token back.", *ANSWERS),
    tool("note", "token", "Write a token down and say it back.", *ANSWERS),
    tool("tally", "token", "Count what was written down.", "notes"),
]
Tell = Callable[[Json], Awaitable[None]]


class Slow:
    def __init__(self, era: Era, name: str) -> None:
        self.era, self._name = era, name
        self._plan = random.Random(f"{SEED} {name}")
        self._calls = self._notes = 0

    async def answer(self, message: Json, tell: Tell) -> Json:
        method, params, number = message["method"], message.get("params", {}), message["id"]
        if method == "tools/call":
            return answer(number, done(self.era, await self._call(params, tell)))
        result = introduction(self.era, method, params, TOOLS)
        if result is None:
            return error(number, METHOD_NOT_FOUND, f"there is no {method}")
        return answer(number, result)

    async def _call(self, params: Json, tell: Tell) -> Json:
        if params["name"] == "tally":
            return {"notes": self._notes}
        self._calls += 1
        self._notes += params["name"] == "note"
        serial, meta = f"{self._name}-{self._calls}", params.get("_meta", {})
        work_s = self._plan.random() * (LONG_S if self._plan.random() < 0.05 else USUAL_S)
        for step in (1, 2):
            await asyncio.sleep(work_s / 2)
            if (token := meta.get("progressToken")) is not None:
                told = {"progressToken": token, "progress": step, "total": 2, "message": serial}
                await tell({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})
        trace = meta.get("traceparent", "--").split("-")[1]
        return {**params["arguments"], "serial": serial, "trace": trace, "key": meta.get("holdfast/key", "")}


# --- HTTP ---------------------------------------------------------------------------------


class Web:
    """Plain JSON where nothing is told on the way, else a stream of events."""

    def __init__(self, slow: Slow) -> None:
        self._slow = slow

    async def serve(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        if "id" not in message:
            return web.Response(status=202)
        if "progressToken" not in message.get("params", {}).get("_meta", {}):
            return web.json_response(await self._slow.answer(message, _nobody))
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)

        async def tell(said: Json) -> None:
            await stream.write(b"event: message\ndata: " + orjson.dumps(said) + b"\n\n")

        await tell(await self._slow.answer(message, tell))
        return stream


async def _nobody(said: Json) -> None:
    raise AssertionError("nobody asked to be told")


async def over_http() -> None:
    app = web.Application()
    app.router.add_post("/mcp", Web(Slow("modern", "web")).serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


@asynccontextmanager
async def slow_web() -> AsyncIterator[str]:
    """The server over HTTP as a process of its own; its address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.faults.mcp.slow", "http", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}/mcp"
    finally:
        process.terminate()
        await process.wait()


# --- stdio --------------------------------------------------------------------------------


async def over_stdio() -> None:
    slow, running = Slow("legacy", "pipe"), set[asyncio.Task[None]]()
    reader = asyncio.StreamReader(limit=1 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def tell(said: Json) -> None:
        sys.stdout.buffer.write(orjson.dumps(said) + b"\n")
        sys.stdout.buffer.flush()

    async def serve(message: Json) -> None:
        await tell(await slow.answer(message, tell))

    while line := await reader.readline():
        message: Any = orjson.loads(line)
        if "id" in message:
            task = asyncio.create_task(serve(message))
            running.add(task)
            task.add_done_callback(running.discard)


if __name__ == "__main__":
    asyncio.run(over_http() if sys.argv[1] == "http" else over_stdio())
