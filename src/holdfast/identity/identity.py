"""Who is calling, and with what right?

Three modes. `local`: whoever reaches the loopback address is the person logged in to this machine. `api_key`
and `jwt`: every request carries a credential, which a reader understands (`credential.py`). In all of them,
what a caller may do is what person, agent and credential all allow, and nothing more.

Roles are what approvals are given with, so an agent has none, whoever it acts for. A
person has them when acting in person, and where an approver secret is set, only with
it. The role `user`, the person's own consent to what their agent wants, is had only
where an agent cannot stand in: with the secret, or at the terminal (APR-2).
"""

import getpass
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, NamedTuple

from holdfast.identity.api_keys import ApiKeys
from holdfast.identity.approver import Approvers
from holdfast.identity.credential import LONGEST, Claim, Reader, Unauthenticated, bearer
from holdfast.identity.grants import Grant
from holdfast.identity.people import EVERYTHING, Agent, Key, Person, Strangers
from holdfast.identity.standing import IN_PERSON, LOCAL_AGENT, Standing, in_person, standing
from holdfast.identity.told import Told
from holdfast.model.call import Principal
from holdfast.model.defaults import TRUST_THRESHOLD
from holdfast.model.scopes import intersect

if TYPE_CHECKING:
    from holdfast.identity.jwks import Jwks

log = logging.getLogger(__name__)

Mode = Literal["local", "api_key", "jwt"]

USER = "x-holdfast-user"
AGENT = "x-holdfast-agent"
SECRET = "x-holdfast-approver-secret"
TAKEN_BACK = "this credential was revoked; ask for a new one"
MOST_KNOWN = 1024
_NAME = re.compile(r"[\x21-\x7e]{1,128}")


@dataclass(frozen=True, slots=True)
class Known:
    """What followed from one credential."""

    standing: Standing
    person: Person
    bare: Principal
    """Without the roles the person has by holding the credential."""
    claim: Claim


class Held(NamedTuple):
    """Somebody, and what their credential proves."""

    principal: Principal
    claim: Claim


