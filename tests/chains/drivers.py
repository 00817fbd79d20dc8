"""Processes that drive runs with DBOS, for a test to kill."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests.polling import until
from tests.soak.server import ROOT

TELL_S = 5.0


class Driver:
    """One `tests.chains.driving`; what it says is read line by line."""

    def __init__(self, name: str, url: str, folder: Path, wish: dict[str, Any], tree: Path) -> None:
        self._tree = tree
        self._command = ("-m", "tests.chains.driving", url, str(folder), json.dumps(wish))
        self._log = folder / f"{name}.log"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        parts = (str(self._tree), str(self._tree / "src"), os.environ.get("PYTHONPATH"))
        path = os.pathsep.join(filter(None, parts))
        with self._log.open("ab") as said:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, *self._command),
                cwd=self._tree,  # what is here is imported before everything else
                env={**os.environ, "PYTHONPATH": path},
                stdout=asyncio.subprocess.PIPE,
                stderr=said,
            )

    async def said(self, what: str) -> dict[str, Any]:
        """The next line that tells of this."""
        while True:
            line = await self._pipe.readline()
            assert line, f"it ended:\n{self.log[-3000:]}"
            told: dict[str, Any] = json.loads(line)
            if what in told:
                return told

    async def runs(self) -> list[dict[str, Any]]:
        """All of them, once they are over; it ends then."""
        told = [json.loads(line) async for line in self._pipe]
        assert await self.ended() == 0, self.log[-3000:]
        return [one for one in told if "run" in one]

    async def ended(self) -> int:
        assert self._process is not None
        return await self._process.wait()

    async def kill(self) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.communicate()

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(number)

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def _pipe(self) -> asyncio.StreamReader:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout


@asynccontextmanager
async def driver(
    name: str, url: str, folder: Path, *, tree: Path = ROOT, **wish: Any
) -> AsyncIterator[Driver]:
    """`tree`: where the build is that it runs."""
    it = Driver(name, url, folder, wish, tree)
    await it.start()
    try:
        yield it
    except (TimeoutError, asyncio.CancelledError):
        it.signal(signal.SIGUSR1)  # where it is stuck is in its log then
        with suppress(TimeoutError):
            await asyncio.wait_for(until(lambda: "these are all tasks" in it.log), TELL_S)
        raise
    finally:
        await it.kill()
