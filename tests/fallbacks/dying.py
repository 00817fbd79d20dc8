"""A process that sends one message and dies, by its own kill -9, at one exact point on the way down.

    python -m tests.fallbacks.dying FOLDER STORE-URL 'after move'

What was sent is a line each in FOLDER/sent, written by the tools themselves.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from holdfast import Code, Gateway, NoEffect, tool
from holdfast.upstreams.function import FunctionUpstream
from tests.fallbacks.post import ANA, SEND, WRITE

POINTS = ("before move", "after move", "before effect", "after effect")


class Fuse:
    def __init__(self, point: str = "") -> None:
        self._point = point

    def reached(self, point: str) -> None:
        if point == self._point:
            os.kill(os.getpid(), signal.SIGKILL)


def upstreams(folder: Path, fuse: Fuse, *, away: bool) -> dict[str, FunctionUpstream]:
    """The first tool may be away; the second acts, and may not live to tell."""

    def act(name: str) -> dict[str, str]:
        fuse.reached("before effect")
        with (folder / "sent").open("a") as sent:
            sent.write(f"{name}\n")
        fuse.reached("after effect")
        return {"by": name}

    @tool(**WRITE)
    async def send(to: str, text: str = "hello") -> dict[str, str]:
        """Send a message."""
        if away:
            raise NoEffect("out of order", Code.DEPENDENCY_UNAVAILABLE)
        return act("mail")

    @tool(**WRITE)
    async def post(recipient: str, body: str) -> dict[str, str]:
        """Send a message another way."""
        return act("backup")

    return {"mail": FunctionUpstream([send]), "backup": FunctionUpstream([post])}


class Dying:
    """Keeps who answers for a key, for as long as it lives."""

    def __init__(self, kept: Any, fuse: Fuse) -> None:
        self._kept, self._fuse = kept, fuse

    async def tool(self, at: Any) -> str | None:
        found: str | None = await self._kept.tool(at)
        return found

    async def move(self, at: Any, tool: str, to: str, tools: Any = ()) -> str:
        self._fuse.reached("before move")
        moved: str = await self._kept.move(at, tool, to, tools)
        self._fuse.reached("after move")
        return moved


def config(url: str) -> dict[str, Any]:
    return {"store": url, "fallbacks": {"send-message": {"tools": SEND["tools"][:2]}}}


async def main(folder: Path, url: str, point: str) -> None:
    from holdfast.config import parse
    from holdfast.gateway.storing import store_of
    from holdfast.system import RandomIds, SystemClock

    said, fuse, clock = parse(config(url), folder=folder), Fuse(point), SystemClock()
    async with store_of(said, clock) as kept:
        made = upstreams(folder, fuse, away=True)
        gateway = Gateway.assemble(said, kept, made, clock=kept.clock, ids=RandomIds())
        gateway.fallbacks._kept = Dying(gateway.fallbacks._kept, fuse)
        await gateway.prepare()
        await gateway.call("mail.send", {"to": "bob"}, principal=ANA, key="k")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
