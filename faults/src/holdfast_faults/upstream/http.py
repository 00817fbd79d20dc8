"""The upstream over streamable HTTP: one process, started by the kit, that outlives every gateway."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

from aiohttp import web

from holdfast_faults.upstream import protocol
from holdfast_faults.upstream.acting import Acting, Lost, can_ask, ordered
from holdfast_faults.upstream.protocol import Json

SESSION = "Mcp-Session-Id"


class Server:
    def __init__(self, acting: Acting) -> None:
        self._acting = acting
        self._asking: set[str] = set()
        """Sessions whose client answers questions."""
        self._answers: dict[Any, asyncio.Future[Json]] = {}

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/mcp", self.serve)
        app.router.add_delete("/mcp", _ended)
        return app

    async def serve(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        method, params, number = message.get("method"), message.get("params") or {}, message.get("id")
        if method is None:
            if (waiting := self._answers.pop(number, None)) is not None and not waiting.done():
                waiting.set_result(message)
            return web.Response(status=202)
        if number is None:
            return web.Response(status=202)
        if method == "tools/call":
            return await self._call(request, number, params)
        result = protocol.introduction(method, params, self._acting.kinds)
        if result is None:
            return web.json_response(
                protocol.error(number, protocol.METHOD_NOT_FOUND, f"there is no {method}")
            )
        return web.json_response(protocol.answer(number, result), headers=self._session(method, params))

    def _session(self, method: str, params: Json) -> dict[str, str]:
        if method != "initialize":
            return {}
        session = token_hex(8)
        if can_ask(params):
            self._asking.add(session)
        return {SESSION: session}

    async def _call(self, request: web.Request, number: Any, params: Json) -> web.StreamResponse:
        confirmed = self._acting.kinds[params["name"]] == "confirmed"
        if confirmed and request.headers.get(SESSION) in self._asking:
            return await self._dialogue(request, number, params)
        try:
            return web.json_response(protocol.answer(number, await self._acting.call(params, None)))
        except Lost as lost:
            return await _lose(request, number, lost.args[0])

    async def _dialogue(self, request: web.Request, number: Any, params: Json) -> web.StreamResponse:
        """The answer is a stream, because a question comes before it."""
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)

        async def ask(question: Json) -> Json:
            waiting: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
            self._answers[question["id"]] = waiting
            await stream.write(_event(question))
            return await waiting

        await stream.write(_event(protocol.answer(number, await self._acting.call(params, ask))))
        return stream


def _event(message: Json) -> bytes:
    return f"event: message\ndata: {json.dumps(message)}\n\n".encode()


async def _ended(_request: web.Request) -> web.Response:
    return web.Response(status=200)


async def _lose(request: web.Request, number: Any, ending: str) -> web.StreamResponse:
    match ending:
        case "drop":
            assert request.transport is not None
            request.transport.abort()
        case "error":
            return web.json_response(
                protocol.error(number, protocol.INTERNAL_ERROR, "internal error"), status=500
            )
        case "hang":
            while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110
                await asyncio.sleep(0.2)  # until whoever asked has gone; nobody tells
    return web.Response(status=202)  # nobody reads this


@asynccontextmanager
async def fronted(
    acting: Sequence[str], folder: Path, port: int, environment: Mapping[str, str]
) -> AsyncIterator[str]:
    """The upstream's URL, while the block runs."""
    with (folder / "upstream.log").open("w") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__, *acting, "--port", str(port)),
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    try:
        assert process.stdout is not None
        said = (await process.stdout.readline()).decode().strip()
        if not said:
            raise RuntimeError(f"the upstream did not start: {(folder / 'upstream.log').read_text()[-300:]}")
        yield f"http://127.0.0.1:{said}/mcp"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def main(acting: Acting, port: int) -> None:
    runner = web.AppRunner(Server(acting).application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(ordered(), int(sys.argv[sys.argv.index("--port") + 1])))
