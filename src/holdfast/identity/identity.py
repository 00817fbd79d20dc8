"""Who is calling, and with what right?

Two modes. `local`: whoever reaches the loopback address is the person logged in to
this machine. `api_key`: every request carries a key. In both, what a caller may do is
what person, agent and key all allow, and nothing more.

Roles are what approvals are given with, so an agent has none, whoever it acts for. A
person has them when acting in person, and where an approver secret is set, only with
it. The role `user`, the person's own consent to what their agent wants, is had only
where an agent cannot stand in: with the secret, or at the terminal (APR-2).
"""

import getpass
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.identity.grants import Grant, scopes, valid_until
from holdfast.identity.keys import matches, split
from holdfast.identity.people import EVERYTHING, Agent, Key, Person
from holdfast.model.call import Principal
from holdfast.model.defaults import TRUST_THRESHOLD
from holdfast.model.errors import HoldfastError
from holdfast.model.scopes import intersect

USER = "x-holdfast-user"
AGENT = "x-holdfast-agent"
SECRET = "x-holdfast-approver-secret"
LOCAL_AGENT = "local"
IN_PERSON = "person"
"""The agent's name where there is none: the person holds the key."""

MOST_KNOWN = 1024
_NAME = re.compile(r"[\x21-\x7e]{1,128}")


class Unauthenticated(HoldfastError):
    """Nobody knows who this is."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A principal, and until when its scopes are right."""

    principal: Principal
    until: float


