"""How are the processes of a gateway started, killed, stopped, woken and ended?

Each is a group of its own, and everything is done to the whole group: a gateway may have workers.
"""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from holdfast_faults.adapter import Launch, Unavailable

STARTING_S = 90.0
ENDING_S = 15.0


class Process:
    """One process of a gateway, started as often as it takes."""

    def __init__(self, launch: Launch, log: Path) -> None:
        self.launch = launch
        self.variables: Mapping[str, str] = {}
        """Beside its own, from the next start on."""
        self._log = log
        self._running: subprocess.Popen[bytes] | None = None
        self._began: float | None = None

    @property
    def up_since(self) -> float:
        """When it last began to listen; now, while it does not."""
        return time.monotonic() if self._began is None else self._began

    @property
    def alive(self) -> bool:
        return not self.launch.command or (self._running is not None and self._running.poll() is None)

    async def start(self) -> None:
        """Returns once it listens. Raises Unavailable."""
        if self.launch.command:
            with self._log.open("a") as said:
                self._running = subprocess.Popen(
                    [str(part) for part in self.launch.command],
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    cwd=self._log.parent,
                    env={**_inherited(), **self.launch.environment, **self.variables},
                    start_new_session=True,
                )
        await self._listening()

    async def kill(self) -> None:
        self._began = None
        self._signal(signal.SIGKILL)
        await self._ended(ENDING_S)

    def stop(self) -> None:
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._signal(signal.SIGCONT)

    def ask_to_end(self) -> None:
        self._began = None
        self._signal(signal.SIGTERM)

    async def end(self) -> None:
        """Gives it a while to go by itself; nothing of it stays."""
        if self._running is None:
            return
        self.wake()
        if self.alive:
            self.ask_to_end()
            await self._ended(ENDING_S)
        self._signal(signal.SIGKILL)
        await self._ended(ENDING_S)

    async def ended(self, within_s: float) -> bool:
        await self._ended(within_s)
        return not self.alive

    async def _ended(self, within_s: float) -> None:
        if self._running is not None:
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._running.wait, within_s)

    def _signal(self, number: int) -> None:
        if self._running is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._running.pid, number)

    async def _listening(self) -> None:
        where = urlsplit(self.launch.url)
        until = time.monotonic() + STARTING_S
        while time.monotonic() < until:
            if not self.alive:
                raise Unavailable(f"it ended at the start: {tail(self._log)}")
            try:
                _, writer = await asyncio.open_connection(where.hostname, where.port or 80)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                self._began = time.monotonic()
                return
        raise Unavailable(f"it did not listen within {STARTING_S:.0f} s: {tail(self._log)}")


def _inherited() -> dict[str, str]:
    """Settings of ours are not settings of a gateway that has the same prefix."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}


def tail(log: Path) -> str:
    text = log.read_text(errors="replace") if log.exists() else ""
    lines = [line for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-3:])[-400:] or "it said nothing"
