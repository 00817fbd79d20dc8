"""Is it any use asking this tool right now?

Closed until too many failures fall into the window; then open, and after a while
half-open: one trial decides.
"""

from collections import deque

from holdfast.model import defaults
from holdfast.ports import Clock


class Breaker:
    __slots__ = ("_clock", "_failures", "_opened", "_trial")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: deque[float] = deque(maxlen=defaults.BREAKER_FAILURES)
        self._opened: float | None = None
        self._trial = False

    @property
    def state(self) -> str:
        if self._opened is None:
            return "closed"
        return "half_open" if self._trial or self._rest() <= 0 else "open"

    def admit(self) -> float | None:
        """None to go ahead, else the seconds until the next trial."""
        if self._opened is None:
            return None
        rest = self._rest()
        if rest > 0:
            return rest
        if self._trial:
            return 1.0  # somebody else is trying
        self._trial = True
        return None

    def succeeded(self) -> None:
        self._opened, self._trial = None, False
        self._failures.clear()

    def failed(self) -> None:
        now = self._clock.monotonic()
        self._failures.append(now)
        full = len(self._failures) == defaults.BREAKER_FAILURES
        if self._trial or (full and now - self._failures[0] <= defaults.BREAKER_OPEN_S):
            self._opened, self._trial = now, False

    def gave_up(self) -> None:
        """The trial never reached the tool: somebody else may try."""
        self._trial = False

    def _rest(self) -> float:
        return (self._opened or 0.0) + defaults.BREAKER_OPEN_S - self._clock.monotonic()
