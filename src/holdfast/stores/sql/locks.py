"""Is anybody changing the same? Locks are taken in the transaction of the claim, all or none; EXE-7.

A row stands for one thing, or for all of a kind. Rows of one thing exclude each other by their key alone. Who
wants a whole kind must not overlook anybody who is just taking a part of it: the two meet at the kind's turn,
which parts share and a whole has alone.

What was looked at before the claim may have been changed since, by somebody who was done before the claim
came: whoever lets go of a thing leaves its name there.
"""

from holdfast.model.stage import Lock, Locked
from holdfast.ports import Conflicting
from holdfast.stores.denial import conflicting
from holdfast.stores.sql.engine import Fetch, Transaction

_TAKE = """
INSERT INTO effect_lock (tenant, resource, kind, whole, call_id, nonce, at) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, resource) DO NOTHING
"""
_TAKEN_BY = "SELECT call_id, nonce FROM effect_lock WHERE tenant = ? AND resource = ?"
_WHOLE_BY = """
SELECT call_id, nonce FROM effect_lock WHERE tenant = ? AND kind = ? AND call_id <> ? AND whole = 1 LIMIT 1
"""
_ANY_BY = "SELECT call_id, nonce FROM effect_lock WHERE tenant = ? AND kind = ? AND call_id <> ? LIMIT 1"
_START_OVER = "DELETE FROM effect_lock WHERE tenant = ? AND call_id = ?"
_RELEASE = "DELETE FROM effect_lock WHERE tenant = ? AND call_id = ? AND nonce = ?"
# Two that end at once may get the same place; but who began after a look gets one behind all that were seen.
_LEAVE_NAME = """
INSERT INTO effect_past (tenant, resource, kind, whole, nonce, at, place)
SELECT l.tenant, l.resource, l.kind, l.whole, l.nonce, ?, 1 + coalesce(
  (SELECT max(p.place) FROM effect_past p WHERE p.tenant = l.tenant AND p.kind = l.kind), 0)
FROM effect_lock l WHERE l.tenant = ? AND l.call_id = ? AND l.nonce = ?
ON CONFLICT (tenant, resource) DO UPDATE SET nonce = excluded.nonce, at = excluded.at, place = excluded.place
"""
_CHANGED_BY = "SELECT nonce FROM effect_past WHERE tenant = ? AND resource = ?"
_WHOLE_CHANGED_BY = "SELECT nonce FROM effect_past WHERE tenant = ? AND kind = ? AND whole = 1"
_ANY_CHANGED_BY = """
SELECT nonce FROM effect_past WHERE tenant = ? AND kind = ? ORDER BY place DESC, nonce DESC LIMIT 1
"""
FORGET = "DELETE FROM effect_past WHERE at <= ?"
NAME_KEPT_S = 86_400.0
"""Longer than any call is between its look and its claim."""
TRIES = 3
"""A lock that was let go between two looks is tried again; who loses that often waits as for any other."""


async def take(
    transaction: Transaction, gate: str, stage: Lock, tenant: str, call_id: str, nonce: str, at: float
) -> Conflicting | None:
    """Kinds and names come in one order, so that no two wait for each other."""
    for kind, whole in _kinds(stage).items():
        await transaction.turn(tenant, kind, alone=whole)
        met = await transaction.one(_ANY_BY if whole else _WHOLE_BY, (tenant, kind, stage.within))
        if met is not None:
            return conflicting(gate, *met)
    for one in stage.resources:
        met = await _take(transaction, one, tenant, call_id, nonce, at)
        if met is not None and (not stage.within or met[0] != stage.within):
            return conflicting(gate, *met)
    if stage.seen is not None:
        past = await _past(transaction.all, tenant, stage)
        if stage.seen not in (past, _held(past, call_id)):  # an earlier attempt of its own is not in its way
            return conflicting(gate, "", "")
    return None


async def changed(fetch: Fetch, tenant: str, lock: Lock) -> str:
    """The names of those who let go last of what is to be changed, and who is at any part of a whole."""
    past, holders = await _past(fetch, tenant, lock), set[str]()
    for kind, whole in _kinds(lock).items():
        if whole:
            holders.update([str(by) for by, _ in await fetch(_ANY_BY, (tenant, kind, lock.within))])
    return _held(past, *sorted(holders)) if holders else past


def _held(past: str, *by: str) -> str:
    return f"{past} held by {' '.join(by)}"


async def _past(fetch: Fetch, tenant: str, lock: Lock) -> str:
    wanted = [(_ANY_CHANGED_BY if whole else _WHOLE_CHANGED_BY, kind) for kind, whole in _kinds(lock).items()]
    wanted += [(_CHANGED_BY, one.name) for one in lock.resources if not one.whole]
    found = [await fetch(statement, (tenant, name)) for statement, name in wanted]
    return " ".join(str(rows[0][0]) if rows else "-" for rows in found)


async def _take(
    transaction: Transaction, one: Locked, tenant: str, call_id: str, nonce: str, at: float
) -> tuple[str, str] | None:
    row = (tenant, one.name, one.kind, int(one.whole), call_id, nonce, at)
    for _ in range(TRIES):
        if await transaction.run(_TAKE, row) == 1:
            return None
        if (met := await transaction.one(_TAKEN_BY, (tenant, one.name))) is not None:
            return met[0], met[1]
    return "", ""


async def start_over(transaction: Transaction, tenant: str, call_id: str) -> None:
    """An operation that is claimed again takes its locks anew."""
    await transaction.run(_START_OVER, (tenant, call_id))


async def release(transaction: Transaction, tenant: str, call_id: str, nonce: str, at: float) -> None:
    """An attempt is over; whoever waits for what it changed may have it."""
    await transaction.run(_LEAVE_NAME, (at, tenant, call_id, nonce))
    await transaction.run(_RELEASE, (tenant, call_id, nonce))


def _kinds(stage: Lock) -> dict[str, bool]:
    """What is touched, and whether as a whole."""
    found: dict[str, bool] = {}
    for one in stage.resources:
        found[one.kind] = found.get(one.kind, False) or one.whole
    return found
