"""Keys, grants and revocations. A claim looks at what was revoked in its own transaction, as at the halts.

Every change has a number, one after the other over all three tables: who knows the last one needs only what
came after it. Changes are made behind the brake, so that the numbers become visible in their order.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import orjson

from holdfast.model.access import GRANT, KEY, AccessGrant, AccessKey, Changes, Revocation, qualified
from holdfast.model.approval import Approval
from holdfast.ports import Clock
from holdfast.stores import given
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.sql.engine import ACCESS, Reader, Row, Transaction, Values, Writer

_KEY = "tenant, id, hash, person, agent, scopes, in_person, made_by, at, expires_at, ended_at, ended_by"
_GRANT = (
    "tenant, id, person, agent, scope, granted_by, note, at, expires_at, life_s, renewed, approval_id,"
    " ended_at, ended_by"
)
LAST = (
    "SELECT max(changed) FROM (SELECT max(changed) AS changed FROM access_key"
    " UNION ALL SELECT max(changed) FROM access_grant UNION ALL SELECT max(changed) FROM revocation) AS last"
)
KEYS = f"SELECT {_KEY} FROM access_key WHERE tenant = ? ORDER BY at DESC, id"  # noqa: S608
GRANTS = f"SELECT {_GRANT} FROM access_grant WHERE tenant = ? ORDER BY at DESC, id"  # noqa: S608
REVOCATIONS = "SELECT name, revoked_by, note, at, until FROM revocation WHERE tenant = '*' ORDER BY at, name"
KEYS_SINCE = f"SELECT {_KEY} FROM access_key WHERE changed > ?"  # noqa: S608
GRANTS_SINCE = f"SELECT {_GRANT} FROM access_grant WHERE changed > ?"  # noqa: S608
REVOKED_SINCE = "SELECT name FROM revocation WHERE changed > ?"
# Whoever begins needs nothing that is over.
KEYS_NOW = KEYS_SINCE + " AND ended_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"
GRANTS_NOW = GRANTS_SINCE + " AND ended_at IS NULL AND expires_at > ?"

_ADD_KEY = f"INSERT INTO access_key ({_KEY}, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, ?)"  # noqa: S608
_ADD_GRANT = (
    f"INSERT INTO access_grant ({_GRANT}, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, ?)"  # noqa: S608
)
_RENEW = (
    "UPDATE access_grant SET expires_at = ?, renewed = ?, changed = ?"
    " WHERE tenant = ? AND id = ? AND expires_at = ? AND renewed = 1 AND ended_at IS NULL"
)
_BEGIN = (
    "UPDATE access_grant SET at = ?, expires_at = ?, granted_by = ?, approval_id = ?, changed = ?"
    " WHERE tenant = ? AND id = ? AND expires_at = 0 AND ended_at IS NULL"
)
_FIND = f"SELECT {_GRANT} FROM access_grant WHERE tenant = ? AND id = ?"  # noqa: S608
_REVOKE = (
    "INSERT INTO revocation (tenant, name, revoked_by, note, at, until, changed)"
    " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, name) DO NOTHING"
)
_END = {
    KEY: "UPDATE access_key SET ended_at = ?, ended_by = ?, changed = ? WHERE tenant = ? AND id = ?",
    GRANT: "UPDATE access_grant SET ended_at = ?, ended_by = ?, changed = ? WHERE tenant = ? AND id = ?",
}
_PAST = (
    "DELETE FROM revocation WHERE until IS NOT NULL AND until <= ?"
    " AND changed < (SELECT max(changed) FROM revocation)"
)


class SqlAccess:
    def __init__(self, writer: Writer, reader: Reader, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def changed(self) -> int:
        [(last,)] = await self._read(LAST)
        return int(last or 0)

    async def since(self, mark: int) -> Changes:
        last = await self.changed()  # before the rest: what is newer is read again the next time
        if mark:
            keys, grants = await self._read(KEYS_SINCE, (mark,)), await self._read(GRANTS_SINCE, (mark,))
        else:
            begun = (0, self._clock.now())
            keys, grants = await self._read(KEYS_NOW, begun), await self._read(GRANTS_NOW, begun)
        revoked = await self._read(REVOKED_SINCE, (mark,))
        return Changes(
            last,
            tuple(read_key(row) for row in keys),
            tuple(read_grant(row) for row in grants),
            frozenset(name for (name,) in revoked),
        )

    async def keys(self, tenant: str) -> Sequence[AccessKey]:
        return [read_key(row) for row in await self._read(KEYS, (tenant,))]

    async def grants(self, tenant: str) -> Sequence[AccessGrant]:
        return [read_grant(row) for row in await self._read(GRANTS, (tenant,))]

    async def revocations(self, tenant: str) -> Sequence[Revocation]:
        found = [(row[0].partition("/"), row[1:]) for row in await self._read(REVOCATIONS)]
        return [
            Revocation(tenant, name, by, note, at, inf if until is None else until)
            for (owner, _, name), (by, note, at, until) in found
            if owner == tenant
        ]

    async def add_key(self, key: AccessKey, *, first: bool = False) -> bool:
        return await self._writer.submit(EVERYWHERE, True, _add_key, key, first)

    async def add_grant(self, grant: AccessGrant) -> None:
        await self._writer.submit(EVERYWHERE, True, _add_grant, grant)

    async def renew(self, grant: AccessGrant, until: float | None, why: str = "") -> bool:
        return await self._writer.submit(EVERYWHERE, True, _renew, grant, until, why, self._clock.now())

    async def revoke(self, name: str, tenant: str, by: str, note: str, until: float = inf) -> bool:
        said = Revocation(tenant, name, by, note, self._clock.now(), until)
        return await self._writer.submit(EVERYWHERE, True, _revoke, said)

    async def forget(self) -> int:
        return await self._writer.submit(EVERYWHERE, False, _forget, self._clock.now())

    async def _read(self, statement: str, values: Values = ()) -> list[Row]:
        return await self._reader.all(EVERYWHERE, statement, values)


async def change(transaction: Transaction) -> int:
    """The number of a change, which is the next one to be seen."""
    await transaction.brake()
    [(last,)] = await transaction.all(LAST)
    transaction.ring(ACCESS)
    return int(last or 0) + 1


async def _add_key(transaction: Transaction, key: AccessKey, first: bool) -> bool:
    number = await change(transaction)
    if await transaction.one("SELECT 1 FROM access_key WHERE id = ? OR ? = 1 LIMIT 1", (key.id, int(first))):
        return False
    ends = None if key.expires_at == inf else key.expires_at
    scopes = None if key.scopes is None else orjson.dumps(key.scopes).decode()
    whose = (key.tenant, key.id, key.hash, key.person, key.agent, scopes, int(key.in_person))
    await transaction.run(_ADD_KEY, (*whose, key.made_by, key.at, ends, number))
    transaction.record(key.tenant, "", given.ACCESS, key.at, given.key_made(key))
    return True


async def _add_grant(transaction: Transaction, grant: AccessGrant) -> None:
    number = await change(transaction)
    whose = (grant.tenant, grant.id, grant.person, grant.agent, grant.scope, grant.granted_by, grant.note)
    life = (grant.at, grant.expires_at, grant.life_s, int(grant.renewed), grant.approval_id)
    await transaction.run(_ADD_GRANT, (*whose, *life, number))
    transaction.record(grant.tenant, "", given.ACCESS, grant.at, given.grant_made(grant))


async def _renew(
    transaction: Transaction, grant: AccessGrant, until: float | None, why: str, now: float
) -> bool:
    number = await change(transaction)
    ends = grant.expires_at if until is None else until
    how = (ends, int(until is not None), number)
    if await transaction.run(_RENEW, (*how, grant.tenant, grant.id, grant.expires_at)) == 0:
        return False
    body = given.grant_renewed(replace(grant, expires_at=ends), now, why)
    transaction.record(grant.tenant, "", given.ACCESS, now, body)
    return True


async def begin(transaction: Transaction, approval: Approval, by: str, now: float) -> None:
    """A grant that waited begins with the last yes; its id is the key of what was approved."""
    tenant, id = approval.ref.tenant, approval.ref.key
    number = await change(transaction)
    row = await transaction.one(_FIND, (tenant, id))
    if row is None:
        return
    grant = read_grant(row)
    begun = replace(grant, at=now, expires_at=now + grant.life_s, granted_by=by, approval_id=approval.id)
    how = (now, begun.expires_at, by, approval.id, number)
    if await transaction.run(_BEGIN, (*how, tenant, id)) == 1:
        transaction.record(tenant, approval.call_id, given.ACCESS, now, given.grant_approved(begun, now))


async def _revoke(transaction: Transaction, said: Revocation) -> bool:
    number = await change(transaction)
    until = None if said.until == inf else said.until
    row = (EVERYWHERE, qualified(said.tenant, said.name), said.by, said.note, said.at, until, number)
    if await transaction.run(_REVOKE, row) == 0:
        return False
    kind, _, id = said.name.partition(":")
    if kind in _END:
        await transaction.run(_END[kind], (said.at, said.by, number, said.tenant, id))
    body = given.revoked(said.name, said.by, said.note, said.at)
    transaction.record(said.tenant, "", given.ACCESS, said.at, body)
    return True


async def _forget(transaction: Transaction, now: float) -> int:
    return await transaction.run(_PAST, (now,))


def read_key(row: Row) -> AccessKey:
    tenant, id, hash, person, agent, scopes, in_person, made_by, at, expires_at, ended_at, ended_by = row
    return AccessKey(
        tenant=tenant,
        id=id,
        hash=hash,
        person=person,
        agent=agent,
        scopes=None if scopes is None else tuple(orjson.loads(scopes)),
        in_person=bool(in_person),
        made_by=made_by,
        at=at,
        expires_at=inf if expires_at is None else expires_at,
        ended_at=ended_at,
        ended_by=ended_by,
    )


def read_grant(row: Row) -> AccessGrant:
    names = _GRANT.split(", ")
    said: dict[str, Any] = dict(zip(names, row, strict=True))
    return AccessGrant(**said | {"renewed": bool(said["renewed"])})
