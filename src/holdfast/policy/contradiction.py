"""Can these demands all be met at once, and by which values?

A contradiction is only said where it is certain: bounds that leave no number, values that exclude each other,
patterns that no text fits, something that must be both so and not so.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.policy.atoms import (
    Alternative,
    Contains,
    Demand,
    Has,
    Matches,
    OneOf,
    Other,
    Path,
    Range,
    Setting,
    Value,
    Ways,
    matches,
    opposite,
    within,
)


@dataclass
class Room:
    """What is left for one value."""

    low: int | None = None
    high: int | None = None
    unit: str | None = None
    allowed: frozenset[Value] | None = None
    excluded: set[Value] = field(default_factory=set)
    fits: list[tuple[str | None, ...]] = field(default_factory=list)
    avoids: list[tuple[str | None, ...]] = field(default_factory=list)

    def narrow(self, demand: Range | OneOf | Matches) -> None:
        match demand:
            case Range(_, low, high, unit):
                self.unit = unit
                self.low = low if self.low is None else self.low if low is None else max(self.low, low)
                self.high = high if self.high is None else self.high if high is None else min(self.high, high)
            case OneOf(_, values, True):
                self.allowed = values if self.allowed is None else self.allowed & values
            case OneOf(_, values, False):
                self.excluded |= values
            case Matches(_, pattern, so):
                (self.fits if so else self.avoids).append(pattern)

    @property
    def empty(self) -> bool:
        if self.allowed is not None:
            return not any(self._takes(value) for value in self.allowed)
        if self.excluded >= {True, False}:
            return True
        if self.low is not None and self.high is not None and self.low > self.high:
            return True
        return self._no_text()

    def _takes(self, value: Value) -> bool:
        if value in self.excluded:
            return False
        if isinstance(value, int):
            return isinstance(value, bool) or within(value, self.low, self.high)
        return all(matches(p, value) for p in self.fits) and not any(matches(p, value) for p in self.avoids)

    def _no_text(self) -> bool:
        for fit in self.fits:
            if any(matches(avoided, fit) for avoided in self.avoids):
                return True
            if None not in fit and not self._takes("".join(part or "" for part in fit)):
                return True
        return any(_apart(one, other) for one in self.fits for other in self.fits)

    def some(self, near: int | None = None) -> Value | None:
        """A value at its bounds, where one is easily found; the bound that is nearer, where it matters."""
        if self.allowed is not None:
            return next((value for value in sorted(self.allowed, key=str) if self._takes(value)), None)
        if self.unit is not None:
            below = near is not None and self.low is not None and near < self.low
            return self.low if below or self.high is None else self.high
        if self.fits:
            made = ["".join("x" if part is None else part for part in fit) for fit in self.fits]
            tried = (*made, "".join(made), "".join(reversed(made)))
            return next((text for text in tried if self._takes(text)), None)
        if self.excluded & {True, False} and all(isinstance(value, bool) for value in self.excluded):
            return True not in self.excluded
        return next((text for text in ("other", "another", "x") if self._takes(text)), None)


def contradictory(demands: Alternative, setting: Setting) -> bool:
    """Whether no call can meet them all."""
    if any(demand in demands for one in demands for [demand] in _single(one)):
        return True
    if any(Has(path, False) in demands for path in _read(demands)):
        return True
    return any(room.empty for room in rooms(demands, setting).values())


def rooms(demands: Iterable[Demand], setting: Setting) -> dict[Path, Room]:
    found: dict[Path, Room] = {}
    for demand in demands:
        if isinstance(demand, Range | OneOf | Matches):
            room = found.get(demand.path)
            if room is None:
                room = found[demand.path] = Room()
                known = setting.domains.get(demand.path)
                if isinstance(known, Range | OneOf | Matches):
                    room.narrow(known)
            room.narrow(demand)
    return found


def implies(one: Ways, others_fail: Ways, setting: Setting) -> bool:
    """Whether the other holds whenever this one does: never is one met while the other fails."""
    return all(contradictory(mine | theirs, setting) for mine in one for theirs in others_fail)


def possible(ways: Ways, setting: Setting) -> Ways:
    """Those alternatives that are not contradictory in themselves."""
    return tuple(way for way in ways if not contradictory(way, setting))


def _single(demand: Demand) -> Iterator[Alternative]:
    """The exact opposite, where it is one demand."""
    if isinstance(demand, Has | Contains | Other):
        yield from opposite(demand)


def _read(demands: Alternative) -> Iterator[Path]:
    """Every path that must be there for a demand to be met, and all above it."""
    for demand in demands:
        if isinstance(demand, Other):
            continue
        path = demand.path
        last = len(path) if not isinstance(demand, Has) or demand.so else len(path) - 1
        for end in range(2, last + 1):
            yield path[:end]


def _apart(one: tuple[str | None, ...], other: tuple[str | None, ...]) -> bool:
    """Whether what stands before the first gaps differs, or what stands after the last."""
    return _differ(_start(one), _start(other)) or _differ(_start(one[::-1]), _start(other[::-1]))


def _start(pattern: tuple[str | None, ...]) -> str:
    parts = []
    for part in pattern:
        if part is None:
            break
        parts.append(part)
    return "".join(parts)


def _differ(one: str, other: str) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] != other[:shorter]
