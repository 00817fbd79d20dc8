"""Which scopes does somebody hold now, and until when?"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from holdfast.model.defaults import GRANT_REFRESH_S
from holdfast.model.scopes import covers, intersect


@dataclass(frozen=True, slots=True)
class Grant:
    """One scope, held until a time."""

    scope: str
    granted_by: str = "config"
    expires_at: float = inf
    id: str | None = None
    """Of one that was given while gateways run, and can be taken back."""
    agent: str | None = None
    """Only this one has it, where it is named."""

    def reaches(self, agent: str) -> bool:
        return self.agent in (None, agent)

    def holds(self, now: float) -> bool:
        return now < self.expires_at

    def due(self, now: float) -> bool:
        """Whether it should be refreshed now, before a call finds it gone."""
        return now >= self.expires_at - GRANT_REFRESH_S


def scopes(grants: Iterable[Grant], now: float) -> frozenset[str]:
    return frozenset(grant.scope for grant in grants if grant.holds(now))


def narrowed(held: frozenset[str], limits: Iterable[frozenset[str]]) -> frozenset[str]:
    """What is left of it where every limit is kept."""
    for limit in limits:
        held = intersect(held, limit)
    return held


def added(
    given: Iterable[Grant], limits: tuple[frozenset[str], ...], held: frozenset[str], now: float
) -> tuple[tuple[str, frozenset[str]], ...]:
    """What these give beyond what is held, each by its name; within the limits, as everything else."""
    found = []
    for grant in given:
        part = narrowed(frozenset((grant.scope,)), limits) if grant.holds(now) else frozenset()
        if not all(covers(held, scope) for scope in part):
            found.append((f"grant:{grant.id}", part))
    return tuple(found)


def valid_until(grants: Iterable[Grant], now: float) -> float:
    """The next moment at which `scopes` would answer something else."""
    return min((grant.expires_at for grant in grants if grant.holds(now)), default=inf)
