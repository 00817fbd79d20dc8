"""How do lines get to a program that was started, and how many of them may wait?"""

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest

from holdfast.model.timeout import timeout
from holdfast.upstreams.mcp.child import BACKLOG_BYTES, Child
from holdfast.upstreams.mcp.errors import Unsent
from holdfast.upstreams.mcp.hidden import Hidden
from holdfast.upstreams.mcp.target import StdioTarget

ECHO = """
import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""
DEAF = "import signal, sys\nsys.stdout.write('here\\n')\nsys.stdout.flush()\nsignal.pause()"


class Heard:
    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.came = asyncio.Event()

    def line(self, line: bytes) -> bool:
        self.lines.append(line.rstrip())
        self.came.set()
        return True

    async def all(self, count: int) -> list[bytes]:
        async with timeout(30):
            while len(self.lines) < count:
                self.came.clear()
                await self.came.wait()
        return self.lines


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
async def child(heard: Heard, request: pytest.FixtureRequest) -> AsyncIterator[Child]:
    started = Child("c", Hidden(), heard.line, lambda: None)
    await started.start(StdioTarget(sys.executable, ("-c", request.param)))
    yield started
    await started.stop()


@pytest.mark.parametrize("child", [ECHO], indirect=True, ids=["an echo"])
async def test_lines_of_one_moment_arrive_whole_and_in_their_order(child: Child, heard: Heard) -> None:
    sent = [b"%d-%b" % (number, b"x" * number) for number in range(300)]
    for line in sent:
        child.send(line + b"\n")
    assert await heard.all(len(sent)) == sent
    child.send(b"and one more\n")
    assert (await heard.all(len(sent) + 1))[-1] == b"and one more"


@pytest.mark.parametrize("child", [DEAF], indirect=True, ids=["one that does not read"])
async def test_what_waits_for_a_program_that_does_not_read_is_bounded_also_within_a_moment(
    child: Child, heard: Heard
) -> None:
    await heard.all(1)
    line = b"x" * (BACKLOG_BYTES // 2) + b"\n"  # of the first the pipe itself takes a little
    for _ in range(2):
        child.send(line)
    with pytest.raises(Unsent, match="has not read"):
        child.send(line)
