"""Who exists: people, the agents that act for them, the keys they hold."""

from dataclasses import dataclass, field
from math import inf

from holdfast.identity.grants import Grant

EVERYTHING = "**"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    name: str
    roles: frozenset[str] = frozenset()
    grants: tuple[Grant, ...] = ()
    tenant: str = "default"
    trust: int = 0
    secret: str | None = field(default=None, repr=False)
    """What proves that the person is here, as `keys` stores it; None asks for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    name: str
    user: str
    scopes: frozenset[str] | None = None
    """Narrows what its person holds; None does not narrow."""
    trust: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    id: str
    hash: str = field(repr=False)
    user: str
    agent: str | None = None
    """None: the person holds the key, and may act in person with it."""
    scopes: frozenset[str] | None = None
    expires_at: float = inf
