"""Is what connections and sessions were made of let go of, though it refers to itself and is old?"""

import asyncio
import gc
import weakref

from holdfast.cli import garbage
from holdfast.model.timeout import timeout


class Ring:
    """As a connection and its protocol are."""

    def __init__(self) -> None:
        self.itself = self


async def test_what_grew_old_before_it_ended_is_let_go_of() -> None:
    ring, gone = Ring(), asyncio.Event()
    weakref.finalize(ring, gone.set)
    for _ in gc.get_threshold():
        gc.collect()  # what was looked at as often as this counts as old
    del ring
    assert not gone.is_set()
    tending = asyncio.create_task(garbage.tend(0.0))
    try:
        async with timeout(30):
            await gone.wait()
    finally:
        tending.cancel()
