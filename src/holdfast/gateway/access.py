"""What does this process know of keys, grants and revocations, and how does it keep up with the others?

A claim looks at what was revoked in its own transaction, whatever is known here. This is for the doors: who
may come in, and with which scopes. It is looked at again when the store rings, once a second, after every
change that was made here, and when somebody shows a key that is not known. In a task of its own: it does not
wait for other housekeeping.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from math import inf

from holdfast.gateway.news import News
from holdfast.gateway.operators import operates
from holdfast.gateway.rounds import Rounds
from holdfast.identity import Grant, Identity, Key
from holdfast.identity.api_keys import ApiKeys
from holdfast.model.access import KINDS, AccessGrant, AccessKey, Changes, qualified
from holdfast.model.call import Principal
from holdfast.model.errors import Forbidden, NotFound
from holdfast.ports import Access as Kept
from holdfast.ports import Clock

log = logging.getLogger(__name__)

FOLLOW_S = 1.0
"""Between two looks at what other processes changed, where the store does not ring."""


Handed = Callable[[Principal, str], Awaitable[bool]]
"""Whether somebody handed on this token."""


class Access:
    def __init__(self, kept: Kept, identity: Identity, clock: Clock) -> None:
        self.kept = kept
        self._identity = identity
        self._clock = clock
        self._configured = frozenset(identity.keys)
        self._mark: int | None = None
        self._grants: dict[tuple[str, str], AccessGrant] = {}
        self._turn = asyncio.Lock()
        self._begun = self._done = 0
        self.news = News()
        self.handed: Handed | None = None
        for reader in identity.readers:
            if isinstance(reader, ApiKeys):
                reader.look = self.follow

    async def follow(self) -> bool:
        """Catch up with the store; whether there was something new. Renews what is due on the way."""
        came = self._begun
        async with self._turn:  # what was read earlier must not be taken for newer
            if self._done > came:  # one look is enough for all who waited: strangers can make anybody look
                return True
            self._begun += 1
            news = await self._catch_up()
            if await self._renewed():
                await self._catch_up()
            self._done = self._begun
            return news

    async def keep_following(self) -> None:
        """Until cancelled."""
        rounds = Rounds(
            self.follow,
            waits="keys, grants and revocations are as they were",
            failed="keys, grants and revocations could not be looked at",
        )
        while True:
            await self.news.wait(self._clock, FOLLOW_S)
            await rounds.next()

    async def forget(self) -> None:
        """Drop what is over, here too."""
        await self.kept.forget()
        async with self._turn:
            self._identity.taken_back = (await self.kept.since(0)).revoked

    async def revoke(self, by: Principal, name: str, note: str = "", until: float = inf) -> None:
        """Take back a token; keys and grants are taken back where they are known, which ends up here too."""
        kind, _, id = name.partition(":")
        if kind not in KINDS or not id:
            raise NotFound(f"{name!r} names nothing that can be revoked; write key:ID, grant:ID or token:JTI")
        own = name in by.rests_on or (self.handed is not None and await self.handed(by, id))
        if not own and not operates(by, self._identity):
            raise Forbidden(f"{by.user!r} may not revoke {name!r}; this needs the role 'operator'")
        await self.take_back(by, name, note, until)

    async def take_back(self, by: Principal, name: str, note: str, until: float) -> None:
        """For those who have seen that `by` may."""
        if not await self.kept.revoke(name, by.tenant, by.user, note, until):
            raise NotFound(f"{name!r} was revoked before")
        await self.follow()

    def may_still_give(self, grant: AccessGrant) -> bool:
        """Whether who gave it could give it today."""
        people = self._identity
        givers = people.holders(grant.tenant, "operator") or people.holders(grant.tenant, "user")
        return grant.granted_by in givers

    # --- following ------------------------------------------------------------------------

    async def _catch_up(self) -> bool:
        if self._mark is not None and await self.kept.changed() == self._mark:
            return False
        changes = await self.kept.since(self._mark or 0)
        self._take(changes)
        self._mark = changes.mark
        return True

    def _take(self, changes: Changes) -> None:
        """All at once: nobody is let in by half of it."""
        now, identity = self._clock.now(), self._identity
        if changes.revoked:
            identity.taken_back = identity.taken_back | changes.revoked
        for key in changes.keys:
            if key.id in self._configured:
                continue
            if key.holds(now):
                identity.keys[key.id] = _key(key)
            else:
                identity.keys.pop(key.id, None)
        for grant in changes.grants:
            self._grants[grant.tenant, grant.id] = grant
        gone = identity.taken_back
        self._grants = {
            (tenant, id): grant
            for (tenant, id), grant in self._grants.items()
            if grant.holds(now) and qualified(tenant, grant.name) not in gone
        }
        identity.given = _given(self._grants)
        identity.forget()

    async def _renewed(self) -> bool:
        """Let those last on that are to; each at most once, however many processes try."""
        now, tried = self._clock.now(), False
        for grant in [one for one in self._grants.values() if one.renewed and _grant(one).due(now)]:
            if self.may_still_give(grant):
                await self.kept.renew(grant, now + grant.life_s)
            else:
                why = f"{grant.granted_by!r} may no longer give it"
                log.warning("grant %s of %s is not renewed: %s", grant.id, grant.person, why)
                await self.kept.renew(grant, None, why)
            tried = True
        return tried


def _given(grants: Mapping[tuple[str, str], AccessGrant]) -> dict[tuple[str, str], tuple[Grant, ...]]:
    held: dict[tuple[str, str], list[Grant]] = {}
    for grant in grants.values():
        held.setdefault((grant.tenant, grant.person), []).append(_grant(grant))
    return {whose: tuple(of) for whose, of in held.items()}


def _grant(grant: AccessGrant) -> Grant:
    return Grant(grant.scope, grant.granted_by, grant.expires_at, grant.id, grant.agent)


def _key(key: AccessKey) -> Key:
    return Key(
        id=key.id,
        hash=key.hash,
        user=key.person,
        agent=key.agent,
        scopes=None if key.scopes is None else frozenset(key.scopes),
        expires_at=key.expires_at,
        tenant=key.tenant,
        in_person=key.in_person,
    )
