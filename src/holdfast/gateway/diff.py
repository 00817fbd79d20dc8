"""What is asked of the past, and what is told of it?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.gateway.auditing import DAY_S
from holdfast.model import defaults
from holdfast.model.errors import Code
from holdfast.model.moment import iso
from holdfast.policy.replay import Flip, Group, Left

LIMITS = frozenset({Code.BUDGET_EXHAUSTED.value, Code.RATE_LIMITED.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Which decisions to judge again, and what to compare with."""

    since_s: float = defaults.REVIEW_DAYS * DAY_S
    tool: str | None = None
    """A pattern, such as `shop.*`."""
    principal: str | None = None
    """A pattern, such as `ana/*`."""
    tenant: str | None = None
    active: bool = False
    """Compare with the policies in force instead of what was decided then."""
    examples: int = 3

    @property
    def whole(self) -> bool:
        return self.tool is self.principal is self.tenant is None and not self.active


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    version: str
    against: str | None
    """The version it was compared with; None: what was decided then."""
    since: float
    until: float
    whole: bool
    """Nothing was filtered out, and it was compared with what was decided: only such a diff is a review."""
    decisions: int
    """Judged again."""
    flips: int
    groups: tuple[Group, ...]
    left: Mapping[Left, Mapping[str, int]] = field(default_factory=dict)
    """What could not be judged, by reason and tool."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "against": self.against or "then",
            "since": iso(self.since),
            "until": iso(self.until),
            "decisions": self.decisions,
            "flips": self.flips,
            "groups": [_group(group) for group in self.groups],
            "not_judged": [
                {"reason": why.value, "tool": tool, "count": count}
                for why, tools in self.left.items()
                for tool, count in tools.items()
            ],
        }


def _group(group: Group) -> dict[str, Any]:
    return {
        "tool": group.tool,
        "principal": group.principal,
        "change": group.change.value,
        "count": group.count,
        "stopped_by_limits": group.limited,
        "examples": [_flip(flip) for flip in group.examples],
    }


def _flip(flip: Flip) -> dict[str, Any]:
    past = flip.past
    told = {
        "call_id": past.call_id,
        "decision_id": past.decision_id,
        "at": iso(flip.facts["at"]),
        "code": past.code,
        "limits": limits_note(flip),
        "before": flip.before.to_dict(),
        "after": flip.after.to_dict(),
    }
    return {name: value for name, value in told.items() if value is not None}


def limits_note(flip: Flip) -> str | None:
    """What budgets and rates have to do with it: they are not asked again."""
    if flip.past.code in LIMITS:
        return f"a limit refused it then ({flip.past.code}), and is not asked again"
    if flip.after.allow and not flip.before.allow:
        return "no budget or rate was asked then; one may still refuse it"
    return None
