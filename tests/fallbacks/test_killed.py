"""What does a key do whose process was killed between two levels? EXE-4, IDM-4."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import Gateway, Status
from holdfast.config import parse
from holdfast.gateway.storing import store_of
from holdfast.system import RandomIds, SystemClock
from tests.fallbacks.dying import POINTS, Fuse, config, upstreams
from tests.fallbacks.post import ANA
from tests.requirements import requirement
from tests.stored import DURABLE, place, url_of

# point of death -> (status, tool) of the next call, when the first tool is back; what was sent by then
NEXT: dict[str, tuple[Status, str, list[str]]] = {
    "before move": (Status.DONE, "mail.send", ["mail"]),
    "after move": (Status.DONE, "backup.post", ["backup"]),
    "before effect": (Status.UNKNOWN, "backup.post", []),
    "after effect": (Status.UNKNOWN, "backup.post", ["backup"]),
}


@requirement("EXE-4", "IDM-4")
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("store", DURABLE)
async def test_a_key_whose_process_was_killed_on_the_way_down_has_at_most_one_effect(
    store: str, tmp_path: Path, point: str
) -> None:
    async with place(store, tmp_path):
        url = url_of(store, tmp_path)
        dying = [sys.executable, "-m", "tests.fallbacks.dying", str(tmp_path), url, point]
        process = await asyncio.create_subprocess_exec(*dying)
        assert await process.wait() == -signal.SIGKILL
        said, clock = parse(config(url), folder=tmp_path), SystemClock()
        async with store_of(said, clock) as kept:
            made = upstreams(tmp_path, Fuse(), away=False)
            gateway = Gateway.assemble(said, kept, made, clock=kept.clock, ids=RandomIds())
            await gateway.prepare()
            call: dict[str, Any] = {"principal": ANA, "key": "k", "deadline_ms": 60_000}
            first = await gateway.call("mail.send", {"to": "bob"}, **call)
            while first.code == "KEY_IN_USE":  # until it is known that the other one is dead
                first = await gateway.call("mail.send", {"to": "bob"}, **call)
            again = await gateway.call("mail.send", {"to": "bob"}, **call)
            await gateway.close()
    sent = tmp_path / "sent"
    found = sent.read_text().split() if sent.exists() else []
    assert (first.status, first.tool, found) == NEXT[point]
    assert (again.tool, again.status) == (first.tool, first.status)
