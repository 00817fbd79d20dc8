"""What is one worker to the process that started it?

A process of its own, started afresh and not forked: it may be newer than its parent. It ends when its pipe
does, so it cannot outlive its parent unnoticed.
"""

import asyncio
import os
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import Sequence

from holdfast.cli.links import Links
from holdfast.cli.tally import Tally
from holdfast.model.timeout import timeout


class Worker:
    def __init__(self, number: int, process: Process, life: int, heard: int) -> None:
        self.number = number
        self.process = process
        self.ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether it came to serve; False when it ended before."""
        self.began = asyncio.get_running_loop().time()
        self._life = life
        asyncio.get_running_loop().add_reader(heard, self._hear, heard)

    @classmethod
    async def start(
        cls,
        number: int,
        command: Sequence[str],
        bound: socket.socket,
        tally: Tally,
        *,
        first: bool,
        alone: bool,
    ) -> "Worker":
        wanted, life = os.pipe()
        heard, report = os.pipe()
        links = Links(bound.fileno(), wanted, report, first, alone)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                "--worker",
                str(links),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(links.bound, wanted, report, tally.descriptor),
                env=os.environ | tally.variable(number),
                process_group=0,  # Ctrl-C is for the parent, which passes it on once
            )
        except BaseException:
            os.close(life)
            os.close(heard)
            raise
        finally:
            os.close(wanted)
            os.close(report)
        return cls(number, process, life, heard)

    def __str__(self) -> str:
        return f"worker {self.number + 1} (process {self.process.pid})"

    @property
    def lived_s(self) -> float:
        return asyncio.get_running_loop().time() - self.began

    @property
    def serves(self) -> bool:
        return self.ready.done() and self.ready.result() and self.process.returncode is None

    @property
    def fate(self) -> str:
        """How it ended."""
        code = self.process.returncode
        if code is None:
            return "is still there"
        return f"ended with {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"

    def let_go(self) -> None:
        """Ask it to drain and end, without notice to load balancers: others serve in its place."""
        if self._life >= 0:
            os.close(self._life)
            self._life = -1

    def send(self, number: signal.Signals) -> None:
        if self.process.returncode is None:
            self.process.send_signal(number)

    async def end(self, patience_s: float) -> bool:
        """Wait for its end, and bring it about after a while; whether it came by itself."""
        try:
            async with timeout(patience_s):
                await self.process.wait()
        except TimeoutError:
            self.send(signal.SIGKILL)
            await self.process.wait()
            return False
        return True

    def _hear(self, heard: int) -> None:
        said = os.read(heard, 64)
        asyncio.get_running_loop().remove_reader(heard)
        os.close(heard)
        self.ready.set_result(bool(said))
