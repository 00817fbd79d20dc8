"""Does `holdfast serve` serve, share its store with other processes, and end well?"""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.cli.conftest import Holdfast, environment
from tests.cli.desk_tools import effects
from tests.requirements import requirement


class Server:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        self.said = ""
        for line in process.stdout:
            self.said += line
            if "close_all" in line:  # the last of what it says
                break
        found = re.search(r"http://\S+", self.said)
        assert found, process.communicate()
        self.url = found[0]

    def post(self, path: str, body: Any) -> Any:
        request = Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urlopen(request, timeout=30) as answer:
            return json.load(answer)


@contextmanager
def serving() -> Iterator[Server]:
    arguments = [sys.executable, "-m", "holdfast", "serve", "--port", "0"]
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    try:
        yield Server(process)
    finally:
        process.kill()
        process.communicate()


@requirement("NAM-1", "PPL-6")
def test_a_server_and_the_command_line_share_one_store(desk: Path, holdfast: Holdfast) -> None:
    with serving() as server:
        with urlopen(server.url + "/health", timeout=30) as answer:
            assert answer.status == 200
        call = {"tool": "desk.close_ticket", "arguments": {"number": 1}, "key": "k1"}
        assert server.post("/v1/calls", call)["replayed"] is False
        ours = holdfast("call", "desk.close_ticket", "--args", '{"number": 1}', "--key", "k1", "--json")
        assert ours.json["replayed"] is True
        assert holdfast("call", "desk.close_ticket", "--args", '{"number": 2}', "--key", "k2").code == 0
        assert server.post("/v1/calls", call | {"arguments": {"number": 2}, "key": "k2"})["replayed"] is True
    assert effects() == ["close 1", "close 2"]


@requirement("NAM-1", "POL-2")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_says_what_holds_and_ends_well_when_told(desk: Path, number: int) -> None:
    with serving() as server:
        for said in ("holdfast.db", "dev", "local: this machine only", "the starter policy", "4 from desk"):
            assert said in server.said
        server.process.send_signal(number)
        _, errors = server.process.communicate(timeout=30)
        assert server.process.returncode == 0
        assert "Traceback" not in errors


@requirement("PPL-1")
def test_the_commands_a_server_prints_do_what_they_say(desk: Path, holdfast: Holdfast) -> None:
    with serving() as server:
        printed = re.findall(
            r"# (.+)\n\s+.*?holdfast call (\S+) --args '(.+?)'(?: --key (\S+))?\n", server.said + "\n"
        )
    wanted = {
        "read something": 0,
        "write something; run it twice, and it happens once": 0,
        "ask for what a person must approve": 4,
    }
    assert [why for why, *_ in printed] == list(wanted)
    for why, tool, arguments, key in printed:
        ended = holdfast("call", tool, "--args", arguments, *(["--key", key] if key else []))
        assert ended.code == wanted[why], ended


@requirement("PPL-1")
def test_a_port_in_use_is_told_and_ends_with_one(holdfast: Holdfast) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = holdfast("serve", "--port", port)
    assert ended.code == 1
    told = f"error: cannot listen on port {port} of '127.0.0.1': address already in use"
    assert ended.err == f"{told}; choose another --port\n"


@requirement("AUT-1")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_local_mode_is_not_served_to_others(holdfast: Holdfast, host: str) -> None:
    ended = holdfast("serve", "--host", host, "--port", "0")
    assert (ended.code, "serves this machine only" in ended.err) == (2, True)
