"""Where does a thread's CPU time go? Every moment is charged to one part: the innermost that is under way.

A coroutine is charged step by step, so what others do while it waits is not its own. Looking costs something
itself: `calibrate` measures how much that is where nothing else is done, and `looking` says what that makes
for each part. Among other work a look costs more; who looks `twice` at everything finds out how much more.
"""

import statistics
import time
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from inspect import iscoroutinefunction
from types import coroutine
from typing import Any, NamedTuple

REST = "the rest"
CALL, TASK, STEP = range(3)
"""Kinds of looks: a function, the first step of a coroutine, each further step."""


class Cost(NamedTuple):
    """Nanoseconds that one look adds to the part itself and to the part around it."""

    inner: float
    outer: float


class Part:
    __slots__ = ("calls", "inner", "name", "outer", "spent")

    def __init__(self, name: str) -> None:
        self.name = name
        self.reset()

    def reset(self) -> None:
        self.spent = self.calls = 0
        self.inner = [0, 0, 0]
        """Looks of each kind inside this part."""
        self.outer = [0, 0, 0]
        """Looks of each kind that this part was around."""

    def looking(self, costs: tuple[Cost, ...]) -> float:
        inner = sum(times * cost.inner for times, cost in zip(self.inner, costs, strict=True))
        outer = sum(times * cost.outer for times, cost in zip(self.outer, costs, strict=True))
        return inner + outer


class Stopwatch:
    """Of one thread."""

    def __init__(self, *, twice: bool = False) -> None:
        self.twice = twice
        self.part = Part(REST)
        self.parts = {REST: self.part}
        self._mark = time.thread_time_ns()

    def reset(self) -> None:
        for part in self.parts.values():
            part.reset()
        self._mark = time.thread_time_ns()

    def enter(self, part: Part, kind: int, clock: Callable[[], int] = time.thread_time_ns) -> Part:
        before = self.part
        before.outer[kind] += 1
        part.inner[kind] += 1
        self.part = part
        now = clock()
        before.spent += now - self._mark
        self._mark = now
        return before

    def leave(self, before: Part, clock: Callable[[], int] = time.thread_time_ns) -> None:
        now = clock()
        self.part.spent += now - self._mark
        self._mark = now
        self.part = before

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        part = self.parts.setdefault(name, Part(name))
        watch = self._task if iscoroutinefunction(function) else self._call
        watched = watch(part, function)
        return watch(part, watched) if self.twice else watched

    def _call(self, part: Part, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def watched(*given: Any, **named: Any) -> Any:
            part.calls += 1
            before = self.enter(part, CALL)
            try:
                return function(*given, **named)
            finally:
                self.leave(before)

        return watched

    def _task(
        self, part: Part, function: Callable[..., Coroutine[Any, Any, Any]]
    ) -> Callable[..., Coroutine[Any, Any, Any]]:
        @wraps(function)
        async def watched(*given: Any, **named: Any) -> Any:
            part.calls += 1
            return await self._steps(part, function(*given, **named))

        return watched

    @coroutine
    def _steps(self, part: Part, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        said: Any = None
        failed: BaseException | None = None
        kind = TASK
        while True:
            before = self.enter(part, kind)
            try:
                asks = work.send(said) if failed is None else work.throw(failed)
            except StopIteration as end:
                return end.value
            finally:
                self.leave(before)
            said, failed, kind = None, None, STEP
            try:
                said = yield asks
            except BaseException as error:
                failed = error

    def spent(self) -> dict[str, int]:
        """Nanoseconds of each part, with what looking cost."""
        return {name: part.spent for name, part in self.parts.items()}

    def looking(self, costs: tuple[Cost, ...]) -> dict[str, float]:
        """Nanoseconds that looking cost each part, if every look cost that much."""
        return {name: part.looking(costs) for name, part in self.parts.items()}


def calibrate(times: int = 200, rounds: int = 25) -> tuple[Cost, ...]:
    """What one look costs here and now, of each kind; in the middle of some rounds."""

    def plain() -> None:
        pass

    async def task() -> None:
        pass

    async def stepping() -> None:
        await _once()

    call, whole, more = (
        _middle([_looks(work, times) for _ in range(rounds)]) for work in (plain, task, stepping)
    )
    step = Cost(max(0.0, more.inner - whole.inner), max(0.0, more.outer - whole.outer))
    return call, whole, step


def _middle(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(side) for side in zip(*costs, strict=True)))


def _looks(work: Callable[..., Any], times: int) -> Cost:
    watch = Stopwatch()
    watched = watch.around("inner", work)
    bare = _spent(work, times)
    watch.reset()
    _spent(watched, times)
    watch.leave(watch.part)
    return Cost(watch.parts["inner"].spent / times, max(0.0, watch.part.spent / times - bare))


def _spent(work: Callable[..., Any], times: int) -> float:
    start = time.thread_time_ns()
    for _ in range(times):
        made = work()
        if made is not None:
            _driven(made)
    return (time.thread_time_ns() - start) / times


def _driven(work: Coroutine[Any, Any, Any]) -> None:
    try:
        while True:
            work.send(None)
    except StopIteration:
        pass


@coroutine
def _once() -> Generator[None, None, None]:
    yield
