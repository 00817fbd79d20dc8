"""How does a test sit at a real terminal: type, and read what is on it?"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cli.conftest import environment

PATIENCE_S = 60
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]")


class Terminal:
    """A command that believes a person is there."""

    def __init__(self, process: "subprocess.Popen[bytes]", master: int) -> None:
        self.process, self._master = process, master
        self.said = ""
        """Since the last key."""

    def press(self, keys: str) -> None:
        self.said = ""
        os.write(self._master, keys.encode())

    def until(self, *words: str) -> str:
        """Read on until the screen has said all of these."""
        while not all(word in self.said for word in words):
            self.said += self._more(words)
        return self.said

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def ended(self) -> int:
        """Its exit code; what it still said is read too, or it could not end."""
        try:
            while True:
                self.said += self._more(("its end",))
        except EOFError:
            return self.process.wait(PATIENCE_S)

    def _more(self, words: tuple[str, ...]) -> str:
        ready, _, _ = select.select([self._master], [], [], PATIENCE_S)
        assert ready, f"{words} never came; on the screen is:\n{self.said}"
        try:
            read = os.read(self._master, 65_536)
        except OSError:  # Linux says so when the other side is gone
            read = b""
        if not read:
            if words != ("its end",):
                raise AssertionError(f"{words} never came before it ended:\n{self.said}")
            raise EOFError
        return ESCAPES.sub("", read.decode(errors="replace"))


@contextmanager
def at_terminal(*arguments: str, rows: int = 40, columns: int = 120) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    env = {name: value for name, value in environment().items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env={**env, "TERM": "xterm-256color"},
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        os.close(master)
