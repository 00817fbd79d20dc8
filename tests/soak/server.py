"""One `holdfast serve` process that a test may kill, stop and start again."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
STARTS = 3
"""A free port may be taken by somebody else between our look and the server's."""
STARTING_S = 60.0
"""A machine that needs longer than this to start a server is not fit for this test."""


class Server:
    """The same name through all its lives; each life has a port and a worker id of its own."""

    def __init__(self, name: str, config: Path, environment: Mapping[str, str]) -> None:
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
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self, starting: asyncio.Lock) -> None:
        """One after the other: the worker's lock file that is new then is this one's."""
        async with starting:
            before = self._locks()
            for _ in range(STARTS):
                if await self._spawn():
                    break
            else:
                raise AssertionError(f"'{self.name}' does not start:\n{self._log.read_text()[-3000:]}")
            [self.worker] = self._locks() - before
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

    async def _spawn(self) -> bool:
        self._port = free_port()
        command = ("-m", "holdfast", "serve", "--config", str(self.config), "--port", str(self._port))
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *command,
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

    def _locks(self) -> set[str]:
        return {path.stem for path in self.config.parent.glob("*-workers/*.lock")}


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
