"""Keys, grants and revocations, in memory."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from holdfast.model.access import GRANT, KEY, AccessGrant, AccessKey, Changes, Revocation, qualified
from holdfast.model.approval import Approval
from holdfast.ports import Clock
from holdfast.stores import given
from holdfast.stores.memory.shelf import Shelf


class MemoryAccess:
    def __init__(self, shelf: Shelf, clock: Clock) -> None:
        self._shelf = shelf
        self._given = shelf.access
        self._clock = clock

    async def changed(self) -> int:
        return self._given.mark

    async def since(self, mark: int) -> Changes:
        now, whole = self._clock.now(), mark == 0
        return Changes(
            self._given.mark,
            tuple(k for n, k in self._given.keys.values() if n > mark and (not whole or k.holds(now))),
            tuple(g for n, g in self._given.grants.values() if n > mark and (not whole or g.holds(now))),
            frozenset(name for name, (n, _) in self._given.revoked.items() if n > mark),
        )

    async def keys(self, tenant: str) -> Sequence[AccessKey]:
        found = [key for _, key in self._given.keys.values() if key.tenant == tenant]
        return sorted(found, key=lambda key: (-key.at, key.id))

    async def grants(self, tenant: str) -> Sequence[AccessGrant]:
        found = [grant for _, grant in self._given.grants.values() if grant.tenant == tenant]
        return sorted(found, key=lambda grant: (-grant.at, grant.id))

    async def revocations(self, tenant: str) -> Sequence[Revocation]:
        found = [said for _, said in self._given.revoked.values() if said.tenant == tenant]
        return sorted(found, key=lambda said: (said.at, said.name))

    async def add_key(self, key: AccessKey, *, first: bool = False) -> bool:
        if key.id in self._given.keys or (first and self._given.keys):
            return False
        self._given.keys[key.id] = (self._given.next(), key)
        self._shelf.record(key.tenant, "", given.ACCESS, key.at, given.key_made(key))
        return True

    async def add_grant(self, grant: AccessGrant) -> None:
        self._given.grants[grant.tenant, grant.id] = (self._given.next(), grant)
        self._shelf.record(grant.tenant, "", given.ACCESS, grant.at, given.grant_made(grant))

    async def renew(self, grant: AccessGrant, until: float | None, why: str = "") -> bool:
        name = (grant.tenant, grant.id)
        found = self._given.grants[name][1]
        if not found.renewed or found.ended_at is not None or found.expires_at != grant.expires_at:
            return False
        ends = grant.expires_at if until is None else until
        self._given.grants[name] = (
            self._given.next(),
            replace(found, expires_at=ends, renewed=until is not None),
        )
        now = self._clock.now()
        body = given.grant_renewed(replace(grant, expires_at=ends), now, why)
        self._shelf.record(grant.tenant, "", given.ACCESS, now, body)
        return True

    async def revoke(self, name: str, tenant: str, by: str, note: str, until: float = inf) -> bool:
        if qualified(tenant, name) in self._given.revoked:
            return False
        now, number = self._clock.now(), self._given.next()
        said = Revocation(tenant, name, by, note, now, until)
        self._given.revoked[qualified(tenant, name)] = (number, said)
        self._end(said, number)
        self._shelf.record(tenant, "", given.ACCESS, now, given.revoked(name, by, note, now))
        return True

    async def forget(self) -> int:
        now, last = self._clock.now(), max((n for n, _ in self._given.revoked.values()), default=0)
        over = [name for name, (n, said) in self._given.revoked.items() if said.until <= now and n < last]
        for name in over:
            del self._given.revoked[name]
        return len(over)

    def _end(self, said: Revocation, number: int) -> None:
        kind, _, id = said.name.partition(":")
        if kind == KEY and id in self._given.keys and self._given.keys[id][1].tenant == said.tenant:
            key = self._given.keys[id][1]
            self._given.keys[id] = (number, replace(key, ended_at=said.at, ended_by=said.by))
        if kind == GRANT and (said.tenant, id) in self._given.grants:
            grant = self._given.grants[said.tenant, id][1]
            ended = replace(grant, ended_at=said.at, ended_by=said.by)
            self._given.grants[said.tenant, id] = (number, ended)


def begin(shelf: Shelf, approval: Approval, by: str, now: float) -> None:
    """A grant that waited begins with the last yes; its id is the key of what was approved."""
    name = (approval.ref.tenant, approval.ref.key)
    if name not in shelf.access.grants or not shelf.access.grants[name][1].waits:
        return
    grant = shelf.access.grants[name][1]
    begun = replace(grant, at=now, expires_at=now + grant.life_s, granted_by=by, approval_id=approval.id)
    shelf.access.grants[name] = (shelf.access.next(), begun)
    shelf.record(approval.ref.tenant, approval.call_id, given.ACCESS, now, given.grant_approved(begun, now))
