"""Is anything left of a server once it is gone?"""

import asyncio
import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.upstreams.mcp.child import Child
from holdfast.upstreams.mcp.hidden import Hidden
from holdfast.upstreams.mcp.upstream import McpUpstream
from tests.polling import until
from tests.requirements import requirement
from tests.upstreams.mcp.callers import AT_ONCE, SOON_S, attempt, upstream
from tests.upstreams.mcp.places import rogue_program, workshop_http
from tests.upstreams.mcp.workshop import Workshop

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def children() -> set[int]:
    """Every process that is ours, zombies included."""
    return {pid for pid, parent, _, _ in processes() if parent == os.getpid()}


def processes() -> Iterator[tuple[int, int, int, str]]:
    """Number, parent, group and state."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            yield int(entry.name), int(fields[1]), int(fields[2]), fields[0]


def of_group(group: int) -> set[int]:
    """Its living members; who was killed and not buried yet has no more descriptors and no memory."""
    return {pid for pid, _, found, state in processes() if found == group and state != "Z"}


@requirement("PRO-1")
@pytest.mark.parametrize("restarts", [25, pytest.param(200, marks=pytest.mark.soak)])
async def test_many_restarts_leave_no_zombie_thread_or_descriptor(restarts: int) -> None:
    rogue = McpUpstream("shop", rogue_program("crash"), backoff=AT_ONCE)
    before = children(), threading.active_count()
    rogue.start()
    async with asyncio.timeout(240):
        while rogue.starts < 3:
            await rogue.ready(SOON_S)
        open_then = descriptors()
        while rogue.starts < restarts:
            assert not await rogue.ready(SOON_S)
        assert descriptors() <= open_then + 8  # those of the process that is just starting
    await rogue.close()
    assert children() == before[0]
    assert threading.active_count() == before[1]


@pytest.mark.parametrize("how", ["", "stubborn", "parent"])
async def test_closing_ends_the_process_and_all_it_started(how: str) -> None:
    before = descriptors(), children(), threading.active_count()
    async with upstream(rogue_program(how)) as rogue:
        assert (await rogue.invoke(attempt("tool_0"))).data == {"text": "done"}
        (leader,) = children() - before[1]
        if how == "parent":
            assert len(of_group(leader)) == 2
    await until(lambda: not of_group(leader))
    assert (descriptors(), children(), threading.active_count()) == before


async def test_a_parent_that_dies_takes_its_children_along() -> None:
    before = children()
    async with upstream(rogue_program("parent")) as rogue:
        (leader,) = children() - before
        with pytest.raises(ConnectionError):
            await rogue.invoke(attempt("tool_0", {"how": "die"}))
        await until(lambda: rogue.starts == 2 and not of_group(leader))


async def test_closing_in_the_middle_of_a_start_leaves_nothing() -> None:
    before = descriptors(), children()
    rogue = McpUpstream("shop", rogue_program("silent"))
    rogue.start()
    await until(lambda: children() != before[1])
    await rogue.close()
    assert (descriptors(), children()) == before


async def test_a_stop_that_is_broken_off_still_waits_for_the_end() -> None:
    child = Child("shop", Hidden(), lambda line: True, lambda: None)
    await child.start(rogue_program("stubborn"))
    stopping = asyncio.ensure_future(child.stop())
    await asyncio.sleep(0)  # it has begun, and the program does not go by itself
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert child.last_words().startswith("its process was ended by signal 9")


async def test_closing_fails_what_is_in_flight() -> None:
    async with upstream(rogue_program()) as rogue:
        hanging = asyncio.ensure_future(rogue.invoke(attempt("tool_0", {"how": "hang"})))
        await rogue.invoke(attempt("tool_0"))
    async with asyncio.timeout(SOON_S):
        assert isinstance((await asyncio.gather(hanging, return_exceptions=True))[0], ConnectionError)


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_an_http_upstream_leaves_no_connection_or_task(era: str) -> None:
    async with workshop_http(Workshop(), era) as (target, _):  # type: ignore[arg-type]  # one of them
        tasks, before = asyncio.all_tasks(), descriptors()
        async with upstream(target) as shop:
            await asyncio.gather(*(shop.invoke(attempt("echo")) for _ in range(10)))
        mine = {task for task in asyncio.all_tasks() - tasks if "upstream" in task.get_name()}
        assert mine == set()
        await until(lambda: descriptors() <= before)
