"""How does a test run `holdfast serve` as people do, and see what it says and how it ends?"""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.cli.conftest import environment
from tests.polling import rest

CONFIG = """
upstreams:
  desk: {functions: "tests.cli.slow_tools:TOOLS"}
telemetry: {level: info, logs: text}
"""
PATIENCE_S = 60


class Crew:
    """A server and its workers."""

    def __init__(self, process: "subprocess.Popen[str]", out: Path, workers: int) -> None:
        self.process, self._out, self.log = process, out, ""
        self._clients = ThreadPoolExecutor(16)
        for _ in range(workers):
            self.until("serves")
        while "mcp " not in self.said:  # of a server without workers, which logs nothing
            assert process.poll() is None, self.rest()
            rest()
        self.address = urlsplit(re.findall(r"http://\S+", self.said)[0]).netloc

    @property
    def said(self) -> str:
        return self._out.read_text()

    def until(self, words: str) -> str:
        """The next line of the log with these words."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log += line
            if words in line:
                return line
        raise AssertionError(f"{words!r} was never said:\n{self.log}")

    def pids(self) -> list[int]:
        """Of the workers that served so far, in the order they came."""
        return [int(found) for found in re.findall(r"process (\d+)\) serves", self.log)]

    def rest(self) -> str:
        """What is still said until the last process has gone, workers too."""
        self.log += self.process.communicate(timeout=PATIENCE_S)[1]
        return self.log

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def call(self, tool: str, number: int, key: str | None = None) -> tuple[int, Any]:
        body = {"tool": f"desk.{tool}", "arguments": {"number": number}}
        return self.ask("POST", "/v1/calls", body if key is None else body | {"key": key})

    def begin(self, tool: str, number: int, key: str | None = None) -> "Future[tuple[int, Any]]":
        return self._clients.submit(self.call, tool, number, key)

    def until_refused(self) -> None:
        """Nobody accepts connections any more."""
        host, port = self.address.split(":")
        while True:
            try:
                socket.create_connection((host, int(port))).close()
                rest()
            except ConnectionRefusedError:
                return
            except ConnectionResetError:  # it was in the queue when the last listener went
                continue

    def end(self) -> None:
        self.process.kill()
        for pid in self.pids():  # after a failure one may still wait for what never comes
            with suppress(FileNotFoundError, ProcessLookupError):
                if b"--worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
        print(self.rest())  # for who reads why a test failed
        self._clients.shutdown()


class Gate:
    """Where slow tools wait."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._tools: list[socket.socket] = []

    def wait(self) -> socket.socket:
        """A tool has begun; it goes on when it is sent a line, or hung up on."""
        self._tools.append(self._listener.accept()[0])
        return self._tools[-1]

    def close(self) -> None:
        for tool in self._tools:
            tool.close()


@contextmanager
def crew(*options: str, workers: int | None = 2) -> Iterator[Crew]:
    """In the working folder, with the configuration there."""
    many = [] if workers is None else ["--workers", str(workers)]
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0", *many, *options]
    out = Path(f"out-{os.urandom(4).hex()}").absolute()
    with out.open("w") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.PIPE, text=True, env=environment())
    stuck = threading.Timer(2 * PATIENCE_S, process.kill)  # so that whoever waits for its log is told
    stuck.start()
    try:
        one = Crew(process, out, workers or 0)
        try:
            yield one
        finally:
            one.end()
    finally:
        stuck.cancel()
        process.kill()
        process.communicate(timeout=PATIENCE_S)
