"""Which key was pressed? Read one by one from the terminal, without waiting for a line to end."""

import asyncio
import os
import sys
import termios
import tty
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from holdfast.model.timeout import timeout

NAMED = {
    b"\r": "enter",
    b"\n": "enter",
    b"\x1b": "escape",
    b"\x7f": "escape",
    b"\x1b[A": "k",
    b"\x1b[B": "j",
    b"\x1bOA": "k",
    b"\x1bOB": "j",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b" ": "page down",
}
_AT_ONCE = 1024


class Keyboard:
    """Keys in the order they were pressed; `end` when the terminal is gone."""

    def __init__(self) -> None:
        self._pressed: asyncio.Queue[str] = asyncio.Queue()

    async def key(self, within_s: float) -> str | None:
        """None when nobody pressed one for so long."""
        try:
            async with timeout(within_s):
                return await self._pressed.get()
        except TimeoutError:
            return None

    def read(self) -> None:
        try:
            said = os.read(sys.stdin.fileno(), _AT_ONCE)
        except OSError:  # the terminal was closed
            said = b""
        if not said:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self._pressed.put_nowait("end")
        for key in keys(said):
            self._pressed.put_nowait(key)


@asynccontextmanager
async def keyboard() -> AsyncIterator[Keyboard]:
    """The terminal gives keys until the block ends, and lines again after it; ctrl-c stays what it is."""
    stdin, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(stdin)
    hears = Keyboard()
    try:
        tty.setcbreak(stdin, termios.TCSANOW)  # keeps what was typed while the gateway opened
        loop.add_reader(stdin, hears.read)
        yield hears
    finally:
        loop.remove_reader(stdin)
        termios.tcsetattr(stdin, termios.TCSANOW, before)


def keys(said: bytes) -> Iterator[str]:
    """What a terminal sends at once is one key with a name, or several plain ones."""
    while said:
        whole = next((name for name in sorted(NAMED, key=len, reverse=True) if said.startswith(name)), b"")
        if whole == b"\x1b" and said[1:2] in (b"[", b"O"):  # a key nobody named: none of its letters counts
            said = said[2:].lstrip(b"0123456789;")[1:]
            continue
        yield NAMED[whole] if whole else chr(said[0])
        said = said[len(whole) or 1 :]
