"""Is it worth staying awake for what comes next?

Whoever sleeps until there is something to read is woken by the kernel, and on a virtual machine that takes as
long as several gates. Where calls come one after another and each answer comes at once, the loop looks again
for a moment before it sleeps.

Only for one call at a time: with several there is mostly something to do, and a thread that waits for the
disk wants the interpreter when it is back. And only where it was worth it lately, so that slow upstreams and
people who type cost nothing.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter

MOMENT_S = 0.0002
"""Looked in vain for this long, it sleeps: a wake-up costs about a quarter of it."""
IDLE_S = 0.00003
"""A turn of the loop that took no longer did nothing but look."""
SELDOM = 64
"""Where it is never worth it, every so many times it is tried again."""


class Habit:
    """How often it was worth looking for one kind of thing."""

    __slots__ = ("_passing", "_pause")

    def __init__(self) -> None:
        self._passing = self._pause = 0

    def promises(self) -> bool:
        if self._passing == 0:
            return True
        self._passing -= 1
        return False

    def came(self) -> None:
        self._pause = 0

    def stayed_away(self) -> None:
        self._passing = self._pause = min(2 * self._pause + 1, SELDOM)


class Linger:
    """Told of every plain request and its answer."""

    def __init__(self, now: Callable[[], float] = perf_counter) -> None:
        self._now = now
        self._answers, self._requests = Habit(), Habit()
        self._awaited: Habit | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way = 0
        self._due = False  # a look is on its way
        self._last = self._vain = 0.0

    @property
    def awake(self) -> bool:
        """Whether it looks for what comes next instead of being woken by it."""
        return self._awaited is not None

    def asked(self) -> None:
        """A request came; what follows is its answer."""
        self._under_way += 1
        self._look_for(self._answers)

    def answered(self) -> None:
        """An answer went out; what follows may be the next request."""
        self._look_for(self._requests)

    def over(self) -> None:
        """A request is done with, answered or not."""
        self._under_way -= 1

    def _look_for(self, what: Habit) -> None:
        if self._awaited is not None:
            self._awaited.came()
        self._awaited = what if self._under_way == 1 and what.promises() else None
        if self._awaited is None:
            return
        self._vain, self._last = 0.0, self._now()
        if not self._due:
            self._due = True
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        """Turn after turn: each time the loop asks the kernel what there is, and does not wait for it."""
        self._due = self._awaited is not None
        if self._awaited is None or self._loop is None:
            return
        now = self._now()
        idle, self._last = now - self._last, now
        if idle < IDLE_S:
            self._vain += idle
        if self._vain < MOMENT_S:
            self._loop.call_soon(self._look)
        else:
            self._awaited.stayed_away()
            self._awaited, self._due = None, False
