"""How is what calls cost added up? TEL-5."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from holdfast.model.limits import MILLIONTHS
from holdfast.model.view import Spent

Group = Literal["task", "tool", "caller", "day", "part", "tenant"]
GROUPS: tuple[Group, ...] = ("task", "tool", "caller", "day", "part", "tenant")
DAY_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """What calls with something in common cost, in one currency."""

    name: str
    """The task, tool, caller, day (`2026-11-16`), part or tenant; empty where calls name no task."""
    currency: str
    calls: int
    """That had a cost; a report of a client is none. Of calls with several parts, as the largest says."""
    cost: int
    """In millionths."""
    parts: Mapping[str, int]
    """The same, by what for."""

    def shown(self) -> dict[str, Any]:
        """For programs: money as a number of its currency."""
        return {
            "name": self.name,
            "currency": self.currency,
            "calls": self.calls,
            "amount": self.cost / MILLIONTHS,
            "parts": {part: cost / MILLIONTHS for part, cost in self.parts.items()},
        }


def summed(rows: Iterable[Spent], group: Group, tenant: str = "") -> list[Sum]:
    """The dearest first."""
    parts: dict[tuple[str, str], dict[str, int]] = {}
    calls: dict[tuple[str, str], dict[tuple[int, str, str, str], int]] = {}
    for row in rows:
        place = (_name(row, group, tenant), row.currency)
        of = parts.setdefault(place, {})
        of[row.part] = of.get(row.part, 0) + row.cost
        alike, most = (row.day, row.task, row.tool, row.caller), calls.setdefault(place, {})
        most[alike] = max(most.get(alike, 0), row.calls)  # one call has a row for each of its parts
    found = [
        Sum(
            name=place[0],
            currency=place[1],
            calls=sum(calls[place].values()),
            cost=sum(of.values()),
            parts=of,
        )
        for place, of in parts.items()
    ]
    return sorted(found, key=lambda one: (-one.cost, one.name, one.currency))


def day_name(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_S, UTC).date().isoformat()


def _name(row: Spent, group: Group, tenant: str) -> str:
    match group:
        case "task":
            return row.task
        case "tool":
            return row.tool
        case "caller":
            return row.caller
        case "part":
            return row.part
        case "day":
            return day_name(row.day)
        case "tenant":
            return tenant
