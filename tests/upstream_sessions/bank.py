"""The bank of `examples/database` as a real server, and gateway processes before it that a test kills."""

import asyncio
import os
import signal
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import yaml

from tests.docs.pages import ROOT
from tests.polling import FELT_S, pause

EXAMPLE = ROOT / "examples" / "database"
PEOPLE = {"ada": {"scopes": ["**"], "trust": 90}, "olga": {"roles": ["operator"]}}


class Bank:
    def __init__(self, folder: Path, url: str, process: asyncio.subprocess.Process) -> None:
        self.folder, self.url, self._process = folder, url, process

    def configured(self, store: str) -> Path:
        """A configuration in the test's folder, for any number of processes."""
        path = self.folder / "holdfast.yaml"
        said = {
            "store": store,
            "trust_threshold": 50,
            "upstreams": {"bank": {"mcp": {"url": self.url}, "contracts": str(EXAMPLE / "bank.yaml")}},
            "auth": {"mode": "local", "people": PEOPLE},
        }
        path.write_text(yaml.safe_dump(said))
        return path

    def accounts(self) -> dict[str, int]:
        """What the book itself says, past every transaction that is open."""
        with closing(sqlite3.connect(self.folder / "bank.db")) as db:
            return dict(db.execute("SELECT name, cents FROM account ORDER BY name").fetchall())

    def stop(self) -> None:
        """It hears everything and answers nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)


@asynccontextmanager
async def bank(folder: Path) -> AsyncIterator[Bank]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    command = (sys.executable, str(EXAMPLE / "bank.py"), "--port", str(port))
    with (folder / "bank.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, "BANK_DB": str(folder / "bank.db")}, stdout=log, stderr=log
        )
    try:
        await _listening(port)
        yield Bank(folder, f"http://127.0.0.1:{port}/mcp", process)
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        await process.wait()


async def _listening(port: int) -> None:
    async with asyncio.timeout(FELT_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await pause()
            else:
                writer.close()
                return


class Worker:
    """One `tests.upstream_sessions.worker`."""

    def __init__(self, process: asyncio.subprocess.Process, session: str) -> None:
        self._process, self.session = process, session

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def worker(config: Path, last: str) -> AsyncIterator[Worker]:
    """Once it has begun a session and done its first step; `last` is what it does then."""
    with (config.parent / "worker.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.upstream_sessions.worker", str(config), last),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(FELT_S):
            said = (await process.stdout.readline()).decode().strip()
        assert said.startswith("ses_"), (config.parent / "worker.log").read_text()[-3000:]
        yield Worker(process, said)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
