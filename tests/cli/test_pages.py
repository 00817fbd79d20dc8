"""Is what a server works with moved to large pages, that alone, and does nothing of it change?"""

import asyncio
import mmap
import platform
import re
from pathlib import Path

import pytest

from holdfast.cli import pages

MB = 1 << 20
THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def told(start: int, end: int, rights: str, name: str, used_kb: int) -> list[str]:
    """A piece of memory as the kernel tells of it."""
    return [
        f"{start:x}-{end:x} {rights} 00000000 00:00 0 {name}\n",
        f"Size: {(end - start) >> 10} kB\n",
        f"Rss: {used_kb} kB\n",
        f"Pss: {used_kb} kB\n",
        "VmFlags: rd wr mr mw me ac\n",
    ]


@pytest.mark.parametrize("name", ["", "[heap]", "[anon:python]"])
def test_memory_that_is_written_to_is_wanted_in_whole_large_pages(name: str) -> None:
    smaps = told(3 * MB, 9 * MB, "rw-p", name, 6 << 10)
    assert [*pages.pieces(smaps)] == [4 * MB, 6 * MB]


@pytest.mark.parametrize(
    ("rights", "name", "used_kb"),
    [
        ("rw-p", "/usr/lib/libc.so.6", 4 << 10),
        ("rw-p", "[stack]", 4 << 10),
        ("rw-s", "", 4 << 10),
        ("r-xp", "", 4 << 10),
        ("rw-p", "", 1 << 10),
    ],
    ids=["a file", "the stack", "shared", "code", "hardly used"],
)
def test_whatever_else_there_is_stays_where_it_is(rights: str, name: str, used_kb: int) -> None:
    smaps = told(4 * MB, 8 * MB, rights, name, used_kb)
    assert [*pages.pieces(smaps)] == []


def test_a_piece_that_is_left_alone_says_nothing_of_the_next() -> None:
    smaps = told(4 * MB, 6 * MB, "r--p", "", 2 << 10) + told(6 * MB, 8 * MB, "rw-p", "", 2 << 10)
    assert [*pages.pieces(smaps)] == [6 * MB]


def _kernel_can() -> bool:
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    new_enough = found is not None and tuple(map(int, found.groups())) >= (6, 1)
    return new_enough and THP.exists() and "[never]" not in THP.read_text()


def test_what_was_moved_is_what_it_was() -> None:
    with mmap.mmap(-1, 16 * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.write(bytes(range(256)) * (16 * MB // 256))
        moved = pages.enlarge()
        assert (moved > 0) == _kernel_can()
        assert memory[:] == bytes(range(256)) * (16 * MB // 256)


async def test_where_nothing_can_be_moved_nobody_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_SMAPS", Path("/nowhere"))
    await asyncio.wait_for(pages.tend(0.0), 30)