class Identity:
    def __init__(
        self,
        mode: Literal["local", "api_key"],
        people: Iterable[Person] = (),
        agents: Iterable[Agent] = (),
        keys: Iterable[Key] = (),
        *,
        os_user: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.mode = mode
        self.people = {person.name: person for person in people}
        self.agents = {agent.name: agent for agent in agents}
        self.keys = {key.id: key for key in keys}
        self.os_user = os_user or (_os_user() if mode == "local" else "")
        self._now = self.now = now
        self._known: dict[tuple[str, str, str | None], Standing] = {}

    @classmethod
    def local(
        cls,
        people: Iterable[Person] = (),
        agents: Iterable[Agent] = (),
        *,
        os_user: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> "Identity":
        return cls("local", people, agents, os_user=os_user, now=now)

    @classmethod
    def api_key(
        cls,
        people: Iterable[Person],
        agents: Iterable[Agent],
        keys: Iterable[Key],
        *,
        now: Callable[[], float] = time.time,
    ) -> "Identity":
        return cls("api_key", people, agents, keys, now=now)

    def authenticate(self, headers: Mapping[str, str]) -> Principal:
        """The caller behind a request; raises Unauthenticated."""
        found = _lower(headers) if isinstance(headers, dict) else headers
        return self._by_key(found) if self.mode == "api_key" else self._by_name(found)

    def standing(self, headers: Mapping[str, str]) -> Standing:
        """The caller behind a request, and until when the same headers mean the same; raises Unauthenticated.

        A key is looked at every time.
        """
        principal = self.authenticate(headers)
        known = self._known.get((principal.user, principal.agent, None)) if self.mode == "local" else None
        return Standing(principal, -math.inf if known is None else known.until)

    def at_terminal(
        self, name: str | None = None, *, secret: str | None = None, key: str | None = None
    ) -> Principal:
        """The person at the command line, who can read the store's own key file."""
        if self.mode == "local":
            person = self._person(name)
            return self._in_person(person, self._standing(person, LOCAL_AGENT), secret, self_consent=True)
        if key is not None:
            principal = self.authenticate({"authorization": f"Bearer {key}", SECRET: secret or ""})
            if name not in (None, principal.user):
                raise Unauthenticated(
                    f"the key belongs to {principal.user!r}, not to {name!r}; leave out --as"
                )
            return principal
        if name is None or secret is None:
            raise Unauthenticated("auth.mode is 'api_key': set HOLDFAST_API_KEY to your key")
        person = self._person(name)
        if person.secret is None:
            raise Unauthenticated(f"{name!r} has no approver secret; set HOLDFAST_API_KEY to a key of theirs")
        return self._in_person(person, self._standing(person, IN_PERSON), secret, self_consent=True)

    def holders(self, tenant: str, role: str) -> frozenset[str]:
        """Who could answer an approval that asks for this role."""
        people = [p for p in (*self.people.values(), *self._unlisted()) if p.tenant == tenant]
        return frozenset(p.name for p in people if role == "user" or role in p.roles)

    def again(self, was: Principal) -> Principal | None:
        """The same caller as they stand now, with no more than they had; None when they are gone."""
        try:
            person = self._person(was.user)
            now = self._standing(person, was.agent)
        except Unauthenticated:
            return None
        if person.tenant != was.tenant:
            return None
        return replace(now, scopes=intersect(now.scopes, was.scopes), trust=min(now.trust, was.trust))

    # --- the two modes ----------------------------------------------------------------

    def _by_name(self, headers: Mapping[str, str]) -> Principal:
        person = self._person(headers.get(USER))
        agent = headers.get(AGENT)
        if agent is not None and not _NAME.fullmatch(agent):
            raise Unauthenticated(
                "header 'X-Holdfast-Agent' must be 1 to 128 printable characters without spaces"
            )
        standing = self._standing(person, agent or LOCAL_AGENT)
        secret = headers.get(SECRET)
        return standing if agent and not secret else self._in_person(person, standing, secret)

    def _by_key(self, headers: Mapping[str, str]) -> Principal:
        kind, _, presented = headers.get("authorization", "").partition(" ")
        parts = split(presented.strip()) if kind.lower() == "bearer" else None
        if parts is None:
            raise Unauthenticated(
                "send 'Authorization: Bearer hf_<id>_<secret>'; 'holdfast keys create' makes a key"
            )
        key = self.keys.get(parts[0])
        if key is None or not matches(key.hash, parts[1]):
            raise Unauthenticated("this key is not known here; check it, or ask for a new one")
        if self._now() >= key.expires_at:
            raise Unauthenticated(f"key {key.id!r} has expired; ask for a new one")
        person = self._person(key.user)
        standing = self._standing(person, key.agent or IN_PERSON, key)
        secret = headers.get(SECRET)
        return standing if key.agent and not secret else self._in_person(person, standing, secret)

    # --- what somebody may do ---------------------------------------------------------

    def _in_person(
        self, person: Person, principal: Principal, secret: str | None, *, self_consent: bool = False
    ) -> Principal:
        """With the roles that this person has proven a right to."""
        if person.secret is None:
            roles = person.roles | {"user"} if self_consent else person.roles - {"user"}
        elif not secret:
            return principal
        elif matches(person.secret, secret):
            roles = person.roles | {"user"}
        else:
            raise Unauthenticated(f"that is not the approver secret of {person.name!r}")
        return replace(principal, roles=roles) if roles else principal

    def _standing(self, person: Person, agent: str, key: Key | None = None) -> Principal:
        name = (person.name, agent, key.id if key else None)
        known = self._known.get(name)
        now = self._now()
        if known is None or now >= known.until:
            known = self._narrowed(person, agent, key, now)
            if len(self._known) >= MOST_KNOWN:  # agents name themselves in local mode
                self._known.clear()
            self._known[name] = known
        return known.principal

    def _narrowed(self, person: Person, agent_name: str, key: Key | None, now: float) -> Standing:
        agent = self.agents.get(agent_name)
        if agent is not None and agent.user != person.name:
            raise Unauthenticated(f"agent {agent.name!r} acts for {agent.user!r}, not for {person.name!r}")
        held = scopes(person.grants, now)
        for limit in (agent.scopes if agent else None, key.scopes if key else None):
            held = held if limit is None else intersect(held, limit)
        trust = person.trust if agent is None or agent.trust is None else min(person.trust, agent.trust)
        principal = Principal(
            tenant=person.tenant, user=person.name, agent=agent_name, scopes=held, trust=trust
        )
        return Standing(principal, valid_until(person.grants, now))

    def _person(self, name: str | None) -> Person:
        person = self.people.get(name or self.os_user)
        if person is not None:
            return person
        if self.mode == "local" and name in (None, self.os_user):
            return self._unlisted()[0]
        known = ", ".join(repr(n) for n in sorted(self.people)) or "nobody yet"
        raise Unauthenticated(
            f"there is no person {name!r} here (known: {known}); add them under 'auth.people'"
        )

    def _unlisted(self) -> tuple[Person, ...]:
        """The person logged in to this machine, where the configuration does not say who that is."""
        if self.mode != "local" or self.os_user in self.people:
            return ()
        return (Person(name=self.os_user, grants=(Grant(EVERYTHING, "local"),), trust=TRUST_THRESHOLD),)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _os_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for this uid, as in many containers
        return "local"
