"""How many connections has each worker? A number for each in memory that they share.

Nobody has to be asked. A number may be a moment old: it is said whenever a connection comes. The parent makes
the memory and says who is gone; a worker finds it by an environment variable, for which one of an older
version does not look.
"""

import mmap
import os
import tempfile
from collections.abc import MutableMapping
from typing import Final

VARIABLE: Final = "HOLDFAST_TALLY"
GONE: Final = -1
"""Of a worker that takes no connections."""
_WIDTH = 8


class Tally:
    def __init__(self, descriptor: int, place: int = 0) -> None:
        self.descriptor, self._place = descriptor, place
        self._numbers = memoryview(mmap.mmap(descriptor, 0)).cast("q")

    @classmethod
    def made(cls, places: int) -> "Tally":
        """By the parent; it is gone when nobody has it open any more."""
        try:
            descriptor = os.memfd_create("holdfast-tally")
        except (AttributeError, OSError):  # another system, or a sandbox that does not allow it
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, places * _WIDTH)
        tally = cls(descriptor)
        for place in range(places):
            tally.gone(place)
        return tally

    @classmethod
    def found(cls, environment: MutableMapping[str, str]) -> "Tally | None":
        """By a worker, for which it is meant and not for the programs it starts; None where there is none."""
        said = environment.pop(VARIABLE, None)
        if said is None:
            return None
        descriptor, place = (int(part) for part in said.split(","))
        os.set_inheritable(descriptor, False)
        return cls(descriptor, place)

    def variable(self, place: int) -> dict[str, str]:
        """What the worker in this place is started with."""
        return {VARIABLE: f"{self.descriptor},{place}"}

    def say(self, count: int) -> None:
        self._numbers[self._place] = count

    def gone(self, place: int) -> None:
        self._numbers[place] = GONE

    def leave(self) -> None:
        self.gone(self._place)

    def least(self) -> int | None:
        """What the other who has the fewest has; None where there is no other."""
        own = self._place
        others = [count for place, count in enumerate(self._numbers) if place != own and count != GONE]
        return min(others, default=None)
