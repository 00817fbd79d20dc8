"""How much may a server send that nobody asked for?

What it sends beyond that is read more slowly, so that the rest of the gateway does not wait for it.
"""

import asyncio

RATE = 1024 * 1024
"""Bytes a second: thousands of notifications, and still little work."""
BURST = 4 * RATE
LONGEST_PAUSE_S = 1.0


class Waste:
    def __init__(self) -> None:
        self._level = 0.0
        self._at = asyncio.get_running_loop().time()

    def add(self, size: int) -> float:
        """Seconds to stop reading for; mostly none."""
        now = asyncio.get_running_loop().time()
        level = max(0.0, self._level - (now - self._at) * RATE) + size
        self._level = min(level, BURST + RATE * LONGEST_PAUSE_S)  # one long message is not paid for for ever
        self._at = now
        return max(self._level - BURST, 0.0) / RATE
