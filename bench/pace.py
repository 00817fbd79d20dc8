"""How fast is the machine just now?

On a virtual machine somebody else may have the other half of a core, or most of the cache that all cores
share: everything takes longer then, and nothing in here says so. Two fixed pieces of work tell.
"""

import random
import time
from collections.abc import Callable, Sequence

TURNS = 30_000
"""Of a loop: a millisecond that needs a core and nothing else."""
NUMBERS = 150_000
"""To be added up in no order they lie in: half a millisecond of waiting for memory beyond a core's own."""
TIMES = 5


def work() -> tuple[Callable[[], object], ...]:
    """What is done to see how long it takes."""
    numbers = [float(number) for number in range(NUMBERS)]
    random.Random(1).shuffle(numbers)  # any order does, as long as it is always the same

    def turns() -> int:
        total = 0
        for number in range(TURNS):
            total += number
        return total

    return turns, lambda: sum(numbers)


class Pace:
    """Compares with the best that was seen."""

    def __init__(
        self,
        pieces: Sequence[Callable[[], object]] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._pieces = work() if pieces is None else pieces
        self._clock = clock
        self._best: list[float] = [
            min(took) for took in zip(*(self._taken() for _ in range(10)), strict=True)
        ]

    @property
    def best_ms(self) -> list[float]:
        """What each piece took at the best moment."""
        return [round(took * 1000, 3) for took in self._best]

    def slower(self) -> float:
        """How many times longer things take now: that of which it is most."""
        taken = self._taken()
        self._best = [min(pair) for pair in zip(self._best, taken, strict=True)]
        return max(now / best for now, best in zip(taken, self._best, strict=True))

    def _taken(self) -> list[float]:
        """At its best of a few times each: a moment's interruption is not the machine's pace."""
        return [min(self._once(piece) for _ in range(TIMES)) for piece in self._pieces]

    def _once(self, piece: Callable[[], object]) -> float:
        began = self._clock()
        piece()
        return self._clock() - began
