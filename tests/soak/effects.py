"""How many times did it really happen?

A process of its own that the gateway knows nothing of: one TCP port, one append-only file with one line per
effect. It deduplicates nothing, so whatever is done twice is counted twice, and it outlives every gateway.

    effect KEY  ->  the number of the line that was appended
    seen KEY    ->  the numbers of the lines of this key, or nothing
"""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

ADDRESS = "HOLDFAST_TEST_EFFECTS"
"""The environment variable with the port, for the tools inside the gateways."""


@dataclass(frozen=True)
class Effects:
    """The running process, as a test sees it."""

    port: int
    file: Path

    @property
    def environment(self) -> dict[str, str]:
        return {ADDRESS: str(self.port)}

    def counts(self) -> Counter[str]:
        """Effects by key, as the file has them."""
        return Counter(self.file.read_text().splitlines())


@asynccontextmanager
async def counting(file: Path) -> AsyncIterator[Effects]:
    """The process that counts effects, until the block ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.soak.effects", str(file), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield Effects(int(await process.stdout.readline()), file)
    finally:
        process.terminate()
        await process.wait()


def name_of(key: str | None) -> str:
    """The caller's key, without the mark of its scope that upstreams see."""
    return (key or "").rpartition(".")[0]


async def happen(key: str, port: int | None = None) -> int:
    """Make the effect happen; raises ConnectionError when nobody can say whether it did."""
    return (await _ask(f"effect {key}", port))[0]


async def seen(key: str, port: int | None = None) -> list[int]:
    return await _ask(f"seen {key}", port)


async def _ask(line: str, port: int | None) -> list[int]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port or int(os.environ[ADDRESS]))
    try:
        writer.write(line.encode() + b"\n")
        answer = await reader.readline()
    finally:
        writer.close()
    if not answer.endswith(b"\n"):
        raise ConnectionError("the process that counts effects did not answer")
    return [int(number) for number in answer.split()]


class Register:
    """The append-only file and what is in it."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        self._lines: dict[str, list[int]] = {}
        self._count = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A gateway may die in the middle of a line: half a request is none.
        request = await reader.readline()
        if request.endswith(b"\n"):
            verb, _, key = request.decode().strip().partition(" ")
            numbers = [self._append(key)] if verb == "effect" else self._lines.get(key, [])
            writer.write(" ".join(map(str, numbers)).encode() + b"\n")
        writer.close()

    def _append(self, key: str) -> int:
        os.write(self._file, f"{key}\n".encode())
        self._count += 1
        self._lines.setdefault(key, []).append(self._count)
        return self._count


async def main(file: Path) -> None:
    server = await asyncio.start_server(Register(file).serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
