"""How does somebody hand on what they hold, for an agent or for one call?

`gateway.delegation`. What is given is made by `identity.delegation`; here it is found out from whom, written
down before anybody has it, and signed.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

import orjson

from holdfast.gateway.access import Access
from holdfast.gateway.auditing import Auditing
from holdfast.identity import Claim, Identity, Unauthenticated
from holdfast.identity.api_keys import ApiKeys
from holdfast.identity.delegation import Undelegable, Wish, delegate, in_person
from holdfast.identity.tokens import KEY, Tokens
from holdfast.model.bounds import Bounds
from holdfast.model.call import Principal
from holdfast.model.errors import NotFound
from holdfast.model.moment import iso_cut
from holdfast.ports import Clock, Ids, Ingress, Ports, Secrets

ACT = "delegate"
"""What it is called in the log."""


@dataclass(frozen=True, slots=True)
class Subject:
    """From whom something is handed on, and what they have shown."""

    principal: Principal
    presented: str | None = None
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class Issued:
    token: str
    jti: str
    given: Principal
    life_s: int


class Delegation:
    def __init__(
        self,
        identity: Identity,
        tokens: Tokens,
        access: Access,
        auditing: Auditing,
        clock: Clock,
        ids: Ids,
        ingress: Ingress,
    ) -> None:
        self.tokens = tokens
        self._access = access
        self._identity, self._auditing, self._clock, self._ids = identity, auditing, clock, ids
        self._ingress = ingress

    async def subject(self, presented: str) -> Subject:
        """Whose credential this is; raises Unauthenticated."""
        try:
            found = self._identity.holder(presented)
        except Unauthenticated:
            if not await self._identity.learn({"authorization": f"Bearer {presented}"}):
                raise
            found = self._identity.holder(presented)
        return Subject(found.principal, presented, found.claim)

    def admit(self, by: Principal) -> int | None:
        """Milliseconds to wait, or None: every token is a record, so they are counted as proposals are."""
        return self._ingress.admit(by)

    async def issue(
        self, by: Principal, subject: Subject, wish: Wish, actor: Subject | None = None
    ) -> Issued:
        """A token of no more than `subject` holds, on record before anybody has it; raises Undelegable."""
        parent = _while_shown(subject)
        if actor is not None:
            wish = replace(wish, actor=_while_shown(actor))
        jti = self._ids.nonce()
        given = delegate(parent, wish, jti=jti, now=self._clock.now())
        self._check_agent(given)
        lineage = self.tokens.lineage(parent, subject.presented, subject.claim)
        if wish.actor is not None:
            keys = tuple(name for name in wish.actor.rests_on if name.startswith(KEY))
            lineage = lineage._replace(then=(*lineage.then, *keys))
        token = self.tokens.issue(given, lineage)
        given = self._as_taken(given, token)
        name = given.rests_on[-1].partition(":")[2]
        await self._auditing.note(given.tenant, ACT, by.user, about=name, **told(given))
        return Issued(token, name, given, int(given.bounds.until - self._clock.now()))

    async def revoke(self, by: Principal, shown: Subject) -> None:
        """End a delegation and what was handed on from it, in every process; nothing where it is none."""
        if shown.presented is None or shown.claim is None or not self.tokens.reads(shown.presented):
            return
        with suppress(NotFound):  # revoked before
            await self._access.take_back(by, shown.claim.rests_on[-1], "by who had it", shown.claim.until)

    async def handed(self, by: Principal, jti: str) -> bool:
        """Whether the log says that a delegation came from `by`, in person or by a credential above it."""
        for entry in await self._auditing.of_call(by.tenant, jti):
            said = orjson.loads(entry.record.body or "{}")
            if said.get("operation") != ACT or said.get("delegation") != jti:
                continue
            above = tuple(said["rests_on"])
            return said["user"] == by.user and (
                in_person(by) or bool(by.rests_on and above[: len(by.rests_on)] == by.rests_on)
            )
        return False

    def _as_taken(self, given: Principal, token: str) -> Principal:
        """With what the configuration leaves of it for this agent: that is told, and written down."""
        try:
            taken = self._identity.holder(token).principal
        except Unauthenticated:
            raise Undelegable("nobody could use this: what it rests on counts no more") from None
        return replace(given, scopes=taken.scopes, trust=taken.trust)

    def _check_agent(self, given: Principal) -> None:
        """An agent of somebody else does not become this person's."""
        agent = self._identity.agents.get(given.agent)
        if agent is not None and agent.user not in (None, given.user):
            raise Undelegable(f"agent {given.agent!r} does not act for {given.user!r}")


def build(
    identity: Identity, secrets: Secrets, base_url: str, access: Access, auditing: Auditing, ports: Ports
) -> Delegation:
    """Its tokens are credentials from now on, in every mode."""
    strangers = replace(identity.strangers, by_group=frozenset())  # what groups give is in the token
    tokens = Tokens(
        secrets,
        base_url.rstrip("/"),
        ports.clock.now,
        keys=identity.keys,
        person_of=lambda name, tenant: strangers.person(name, tenant or "default"),
        groups=lambda: identity.strangers.by_group,
    )
    keys = next((reader for reader in identity.readers if isinstance(reader, ApiKeys)), None)
    if keys is not None:
        tokens.look = partial(_look, keys)
    identity.readers.append(tokens)
    made = Delegation(identity, tokens, access, auditing, ports.clock, ports.ids, ports.ingress)
    access.handed = made.handed
    return made


async def _look(keys: ApiKeys) -> bool:
    return keys.look is not None and await keys.look()


def _while_shown(subject: Subject) -> Principal:
    """With an end: what is handed on ends with the credential it was handed on from."""
    until = inf if subject.claim is None else subject.claim.until
    principal = subject.principal
    return replace(principal, bounds=principal.bounds.meet(Bounds(until=until)))


def told(given: Principal) -> dict[str, Any]:
    """What a delegation gives, for the record and whoever asks; never the token."""
    bounds = given.bounds
    said: Mapping[str, Any] = {
        "delegation": given.rests_on[-1].partition(":")[2],
        "user": given.user,
        "agent": given.agent,
        "chain": list(given.act),
        "scopes": sorted(given.scopes),
        "tools": None if bounds.tools is None else sorted(bounds.tools),
        "resources": None if bounds.resources is None else sorted(bounds.resources),
        "until": iso_cut(bounds.until),
        "rests_on": list(given.rests_on[:-1]),
    }
    return dict(said)
