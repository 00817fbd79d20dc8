"""What have people given while gateways run: keys, grants of scopes, and what did they take back?"""

from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

KEY, GRANT, TOKEN = "key", "grant", "token"
KINDS = (KEY, GRANT, TOKEN)
"""What can be taken back: `key:ID`, `grant:ID`, `token:JTI`."""
ELEVATION = "holdfast.elevation"
"""What an approval of a grant is an approval of; the key of that operation is the grant's id."""
WAITING = 0.0
"""The end of a grant that nobody has approved yet."""


def name_of(kind: str, id: str) -> str:
    return f"{kind}:{id}"


def qualified(tenant: str, name: str) -> str:
    """As it is looked up: no tenant takes back what another one gave."""
    return f"{tenant}/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    tenant: str
    id: str
    hash: str = field(repr=False)
    person: str
    agent: str | None = None
    scopes: tuple[str, ...] | None = None
    """Narrows what the person holds; None does not."""
    in_person: bool = False
    """Whether who holds it may act with the person's roles: not where somebody else made it for them."""
    made_by: str
    at: float
    expires_at: float = inf
    ended_at: float | None = None
    ended_by: str | None = None

    @property
    def name(self) -> str:
        return name_of(KEY, self.id)

    def holds(self, now: float) -> bool:
        return self.ended_at is None and now < self.expires_at


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessGrant:
    tenant: str
    id: str
    person: str
    agent: str | None = None
    """Only this one, where it is named."""
    scope: str
    granted_by: str
    note: str = ""
    at: float
    expires_at: float
    life_s: float
    renewed: bool = False
    """Before it ends it is renewed, for as long as who gave it may give it."""
    approval_id: str | None = None
    ended_at: float | None = None
    ended_by: str | None = None

    @property
    def name(self) -> str:
        return name_of(GRANT, self.id)

    @property
    def waits(self) -> bool:
        return self.expires_at == WAITING and self.ended_at is None

    def holds(self, now: float) -> bool:
        return self.ended_at is None and now < self.expires_at


class Revocation(NamedTuple):
    tenant: str
    name: str
    by: str
    note: str
    at: float
    until: float
    """When it would have ended anyway."""


class Changes(NamedTuple):
    """What is different since a mark."""

    mark: int
    """The number of the last change there was."""
    keys: tuple[AccessKey, ...] = ()
    grants: tuple[AccessGrant, ...] = ()
    revoked: frozenset[str] = frozenset()
    """Qualified names."""
