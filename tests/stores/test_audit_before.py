"""Does the log read backwards tell the same records, each once, of one tenant?"""

from math import inf
from pathlib import Path

import pytest

from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.stored import ALL, Store, place, stored

LAST = 2**62


@requirement("AUD-2")
@pytest.mark.parametrize("kind", ALL)
async def test_the_log_is_read_backwards_in_pages(kind: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with place(kind, tmp_path), stored(kind, tmp_path, clock) as store:
        await _read_backwards(store, clock)


async def _read_backwards(store: Store, clock: ManualClock) -> None:
    for number in range(7):
        await store.audit.note("north" if number % 2 else "south", f"act {number}", "ana")
        await clock.advance(number % 3)  # several within one moment
    await store.audit.sequence()
    forwards = [one.leaf for one in await store.audit.since("south", 0.0, -1, 100)]
    at, leaf, seen = inf, LAST, list[int]()
    while page := await store.audit.before("south", at, leaf, 2):
        seen += [one.leaf for one in page]
        at, leaf = page[-1].record.at, page[-1].leaf
    assert seen == forwards[::-1]
    assert len(seen) == 4
    assert [one.leaf for one in await store.audit.before("south", inf, LAST, 1)] == seen[:1]
