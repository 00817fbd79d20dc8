"""Does a console session in the docs still go as it says?

Commands run for real, in a folder of their own. `holdfast serve` and `make run` start a server that lives
until the page ends or starts another one on that port. Ports are free ones of this machine: `8080` and what
`--port` says are only names for them, in commands and in output.

In the expected output `...` stands for anything, spaces for any space, and what differs from run to run for
its kind: a time, a duration, and ids such as `call_1a2b`. An id is remembered: where the page uses it again,
in a command or in output, the real one of this run is meant.
"""

import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT

PATIENCE_S = 30.0
"""A command that takes longer hangs."""
DEFAULT_PORT = "8080"

_KINDS = re.compile(
    r"(?P<id>\b(?:call|apr|pd|ses)_[0-9a-f]+)"
    r"|(?P<time>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))"
    r"|(?P<duration>\b\d+(?:\.\d+)? ms\b)"
    r"|(?P<port>(?<=127\.0\.0\.1:)\d+)"
    r"|(?P<anything>\.\.\.)"
    r"|(?P<space>\s+)"
)
_PATTERNS = {
    "time": r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)",
    "duration": r"\d+(?:\.\d+)?\sms",
    "anything": r".*?",
    "space": r"\s+",
}
_SERVER = re.compile(r"(?:make run|holdfast serve)\b")
_PORT = re.compile(r" --port (\d+)")


class Session:
    """One page's shell: its folder, its variables, its servers, and the ids it has seen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ids: dict[str, str] = {}
        self.exports: list[str] = []
        self.ports: dict[str, str] = {}
        self.servers: dict[str, subprocess.Popen[bytes]] = {}
        self.said = ""
        """What the server that was started last has said so far."""

    def run(self, block: str) -> None:
        for command, expected in commands(block):
            if _SERVER.match(command):
                self._serve(command, expected)
            elif command.startswith("make "):
                assert made(command), f"'{command}' makes nothing"
            else:
                self._compare(command, expected, self._once(command))

    def close(self) -> None:
        while self.servers:
            _end(self.servers.popitem()[1])

    def _once(self, command: str) -> str:
        if command.startswith("export "):
            self.exports.append(command)
        return subprocess.run(
            ["bash", "-c", self._script(self._real(command))],
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE_S,
            check=False,
        ).stdout.decode()

    def _serve(self, command: str, expected: str) -> None:
        """Start it, and go on once it has said what the page shows and where it listens."""
        port = found[1] if (found := _PORT.search(command)) else DEFAULT_PORT
        if port in self.servers:
            _end(self.servers.pop(port))
        started = self.servers[port] = subprocess.Popen(
            ["bash", "-c", self._script(f"exec {_PORT.sub('', made(command))} --port {self._port(port)}")],
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,  # what a buffer already holds, select does not see
        )
        pattern, self.said = self._pattern(f"...{expected}..."), ""
        for line in _lines(started):
            self.said += line
            if f"127.0.0.1:{self._port(port)}" in self.said and pattern.fullmatch(self.said):
                return
        raise AssertionError(f"$ {command}\n--- the page says\n{expected}\n--- it said\n{self.said}")

    def _script(self, command: str) -> str:
        return "\n".join([*self.exports, command])

    def _port(self, shown: str) -> str:
        if shown not in self.ports:
            self.ports[shown] = str(_free_port())
        return self.ports[shown]

    def _real(self, command: str) -> str:
        for shown, real in self.ids.items():
            command = command.replace(shown, real)
        return _KINDS.sub(lambda found: self._port(found[0]) if found["port"] else found[0], command)

    def _compare(self, command: str, expected: str, actual: str) -> None:
        found = self._pattern(expected).fullmatch(actual.strip())
        assert found, f"$ {command}\n--- the page says\n{expected}\n--- it answered\n{actual}"
        self.ids |= found.groupdict()

    def _pattern(self, expected: str) -> re.Pattern[str]:
        parts, at = [], 0
        seen: set[str] = set()
        for found in _KINDS.finditer(expected):
            parts.append(re.escape(expected[at : found.start()]))
            parts.append(self._stands_for(found, seen))
            at = found.end()
        parts.append(re.escape(expected[at:]))
        return re.compile("".join(parts), re.DOTALL)

    def _stands_for(self, found: re.Match[str], seen: set[str]) -> str:
        kind, shown = found.lastgroup or "", found[0]
        if kind == "port":
            return self._port(shown)
        if kind != "id":
            return _PATTERNS[kind]
        if shown in self.ids:
            return re.escape(self.ids[shown])
        if shown in seen:
            return f"(?P={shown})"
        seen.add(shown)
        return f"(?P<{shown}>{shown.partition('_')[0]}_[0-9a-f]+)"


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command of a session with the output the page shows for it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = f"{command[:-1]}{more.lstrip()}"
        yield command, expected.strip()


def made(command: str) -> str:
    """What `make run` runs, without making the environment anew."""
    if not command.startswith("make "):
        return command
    target = command.split()[1]
    planned = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "--assume-old=.venv/.installed", target],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        check=True,
    )
    last = planned.stdout.strip().splitlines()[-1]
    return last.removeprefix(".venv/bin/")


def environment() -> dict[str, str]:
    """This environment, with the commands of the running Python first and no configuration of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    here = str(Path(sys.executable).parent)
    return kept | {
        "PATH": f"{here}{os.pathsep}{kept.get('PATH', '')}",
        "PYTHONUNBUFFERED": "1",
        "NO_COLOR": "1",
        "COLUMNS": "120",
        "TERM": "dumb",
    }


def _lines(process: "subprocess.Popen[bytes]") -> Iterator[str]:
    assert process.stdout is not None
    while select.select([process.stdout], [], [], PATIENCE_S)[0]:
        line = process.stdout.readline()
        if not line:
            return
        yield line.decode()


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends the server and the workers it started, by their own process group."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
