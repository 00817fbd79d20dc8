"""How much may a server send that nobody asked for?

What it sends beyond that is read more slowly, so that the rest of the gateway does not wait for it.
"""

import asyncio

RATE = 4 * 1024 * 1024
"""Bytes a second: thousands of notifications, and still little work."""
BURST = 2 * RATE
LONGEST_PAUSE_S = 1.0


class Waste:
    def __init__(self) -> None:
        self._level = 0.0
        self._at = asyncio.get_running_loop().time()

    def add(self, size: int) -> float:
        """Seconds to stop reading for; mostly none."""
        now = asyncio.get_running_loop().time()
        self._level = max(0.0, self._level - (now - self._at) * RATE) + size
        self._at = now
        over = self._level - BURST
        return min(over / RATE, LONGEST_PAUSE_S) if over > 0 else 0.0
