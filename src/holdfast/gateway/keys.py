"""Who makes API keys, and who takes them back? AUT-1.

Operators do, for the people of their tenant. A key only ever narrows what its person holds. One that somebody
else made for a person does not give that person's roles: two people stay two people.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from holdfast.gateway.access import Access
from holdfast.gateway.operators import operates
from holdfast.identity import Identity, Person, mint
from holdfast.identity.standing import IN_PERSON, LOCAL_AGENT
from holdfast.model import scopes as patterns
from holdfast.model.access import KEY, TOKEN, AccessKey
from holdfast.model.call import Principal
from holdfast.model.errors import Forbidden, HoldfastError, NotFound
from holdfast.model.scopes import covers
from holdfast.ports import Clock

CONFIG = "config"
"""Who made the keys of the configuration."""


class Keys:
    def __init__(self, access: Access, identity: Identity, clock: Clock) -> None:
        self._access = access
        self._identity = identity
        self._clock = clock
        self._configured = frozenset(identity.keys)

    async def create(
        self,
        by: Principal,
        user: str,
        *,
        agent: str | None = None,
        scopes: Sequence[str] | None = None,
        expires_at: float = inf,
    ) -> tuple[str, AccessKey]:
        """A new key and the text to hand over, which is kept nowhere; it works at once in every process."""
        if not operates(by, self._identity):
            raise Forbidden(f"{by.user!r} is no operator here; making keys needs the role 'operator'")
        person = self._person(user, agent)
        if person.tenant != by.tenant:
            raise NotFound(f"there is no person {user!r} here; add them under 'auth.people'")
        if user == by.user:
            _no_wider(by, person, scopes, self._clock.now())
        return await self._made(person, by.user, user == by.user, agent, scopes, expires_at)

    async def create_first(
        self,
        by: str,
        user: str,
        *,
        agent: str | None = None,
        scopes: Sequence[str] | None = None,
        expires_at: float = inf,
    ) -> tuple[str, AccessKey]:
        """The first key of all, by whoever can read the store at the terminal: nobody can show one yet."""
        if self._configured:
            raise Forbidden("there are keys in the configuration; set HOLDFAST_API_KEY to one of an operator")
        person = self._person(user, agent)
        return await self._made(person, by, True, agent, scopes, expires_at, first=True)

    async def list(self, by: Principal) -> Sequence[AccessKey]:
        """Newest first, those of the configuration last: everybody's for an operator, else one's own."""
        stored = await self._access.kept.keys(by.tenant)
        ended = {said.name: said for said in await self._access.kept.revocations(by.tenant)}
        found = [*stored, *(self._of_config(id) for id in sorted(self._configured))]
        seen = []
        for key in found:
            if key.tenant == by.tenant and (key.person == by.user or operates(by, self._identity)):
                said = ended.get(key.name)
                seen.append(key if said is None else replace(key, ended_at=said.at, ended_by=said.by))
        return seen

    async def revoke(self, by: Principal, name: str, note: str = "") -> str:
        """Take back a key by its id, or a token as `token:JTI`, at once in every process; what that was."""
        kind, _, id = name.rpartition(":")
        if kind == TOKEN:
            await self._access.revoke(by, name, note)
            return name
        found = next((key for key in await self._every(by.tenant) if key.id == id), None)
        if found is None or kind not in ("", KEY) or not self._may_end(by, found):
            raise NotFound(
                f"there is no key {id!r} here that is yours to revoke; 'holdfast keys list' shows them"
            )
        await self._access.take_back(by, found.name, note, found.expires_at)
        return found.name

    # --- parts ----------------------------------------------------------------------------

    async def _made(
        self,
        person: Person,
        by: str,
        in_person: bool,
        agent: str | None,
        scopes: Sequence[str] | None,
        expires_at: float,
        *,
        first: bool = False,
    ) -> tuple[str, AccessKey]:
        now = self._clock.now()
        if expires_at <= now:
            raise HoldfastError("this key would have ended before it was made; give a later --expires")
        if wrong := next((said for scope in scopes or () if (said := patterns.check(scope))), None):
            raise HoldfastError(wrong)
        plain, entry = mint(person.name, agent)
        key = AccessKey(
            tenant=person.tenant,
            id=entry["id"],
            hash=entry["hash"],
            person=person.name,
            agent=agent,
            scopes=None if scopes is None else tuple(scopes),
            in_person=in_person and agent is None,
            made_by=by,
            at=now,
            expires_at=expires_at,
        )
        if not await self._access.kept.add_key(key, first=first):
            raise Forbidden("there are keys already; set HOLDFAST_API_KEY to one of an operator")
        await self._access.follow()
        return plain, key

    def _person(self, user: str, agent: str | None) -> Person:
        person = self._identity.people.get(user)
        if person is None:
            raise NotFound(f"there is no person {user!r} here; add them under 'auth.people'")
        known = None if agent is None else self._identity.agents.get(agent)
        if agent is not None and (known is None or known.user not in (None, user)):
            advice = f"add it under 'auth.agents' as '{agent}: {{user: {user}}}'"
            raise NotFound(f"{user!r} has no agent {agent!r} here; {advice}")
        return person

    def _may_end(self, by: Principal, key: AccessKey) -> bool:
        own = by.user == key.person and (by.agent in (IN_PERSON, LOCAL_AGENT) or key.name in by.rests_on)
        return own or operates(by, self._identity)

    async def _every(self, tenant: str) -> Sequence[AccessKey]:
        configured = [self._of_config(id) for id in self._configured]
        return [*await self._access.kept.keys(tenant), *(key for key in configured if key.tenant == tenant)]

    def _of_config(self, id: str) -> AccessKey:
        key = self._identity.keys[id]
        person = self._identity.people.get(key.user)
        return AccessKey(
            tenant="default" if person is None else person.tenant,
            id=id,
            hash="",
            person=key.user,
            agent=key.agent,
            scopes=None if key.scopes is None else tuple(sorted(key.scopes)),
            in_person=key.agent is None,
            made_by=CONFIG,
            at=0.0,
            expires_at=key.expires_at,
        )


def _no_wider(by: Principal, person: Person, scopes: Sequence[str] | None, now: float) -> None:
    """Whoever holds a narrowed credential does not make themselves a wider one; AUT-5."""
    wanted = [grant.scope for grant in person.grants if grant.holds(now)] if scopes is None else scopes
    wider = [scope for scope in wanted if not covers(by.scopes, scope)]
    if wider and by.rests_on:
        listed = ", ".join(map(repr, wider))
        raise Forbidden(f"your own credential does not hold {listed}; give --scope of what it holds")
