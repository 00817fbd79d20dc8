"""How long does a server that went away get before it is tried again?"""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    first_s: float = 0.2
    """Restarting is cheap; a server that merely crashed should not be missed."""
    longest_s: float = 30.0
    steady_s: float = 60.0
    """A server that lived this long counts as well: its next failure is the first again."""
    jitter: float = 0.25

    def pause(self, failures: int) -> float:
        """Seconds to wait after `failures` failures in a row."""
        wait: float = min(self.first_s * 2 ** min(failures - 1, 32), self.longest_s)
        return wait * (1 + self.jitter * (2 * random.random() - 1))
