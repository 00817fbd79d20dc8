"""The upstream over stdio, for gateways that start their servers themselves.

Standard library only, so that it starts fast: some start one for every session. There is one pipe for
everything, so to drop the connection is to die.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from typing import Any

from holdfast_faults.upstream import protocol
from holdfast_faults.upstream.acting import Acting, Lost, can_ask, ordered
from holdfast_faults.upstream.protocol import Json

LAST_S = 60.0
"""How long it goes on after its gateway has gone: effects do not stop with who asked for them."""


class Pipe:
    def __init__(self, acting: Acting) -> None:
        self._acting = acting
        self._asks = False
        self._answers: dict[Any, asyncio.Future[Json]] = {}
        self._calls: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        reader = asyncio.StreamReader(limit=1 << 20)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            self._take(json.loads(line))
        if self._calls:
            await asyncio.wait(self._calls, timeout=LAST_S)

    def _take(self, message: Json) -> None:
        method, params, number = message.get("method"), message.get("params") or {}, message.get("id")
        if method is None:
            if (waiting := self._answers.pop(number, None)) is not None and not waiting.done():
                waiting.set_result(message)
        elif method == "tools/call":
            call = asyncio.create_task(self._call(number, params))
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
        elif number is not None:
            if method == "initialize":
                self._asks = can_ask(params)
            result = protocol.introduction(method, params, self._acting.kinds)
            unknown = protocol.error(number, protocol.METHOD_NOT_FOUND, f"there is no {method}")
            _write(unknown if result is None else protocol.answer(number, result))

    async def _call(self, number: Any, params: Json) -> None:
        try:
            result = await self._acting.call(params, self._ask if self._asks else None)
        except Lost as lost:
            if lost.args[0] == "drop":
                os._exit(1)
            if lost.args[0] == "error":
                _write(protocol.error(number, protocol.INTERNAL_ERROR, "internal error"))
            return
        _write(protocol.answer(number, result))

    async def _ask(self, question: Json) -> Json:
        waiting: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._answers[question["id"]] = waiting
        _write(question)
        return await waiting


def _write(message: Json) -> None:
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    with suppress(PermissionError):
        os.setsid()  # whoever kills the gateway and its group does not kill what the gateway started here
    asyncio.run(Pipe(ordered()).serve())
