"""Waiting for what another process does in its own time, and tells nobody."""

import asyncio
import time
from collections.abc import Callable

FELT_S = 20.0
"""Far more than any of it needs; only what never happens takes it."""
POLL_S = 0.001
SELDOM_S = 0.05


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(FELT_S):
        while not happened():  # noqa: ASYNC110  # what is waited for tells nobody
            await asyncio.sleep(POLL_S)


async def pause() -> None:
    """Before looking again at something whose look costs a trip."""
    await asyncio.sleep(SELDOM_S)


def rest() -> None:
    """The same in a thread: who looks all the time takes the processor from whom it waits for."""
    time.sleep(SELDOM_S)
