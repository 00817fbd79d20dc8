"""Where does a server look up what it works with?

A call touches a few thousand places all over a hundred megabytes. In pages of 4 kB those are more addresses
than a processor remembers, and looking one up again takes a virtual machine several trips to memory. So what
is in use under load is moved to pages of 2 MB, where the kernel does that if asked (Linux 6.1). Decision 0022
has what it brought: something where it was done after load had begun, nothing where it was done before.
"""

import asyncio
import ctypes
from collections.abc import Iterable, Iterator
from pathlib import Path

LARGE = 2 << 20
FULL = 0.75
"""So much of a piece of memory must be in use: a large page is all there, wanted or not."""
EVERY_S = 60.0
"""Between two looks for what has come since: one takes a few milliseconds of a thread."""

_SMAPS = Path("/proc/self/smaps")
_COLLAPSE = 25  # MADV_COLLAPSE


def enlarge() -> int:
    """Move what can be moved; how many bytes are in large pages because of that. Nothing else changes."""
    try:
        with _SMAPS.open() as told:
            wanted = [*pieces(told)]
        advise = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):  # another system, which may know better by itself
        return 0
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return sum(LARGE for start in wanted if advise(start, LARGE, _COLLAPSE) == 0)


def pieces(smaps: Iterable[str]) -> Iterator[int]:
    """Where the large pages would be: in memory that is nobody's file, is written to, and mostly in use."""
    start = end = 0
    for line in smaps:
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):
            first, _, last = name.partition("-")
            ours = rest.startswith("rw-p") and _is_heap(rest)
            start, end = (int(first, 16), int(last, 16)) if ours else (0, 0)
        elif name == "Rss:" and int(rest.split()[0]) << 10 >= FULL * (end - start):
            aligned = -(-start // LARGE) * LARGE
            yield from range(aligned, end - LARGE + 1, LARGE)


def _is_heap(rest: str) -> bool:
    fields = rest.split(None, 4)
    return len(fields) < 5 or fields[4].startswith(("[heap]", "[anon"))


async def tend(every_s: float = EVERY_S) -> None:
    """As long as the process serves: it takes its memory when calls come, not when it starts."""
    while True:
        await asyncio.sleep(every_s)
        if not await asyncio.to_thread(enlarge):
            return  # nothing can be moved here
