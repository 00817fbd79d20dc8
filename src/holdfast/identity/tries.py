"""How often may somebody be wrong?

The first few times nobody has to wait; then longer each time, up to a bound. What was tried is counted before
it is looked at, so trying many at once is trying many. It is kept in this process alone: a guess costs the
wait in each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from threading import Lock

from holdfast.identity.credential import WrongSecret

FREE = 5
FIRST_S = 2.0
MOST_S = 300.0
FORGOTTEN_S = 900.0
MOST_KNOWN = 4096
"""Names that are remembered; the one that was wrong longest ago makes room."""


class TooMany(WrongSecret):
    """Wrong too often; nothing more is looked at before the time is over."""

    def __init__(self, wait_s: float) -> None:
        super().__init__("this was wrong too often; wait, then try again")
        self.wait_s = wait_s


@dataclass(slots=True)
class _Tried:
    times: int = 0
    until: float = -inf
    last: float = -inf


class Tries:
    def __init__(
        self, now: Callable[[], float], *, free: int = FREE, first_s: float = FIRST_S, most_s: float = MOST_S
    ) -> None:
        self._now, self._free, self._first_s, self._most_s = now, free, first_s, most_s
        self._tried: dict[str, _Tried] = {}
        self._turn = Lock()

    def begin(self, who: str) -> int:
        """Count a try; how many there were. Raises TooMany."""
        with self._turn:
            now = self._now()
            tried = self._tried.pop(who, None)
            if tried is None or now >= tried.last + FORGOTTEN_S:
                tried = _Tried()
            self._tried[who] = tried  # the newest is last
            if now < tried.until:
                raise TooMany(tried.until - now)
            tried.times, tried.last = tried.times + 1, now
            if tried.times >= self._free:
                doubled = self._first_s * 2.0 ** min(tried.times - self._free, 32)
                tried.until = now + min(doubled, self._most_s)
            if len(self._tried) > MOST_KNOWN:
                self._tried.pop(next(iter(self._tried)))
            return tried.times

    def right(self, who: str) -> None:
        """It was right: whatever was wrong before counts no more."""
        with self._turn:
            self._tried.pop(who, None)
