"""How do messages come in by stdin and go out by stdout, and nothing else with them?

Both are taken before anything is loaded: from then on whatever reads stdin finds it empty, and whatever
prints goes to stderr. A line is held to the limits before it is parsed, like a request's body; waiting for
one can be broken off at any time, unlike reading in a thread.
"""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from typing import Any

import orjson

from holdfast.model.strict_json import Limits, ParseError, parse

CHUNK = 1 << 16


class Wire:
    """The two ends, taken from the process."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._in, self._out = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)

    async def opened(self, limits: Limits) -> "tuple[Lines, Out]":
        out = await Out.to(self._out)
        return Lines(_chunks(self._in), limits, out), out


class Out:
    """Where answers go."""

    def __init__(self, descriptor: int, writer: asyncio.StreamWriter | None) -> None:
        self._descriptor, self._writer = descriptor, writer

    @classmethod
    async def to(cls, descriptor: int) -> "Out":
        if _is_file(descriptor):
            return cls(descriptor, None)
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(descriptor, "wb", buffering=0)
        )
        return cls(descriptor, asyncio.StreamWriter(transport, protocol, None, loop))

    async def write(self, text: str) -> None:
        if self._writer is None:
            os.write(self._descriptor, text.encode())
        else:
            self._writer.write(text.encode())

    async def flush(self) -> None:
        if self._writer is not None:
            await self._writer.drain()


class Lines:
    """Messages as they come, one a line. What cannot be one is answered here and goes no further."""

    def __init__(self, chunks: AsyncIterator[bytes], limits: Limits, out: Out) -> None:
        self._chunks, self._limits, self._out = chunks, limits, out
        self._lines = self._split()

    def __aiter__(self) -> AsyncIterator[str]:
        return self._accepted()

    async def _accepted(self) -> AsyncIterator[str]:
        async for line in self._lines:
            if not line.strip():
                continue
            try:
                parse(line, self._limits)
            except ParseError as error:
                await self._refuse(error)
            else:
                yield line.decode()

    async def _split(self) -> AsyncIterator[bytes]:
        """A line that is too long is given up as soon as that is known, and skipped to its end."""
        most, held, skipping = self._limits.max_bytes, bytearray(), False
        async for chunk in self._chunks:
            held += chunk
            *whole, rest = held.split(b"\n")
            for line in whole:
                if not skipping:
                    yield bytes(line)
                skipping = False
            held = bytearray() if skipping else bytearray(rest)
            if len(held) > most:
                yield bytes(held[: most + 1])  # refused by its size
                held, skipping = bytearray(), True
        if held:
            yield bytes(held)

    async def _refuse(self, error: ParseError) -> None:
        code = -32600 if error.code_hint == "limits" else -32700
        said: dict[str, Any] = {"code": code, "message": f"the message cannot be read: {error.message}"}
        await self._out.write(orjson.dumps({"jsonrpc": "2.0", "id": None, "error": said}).decode() + "\n")
        await self._out.flush()


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    source = os.fdopen(descriptor, "rb", buffering=0)
    if _is_file(descriptor):
        while chunk := source.read(CHUNK):
            yield chunk
        return
    reader = asyncio.StreamReader(limit=CHUNK)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, source)
    while chunk := await reader.read(CHUNK):
        yield chunk


def _is_file(descriptor: int) -> bool:
    """Files are always ready, and an event loop takes none."""
    return stat.S_ISREG(os.fstat(descriptor).st_mode)
