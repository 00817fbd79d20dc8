"""Which scopes does somebody hold now, and until when?"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from holdfast.model.defaults import GRANT_REFRESH_S


@dataclass(frozen=True, slots=True)
class Grant:
    """One scope, held until a time."""

    scope: str
    granted_by: str = "config"
    expires_at: float = inf

    def holds(self, now: float) -> bool:
        return now < self.expires_at

    def due(self, now: float) -> bool:
        """Whether it should be refreshed now, before a call finds it gone."""
        return now >= self.expires_at - GRANT_REFRESH_S


def scopes(grants: Iterable[Grant], now: float) -> frozenset[str]:
    return frozenset(grant.scope for grant in grants if grant.holds(now))


def valid_until(grants: Iterable[Grant], now: float) -> float:
    """The next moment at which `scopes` would answer something else."""
    return min((grant.expires_at for grant in grants if grant.holds(now)), default=inf)
