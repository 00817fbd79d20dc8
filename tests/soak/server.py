"""One `holdfast serve` process that a test may kill, stop and start again."""

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import aiohttp

ROOT = Path(__file__).parents[2]
GREETING = "soak.greet"
STARTS = 3
"""A free port may be taken by somebody else between our look and the server's."""
STARTING_S = 60.0
"""A machine that needs longer than this to start a server is not fit for this test."""


class Server:
    """The same name through all its lives; each life has a port and a worker id of its own."""

    def __init__(
        self,
        name: str,
        config: Path,
        environment: Mapping[str, str],
        owner_of: Callable[[str], Awaitable[str | None]] | None = None,
        options: tuple[str, ...] = (),
    ) -> None:
        """`owner_of` tells which worker has the operation with a key; only `start` asks. `options` are those
        of the command.
        """
        self._options = options
        self.name = name
        self.config = config
        self.worker = ""
        self.up = asyncio.Event()
        self.stopped = False
        self.in_flight = 0
        """Requests sent to it that have no answer yet."""
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self._environment = {**os.environ, "PYTHONPATH": path, **environment}
        self._process: asyncio.subprocess.Process | None = None
        self._owner_of = owner_of
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def serving(self) -> bool:
        return self.up.is_set() and not self.stopped

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start it, and find out under which name it works: it makes a call, and the ledger says whose."""
        await self._run()
        async with asyncio.timeout(STARTING_S), aiohttp.ClientSession() as session:
            self.worker = ""
            while not self.worker:
                self.worker = await self._greet(session) or ""
        self.up.set()

    async def begin(self) -> None:
        """Start it where nobody wants to know its worker."""
        await self._run()
        self.up.set()

    async def kill(self) -> None:
        """kill -9: no handler, no cleaning up."""
        self.up.clear()
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    def stop(self) -> None:
        self.stopped = True
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._signal(signal.SIGCONT)
        self.stopped = False

    async def close(self) -> None:
        if self._process is not None and self._process.returncode is None:
            await self.kill()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def _run(self) -> None:
        for _ in range(STARTS):
            if await self._spawn():
                return
        raise AssertionError(f"'{self.name}' does not start:\n{self._log.read_text()[-3000:]}")

    async def _greet(self, session: aiohttp.ClientSession) -> str | None:
        assert self._owner_of is not None
        key = f"{self.name}-{secrets.token_hex(4)}"
        body = {"tool": GREETING, "arguments": {}, "key": key}
        async with session.post(f"{self.url}/v1/calls", json=body) as response:
            answer = await response.json()
        assert answer["status"] in ("done", "unknown") or answer["remedy"]["retryable"], answer
        return await self._owner_of(key)

    async def _spawn(self) -> bool:
        self._port = free_port()
        command = ("-m", "holdfast", "serve", "--config", str(self.config), "--port", str(self._port))
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *command,
                *self._options,
                env=self._environment,
                stdout=log,
                stderr=log,
                cwd=self.config.parent,
            )
        async with asyncio.timeout(STARTING_S):
            while self._process.returncode is None:
                if await _is_ready(self._port):
                    return True
                await asyncio.sleep(0.02)  # a process that starts tells nobody
        return False

    @property
    def _log(self) -> Path:
        return self.config.with_name(f"{self.name}.log")


async def _is_ready(port: int) -> bool:
    """Whether it takes calls; it may listen long before that."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /ready HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        status = await reader.readline()
    except OSError:
        return False
    writer.close()
    return b" 200 " in status


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
