"""How is a server's process started, fed, read and ended?

It is the leader of a group of its own, so that what it starts ends with it. It inherits a few variables and
gets the configured ones. Its standard error is drained to the log.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import cast

from holdfast.model.timeout import timeout
from holdfast.upstreams.mcp.errors import Unsent
from holdfast.upstreams.mcp.hidden import Hidden
from holdfast.upstreams.mcp.lines import Lines
from holdfast.upstreams.mcp.target import StdioTarget
from holdfast.upstreams.mcp.waste import Waste
from holdfast.upstreams.mcp.wire import ANSWER_BYTES

log = logging.getLogger(__name__)

INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")
"""What the SDK lets a server inherit, and what says where it runs. A test compares them: to ask the SDK
itself takes a second."""
BACKLOG_BYTES = 8 * 1024 * 1024
"""What may wait for a server that does not read; beyond it nothing more is sent."""
STDERR_LINE = 8192
LAST_WORDS = 3
LEAVE_S = 1.0
"""A server gets this long to end by itself once its input is closed, and once more after it was told to."""
DRAIN_S = 0.5
"""After its end, for what it wrote before: another process may hold its output open for ever."""


def environment(target: StdioTarget) -> dict[str, str]:
    found = {name: os.environ[name] for name in INHERITED if name in os.environ}
    # a function that a shell exported may be code in disguise
    return {name: value for name, value in found.items() if not value.startswith("()")} | dict(target.env)


class Child(asyncio.SubprocessProtocol):
    """`on_line` gets every line of output and says whether it was of use; `on_end` is told once."""

    def __init__(
        self, name: str, hidden: Hidden, on_line: Callable[[bytes], bool], on_overlong: Callable[[], None]
    ) -> None:
        self._name, self._hidden = name, hidden
        self._on_line, self._on_overlong = on_line, on_overlong
        self._out, self._err = Lines(ANSWER_BYTES), Lines(STDERR_LINE)
        self._words: deque[str] = deque(maxlen=LAST_WORDS)
        self._waste = Waste()
        self._transport: asyncio.SubprocessTransport | None = None
        self._gathered: bytearray | None = None
        """What follows the line that was written in this turn of the loop; None before there is one."""
        self._exited = asyncio.Event()
        self.output_ended = asyncio.Event()

    @property
    def pid(self) -> int:
        return self._process.get_pid()

    @property
    def _process(self) -> asyncio.SubprocessTransport:
        if self._transport is None:
            raise Unsent("the process has not started")
        return self._transport

    async def start(self, target: StdioTarget) -> None:
        """Raises Unsent. When it is cancelled there may be a process: `stop` ends it."""
        spawning = asyncio.ensure_future(
            asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                target.command,
                *target.args,
                env=environment(target),
                cwd=target.cwd,
                start_new_session=True,
            )
        )
        try:
            await asyncio.shield(spawning)
        except asyncio.CancelledError:
            await asyncio.wait({spawning})  # asyncio loses a process whose start it has to break off
            raise
        except (OSError, ValueError) as error:
            raise Unsent(f"cannot start {target.command!r}: {_why(error, target.cwd)}") from None

    # what asyncio tells us

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._heed_stderr(data)
            self._slow_down(fd, len(data))
            return
        overlong, useless = self._out.overlong, -self._out.dropped
        for line in self._out.feed(data):
            if not self._on_line(line):
                useless += len(line)
        if self._out.overlong > overlong:
            self._on_overlong()
        self._slow_down(fd, useless + self._out.dropped)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.output_ended.set()

    def process_exited(self) -> None:
        self._exited.set()
        asyncio.get_running_loop().call_later(DRAIN_S, self.output_ended.set)

    def _heed_stderr(self, data: bytes) -> None:
        for line in self._err.feed(data):
            said = self._hidden.out_of(line.decode(errors="replace").strip(), 500)
            self._words.append(said)
            log.debug("upstream %r: %s", self._name, said)

    def _slow_down(self, fd: int, useless: int) -> None:
        if not useless or not (pause := self._waste.add(useless)):
            return
        pipe = cast("asyncio.ReadTransport | None", self._process.get_pipe_transport(fd))
        if pipe is not None and not pipe.is_closing():
            pipe.pause_reading()
            asyncio.get_running_loop().call_later(pause, _resume, pipe)

    # what we do

    def send(self, line: bytes) -> None:
        """Write one line, all of it or nothing; raises Unsent.

        Of several in one turn of the loop the first goes at once, the others together: each trip into the
        kernel wakes the server.
        """
        pipe, gathered = self._input(), self._gathered
        if pipe is None:
            raise Unsent("its process has ended")
        waiting = pipe.get_write_buffer_size() + (0 if gathered is None else len(gathered))
        if waiting + len(line) > BACKLOG_BYTES:
            raise Unsent(f"it has not read the last {BACKLOG_BYTES} bytes it was sent")
        if gathered is not None:
            gathered += line
            return
        pipe.write(line)
        self._gathered = bytearray()
        asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, None
        pipe = self._input()
        if gathered and pipe is not None:  # whoever waits for a process that ended hears of that
            pipe.write(bytes(gathered))

    def _input(self) -> asyncio.WriteTransport | None:
        """Where it reads from, if it still does."""
        pipe = cast("asyncio.WriteTransport | None", self._process.get_pipe_transport(0))
        return None if pipe is None or pipe.is_closing() or self._exited.is_set() else pipe

    async def stop(self) -> None:
        """End the process and everything in its group; afterwards nothing of it is left."""
        if self._transport is None:
            return
        try:
            await self._leave()
        finally:
            self._signal(_KILL)  # whatever is left of the group, and even if we were interrupted
            with contextlib.suppress(PermissionError):  # a child of another user cannot be killed by us
                self._transport.close()
            await self._within(LEAVE_S)  # also then: an end that nobody waited for is never told to asyncio

    async def _leave(self) -> None:
        stdin = self._process.get_pipe_transport(0)
        if stdin is not None:
            stdin.close()
        if not await self._within(LEAVE_S):
            self._signal(signal.SIGTERM)
            if not await self._within(LEAVE_S):
                self._signal(_KILL)
                await self._within(LEAVE_S)

    async def _within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with timeout(seconds):
                await self._exited.wait()
        return self._exited.is_set()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self.pid, number)  # the leader's id is the group's, also once the leader is gone

    def last_words(self) -> str:
        """How it ended, and what it said last."""
        code = None if self._transport is None else self._transport.get_returncode()
        if code is None:
            how = "its process is still there"
        elif code < 0:
            how = f"its process was ended by signal {-code}"
        else:
            how = f"its process ended with status {code}"
        return how + (f"; it last said: {' | '.join(self._words)!r}" if self._words else "")


_KILL = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL


def _resume(pipe: asyncio.ReadTransport) -> None:
    if not pipe.is_closing():
        pipe.resume_reading()


def _why(error: OSError | ValueError, cwd: str | None) -> str:
    if cwd is not None and not Path(cwd).is_dir():  # the system says the same of a missing program
        return f"there is no folder {cwd!r} to run it in"
    said = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return said.lower()
