"""What do the claims of a token say about its holder?

The issuer says who somebody is. What they may do at most is configured: by their entry under `people`, by
their groups, or for all who are not listed. A token only ever narrows that.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.identity.credential import Claim, Unauthenticated
from holdfast.identity.grants import Grant
from holdfast.identity.people import Person, Strangers
from holdfast.identity.standing import IN_PERSON, LOCAL_AGENT
from holdfast.model import scopes

NOT_SAID = "client"
"""The agent's name where a token does not say which client holds it."""
MOST_ACTORS = 8
MOST_SCOPES = 256
_NAME = re.compile(r"[\x21-\x7e]{1,255}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Names of claims; of several the first one that is there counts."""

    user: Names = ("sub",)
    agent: Names = ("client_id", "azp")
    scopes: Names = ("scope", "scp")
    tenant: Names = ()
    roles: Names = ()
    groups: Names = ()
    trust: Names = ()


@dataclass(frozen=True, slots=True)
class Group:
    roles: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How claims are understood."""

    places: Places = field(default_factory=Places)
    groups: Mapping[str, Group] = field(default_factory=dict)
    strangers: Strangers = field(default_factory=Strangers)
    in_person: frozenset[str] = frozenset()

    def claim(self, said: Mapping[str, Any], until: float) -> Claim:
        """Raises Unauthenticated."""
        user, agent, tenant = self._user(said), self._agent(said), self._tenant(said)
        act = _actors(said)
        held = [self.groups[name] for name in _words(_first(said, self.places.groups)) if name in self.groups]
        trust = _trust(_first(said, self.places.trust)) if self.places.trust else None
        token = said.get("jti")
        return Claim(
            user=user,
            agent=None if agent in self.in_person and not act else (act or (agent,))[0],
            limits=(_scopes(_first(said, self.places.scopes)),) if self.places.scopes else (),
            until=until,
            tenant=tenant,
            trust=trust,
            roles=self._roles(said).union(*(group.roles for group in held)),
            grants=frozenset[str]().union(*(group.scopes for group in held)),
            act=act,
            rests_on=(f"token:{token}",) if isinstance(token, str) and _NAME.fullmatch(token) else (),
            told=True,
            person=self._stranger(user, tenant, bool(held)),
        )

    def _user(self, said: Mapping[str, Any]) -> str:
        for name in self.places.user:
            value = _at(said, name)
            if value is None:
                continue
            if name == "email" and said.get("email_verified") is not True:
                raise Unauthenticated("its 'email' is not verified")
            return _name(value, name)
        raise Unauthenticated("it does not say who signed in")

    def _agent(self, said: Mapping[str, Any]) -> str:
        value = _first(said, self.places.agent)
        return NOT_SAID if value is None else _agent_name(value, "client")

    def _tenant(self, said: Mapping[str, Any]) -> str | None:
        if not self.places.tenant:
            return None
        value = _first(said, self.places.tenant)
        if not isinstance(value, str) or not _WORD.fullmatch(value):
            raise Unauthenticated("it names no tenant")
        return value

    def _roles(self, said: Mapping[str, Any]) -> frozenset[str]:
        return frozenset(word for word in _words(_first(said, self.places.roles)) if _WORD.fullmatch(word))

    def _stranger(self, user: str, tenant: str | None, member: bool) -> Person | None:
        """Who it is where nobody of that name is listed."""
        most = self.strangers
        if not most.admitted and not member:
            return None
        grants = tuple(Grant(scope, "issuer") for scope in sorted(most.scopes))
        return Person(name=user, grants=grants, tenant=tenant or "default", trust=most.trust)


def _first(said: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((value for name in names if (value := _at(said, name)) is not None), None)


def _at(said: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, else by a path of names."""
    if name in said:
        return said[name]
    value: Any = said
    for step in name.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise Unauthenticated(f"its {what!r} is no name")
    return value


def _agent_name(value: Any, what: str) -> str:
    """Not one that stands for the person: whoever registers clients may choose their names."""
    if value in (IN_PERSON, LOCAL_AGENT):
        raise Unauthenticated(f"its {what!r} is {value!r}, which no agent is called")
    return _name(value, what)


def _words(value: Any) -> tuple[str, ...]:
    """Text of words, or a list of them."""
    if isinstance(value, str):
        return tuple(value.split())
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _scopes(value: Any) -> frozenset[str]:
    """What is no scope here gives nothing."""
    return frozenset(word for word in _words(value)[:MOST_SCOPES] if scopes.check(word) is None)


def _trust(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return min(max(value, 0), 100)


def _actors(said: Mapping[str, Any]) -> tuple[str, ...]:
    """Who acts for the user, the one who calls first (RFC 8693)."""
    found: tuple[str, ...] = ()
    actor = said.get("act")
    while actor is not None:
        if not isinstance(actor, dict) or len(found) == MOST_ACTORS:
            raise Unauthenticated("its 'act' cannot be read")
        found = (*found, _agent_name(actor.get("sub"), "act"))
        actor = actor.get("act")
    return found