class Identity:
    def __init__(
        self,
        mode: Mode,
        people: Iterable[Person] = (),
        agents: Iterable[Agent] = (),
        keys: Iterable[Key] = (),
        *,
        readers: Iterable[Reader] = (),
        strangers: Strangers | None = None,
        os_user: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.mode = mode
        self.people = {person.name: person for person in people}
        self.agents = {agent.name: agent for agent in agents}
        self.keys = {key.id: key for key in keys}
        self.strangers = strangers or Strangers()
        self.os_user = os_user or (_os_user() if mode == "local" else "")
        self._now = self.now = now
        self.readers: list[Reader] = [] if mode == "local" else [ApiKeys(self.keys, now)]
        self.readers += readers
        self.issuer_keys: Jwks | None = None
        """What tokens are checked against, in mode `jwt`."""
        self.taken_back: Set[str] = frozenset()
        """What counts no more, as `Principal.revocable` names it: `TENANT/key:ID`; replaced as a whole."""
        self.caches: list[Callable[[], None]] = []
        """What others remember of who is who; emptied with what is remembered here."""
        self.given: Mapping[tuple[str, str], tuple[Grant, ...]] = {}
        """What people hold beside the configuration, by tenant and person; replaced as a whole."""
        self._known: dict[tuple[str, str], Standing] = {}
        self._told = Told()
        self.approvers = Approvers(now)
        self._proven: dict[bytes, Known] = {}

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

    def authenticate(self, headers: Mapping[str, str], proof: str = "") -> Principal:
        """The caller behind a request; raises Unauthenticated.

        `proof` is what `proof` gave when they showed their approver secret, and stands for it.
        """
        found = _lower(headers) if isinstance(headers, dict) else headers
        secret = found.get(SECRET)
        if not secret and not proof:
            return self.standing(found).principal
        if self._is_by_name(found):
            person, bare = self._person(found.get(USER)), self._by_name(found).principal
        else:
            known = self._by_credential(bearer(found))
            person, bare = known.person, known.bare
        if person.secret is None:  # where nothing is to be proven, saying something proves nothing
            return self.standing(found).principal
        check = self.approvers.check if secret else self.approvers.proven
        return in_person(person, bare, secret or proof, check=check)

    def proof(self, principal: Principal) -> str:
        """That this person has shown their secret, for `authenticate`; empty where they have none."""
        person = self.people.get(principal.user)
        return "" if person is None or person.secret is None else self.approvers.mark(person)

    def standing(self, headers: Mapping[str, str]) -> Standing:
        """The same without an approver secret, and until when it holds; raises Unauthenticated.

        What follows from a name may be remembered as long. A credential is asked for every time: it can be
        taken back at any.
        """
        headers = _lower(headers) if isinstance(headers, dict) else headers
        if not self._is_by_name(headers):
            return self._by_credential(bearer(headers)).standing
        known = self._by_name(headers)
        if headers.get(AGENT):
            return known
        return replace(known, principal=in_person(self._person(headers.get(USER)), known.principal))

    async def learn(self, headers: Mapping[str, str]) -> bool:
        """After a refusal: find out what was missing to check the credential; whether to ask again."""
        presented = bearer(headers)
        reader = self._reader(presented)
        return reader is not None and await reader.learn(presented)

    def tend(self) -> None:
        """See to it that the issuer's keys are looked at in time; nobody waits for it."""
        if self.issuer_keys is not None and self.issuer_keys.due:
            self.issuer_keys.begin()

    async def close(self) -> None:
        if self.issuer_keys is not None:
            await self.issuer_keys.close()

    def forget(self) -> None:
        """Look at every credential anew; for when people, keys or grants have changed."""
        self._known, self._proven = {}, {}  # what a thread finds out meanwhile, it puts where nobody looks
        for clear in self.caches:
            clear()

    def at_terminal(
        self, name: str | None = None, *, secret: str | None = None, key: str | None = None
    ) -> Principal:
        """The person at the command line, who can read the store's own key file.

        `key` is the credential they hold, of whatever form; a token of the issuer was learnt before.
        """
        if self.mode == "local":
            person = self._person(name)
            return in_person(person, self._standing(person, LOCAL_AGENT).principal, secret, self_consent=True)
        if key is not None:
            known = self._shown(key)
            if not self.taken_back.isdisjoint(known.bare.revocable):
                raise Unauthenticated(TAKEN_BACK)
            principal = known.standing.principal
            if secret and known.person.secret is not None:
                principal = in_person(known.person, known.bare, secret)
            if name not in (None, principal.user):
                raise Unauthenticated(
                    f"the key belongs to {principal.user!r}, not to {name!r}; leave out --as"
                )
            return principal
        if name is None or secret is None:
            holds = (
                "HOLDFAST_API_KEY to your key" if self.mode == "api_key" else "HOLDFAST_TOKEN to your token"
            )
            first = "; 'holdfast keys create --user NAME' makes the first key"
            none = self.mode == "api_key" and not self.keys
            raise Unauthenticated(f"auth.mode is {self.mode!r}: set {holds}{first if none else ''}")
        person = self._person(name)
        if person.secret is None:
            raise Unauthenticated(f"{name!r} has no approver secret; set HOLDFAST_API_KEY to a key of theirs")
        return in_person(person, self._standing(person, IN_PERSON).principal, secret, self_consent=True)

    def holders(self, tenant: str, role: str) -> frozenset[str]:
        """Who could answer an approval that asks for this role."""
        people = [p for p in (*self.people.values(), *self._unlisted()) if p.tenant == tenant]
        listed = frozenset(p.name for p in people if role == "user" or role in p.roles)
        return listed | self._told.holders(tenant, role)

    def operated(self, tenant: str) -> bool:
        """Whether somebody is an operator, or an issuer may say so of somebody who has not come yet."""
        given = self.strangers.roles
        return given is None or "operator" in given or bool(self.holders(tenant, "operator"))

    def holder(self, presented: str) -> Held:
        """Whose credential this is, in whatever mode, and what it proves; raises Unauthenticated."""
        known = self._by_credential(presented)
        return Held(known.standing.principal, known.claim)

    def again(self, was: Principal) -> Principal | None:
        """The same caller as they stand now, with no more than they had; None when they are gone."""
        if self._now() >= was.bounds.until or not self.taken_back.isdisjoint(was.revocable):
            return None
        try:
            person = self.person_of(was.user, was.tenant) or self._person(was.user)
            claim = Claim(user=was.user, agent=was.agent, grants=self.strangers.by_group)
            now = self._narrow(person, claim).principal
        except Unauthenticated:
            return None
        if person.tenant != was.tenant:
            return None
        return replace(
            now,
            scopes=intersect(now.scopes, was.scopes),
            trust=min(now.trust, was.trust),
            bounds=was.bounds,
            act=was.act,
            rests_on=was.rests_on,
        )

    def person_of(self, name: str, tenant: str | None) -> Person | None:
        """Somebody who is listed, or whom an issuer may have let in: then the most they can be."""
        return self.people.get(name) or self.strangers.person(name, tenant or "default")

    def roles_of(self, principal: Principal) -> frozenset[str]:
        """What the person behind a caller may approve as, whoever acts for them; policies read it."""
        told = self._told.roles(principal.tenant, principal.user)
        if told is not None:
            return told
        person = self.people.get(principal.user)
        return person.roles if person is not None and person.tenant == principal.tenant else frozenset()

    def only_tenant(self, tenant: str) -> bool:
        """Whether nobody can be in another one."""
        return not self.strangers.tenants and self.tenants() <= {tenant}

    def tenants(self) -> frozenset[str]:
        """Those of the people who are listed, and of those who came."""
        return frozenset(p.tenant for p in self.people.values()) | self._told.tenants()

    # --- by name, on this machine ------------------------------------------------------

    def _is_by_name(self, headers: Mapping[str, str]) -> bool:
        """Whether names are enough: in local mode, where no credential is shown that is known here."""
        return self.mode == "local" and (
            "authorization" not in headers or self._reader(bearer(headers)) is None
        )

    def _by_name(self, headers: Mapping[str, str]) -> Standing:
        person = self._person(headers.get(USER))
        agent = headers.get(AGENT)
        if agent is not None and not _NAME.fullmatch(agent):
            raise Unauthenticated(
                "header 'X-Holdfast-Agent' must be 1 to 128 printable characters without spaces"
            )
        return self._standing(person, agent or LOCAL_AGENT)

    # --- by credential ----------------------------------------------------------------

    def _by_credential(self, presented: str) -> Known:
        """From memory, by a hash: nothing here keeps a credential."""
        mark, proven = sha256(presented.encode()).digest(), self._proven
        known = proven.get(mark)
        if known is None or self._now() >= known.standing.until:
            known = self._quietly(presented)
            if len(proven) >= MOST_KNOWN:
                proven.clear()
            proven[mark] = known
        if self.taken_back and not self.taken_back.isdisjoint(known.bare.revocable):
            proven.pop(mark, None)
            raise self._refusal(presented, TAKEN_BACK)
        return known

    def _quietly(self, presented: str) -> Known:
        try:
            return self._prove(presented)
        except Unauthenticated as error:
            raise self._refusal(presented, str(error)) from None

    def _shown(self, presented: str) -> Known:
        """At the terminal, where who is refused may know why."""
        try:
            return self._prove(presented)
        except Unauthenticated as error:
            if self.mode != "jwt":
                if self._reader(presented) is None:
                    raise Unauthenticated(
                        "what HOLDFAST_API_KEY holds is no key; a key is 'hf_<id>_<secret>', all of it"
                    ) from None
                raise
            raise Unauthenticated(f"your credential is not accepted: {error}; get a new one") from None

    def _refusal(self, presented: str, why: str) -> Unauthenticated:
        """One answer for whatever is wrong with a token: the log says what, and never the token."""
        reader = self._reader(presented)
        if self.mode == "api_key" and (reader is None or reader.tells):
            return Unauthenticated(why)
        if not presented:
            return Unauthenticated("this needs a credential; send 'Authorization: Bearer <token>'")
        log.info("a credential is refused: %s", why)
        return Unauthenticated("this credential is not accepted; get a new one and try again")

    def _prove(self, presented: str) -> Known:
        reader = self._reader(presented)
        if reader is None:
            if self.mode == "jwt":
                raise Unauthenticated("it is no token and no key")
            raise Unauthenticated(
                "send 'Authorization: Bearer hf_<id>_<secret>'; 'holdfast keys create' makes a key"
            )
        claim = reader.prove(presented)
        person = self._claimed(claim)
        if claim.told:
            self._told.remember(person)
        narrow = self._narrow(person, claim)
        bare, until = narrow.principal, narrow.until
        held = bare if claim.agent else in_person(person, bare)
        return Known(Standing(held, until), person, bare, claim)

    def _reader(self, presented: str) -> Reader | None:
        if not presented or len(presented) > LONGEST:
            return None
        return next((reader for reader in self.readers if reader.reads(presented)), None)

    def _claimed(self, claim: Claim) -> Person:
        person = self.people.get(claim.user, claim.person)
        if person is None:
            person = self._person(claim.user)
        if claim.tenant not in (None, person.tenant):
            raise Unauthenticated(f"{person.name!r} belongs to another tenant than {claim.tenant!r}")
        if not claim.in_person and person.secret is None:  # nothing shows that it is the person
            return replace(person, roles=frozenset())
        return replace(person, roles=person.roles | claim.roles) if claim.roles else person

    # --- what somebody may do ---------------------------------------------------------

    def _standing(self, person: Person, agent: str) -> Standing:
        """Of somebody who needs no credential, or has shown it before."""
        name, remembered = (person.name, agent), self._known
        known = remembered.get(name)
        if known is None or self._now() >= known.until:
            known = self._narrow(person, Claim(user=person.name, agent=agent))
            if len(remembered) >= MOST_KNOWN:  # agents name themselves in local mode
                remembered.clear()
            remembered[name] = known
        return known

    def _narrow(self, person: Person, claim: Claim) -> Standing:
        agent = self.agents.get(claim.agent or IN_PERSON)
        given = self.given.get((person.tenant, person.name), ())
        return standing(person, claim, agent, given, self._now())

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
