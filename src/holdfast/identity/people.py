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
class Strangers:
    """People whom the configuration does not name, and who are let in on an issuer's word."""

    admitted: bool = False
    """Whether all of them are."""
    members: bool = False
    """Whether those are who are in a group that is configured."""
    scopes: frozenset[str] = frozenset()
    """The most any of them holds."""
    by_group: frozenset[str] = frozenset()
    """The most that groups give anybody."""
    roles: frozenset[str] | None = frozenset()
    """What people may be by their groups; None: whatever the issuer says."""
    trust: int = 0
    tenants: bool = False
    """Whether the issuer says which tenant somebody is in, so that not all tenants are known."""

    def person(self, name: str, tenant: str) -> Person | None:
        """The most somebody of this name can be; a credential narrows it."""
        if not self.admitted and not self.members:
            return None
        grants = tuple(Grant(scope, "issuer") for scope in sorted(self.scopes | self.by_group))
        return Person(name=name, grants=grants, tenant=tenant, trust=self.trust)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    name: str
    user: str | None
    """None: whoever signed in to it."""
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
    tenant: str | None = None
    """Where it was made, of one that was made while gateways run."""
    in_person: bool = True
    """Whether it gives the person's roles where they have no secret: not if somebody else made it."""
