"""How far does a delegation reach, beside its scopes?

Tools and resources are patterns as scopes are, with `.` inside a word: `shop.*` is every tool of `shop`.
Bounds only ever meet: what two of them allow is what both do (AUT-2).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from holdfast.model.scopes import covers, intersect

Patterns = frozenset[str]


@dataclass(frozen=True, slots=True)
class Bounds:
    tools: Patterns | None = None
    """None bounds nothing; no patterns at all allow nothing."""
    resources: Patterns | None = None
    until: float = inf

    def meet(self, other: "Bounds") -> "Bounds":
        """What both allow."""
        return Bounds(
            _both(self.tools, other.tools),
            _both(self.resources, other.resources),
            min(self.until, other.until),
        )

    def reaches(self, tool: str, resources: Iterable[str]) -> bool:
        """Whether this tool, on all of these, is inside."""
        if self.tools is not None and not covers(self.tools, tool):
            return False
        held = self.resources
        return held is None or all(covers(held, resource) for resource in resources)


UNBOUND = Bounds()


def _both(left: Patterns | None, right: Patterns | None) -> Patterns | None:
    if left is None or right is None:
        return right if left is None else left
    return intersect(left, right)
