"""How fast is the machine just now?

On a virtual machine somebody else may have the other half of a core: everything takes longer then, and
nothing in here says so. A fixed piece of work tells.
"""

import time
from collections.abc import Callable

WORK = 60_000
"""Turns of a loop: some milliseconds."""
TIMES = 5


def pace_s() -> float:
    """What the work takes, at its best of a few times: a moment's interruption is not the machine's pace."""
    took = []
    for _ in range(TIMES):
        began, total = time.perf_counter(), 0
        for number in range(WORK):
            total += number
        took.append(time.perf_counter() - began)
    return min(took)


class Pace:
    """Compares with the best that was seen."""

    def __init__(self, taken: Callable[[], float] = pace_s) -> None:
        self._taken = taken
        self._best = min(taken() for _ in range(10))

    def slower(self) -> float:
        """How many times longer things take now."""
        now = self._taken()
        self._best = min(self._best, now)
        return now / self._best
