"""Is anybody changing the same? Locks are taken in the transaction of the claim, all or none; EXE-7.

A row stands for one thing, or for all of a kind. Rows of one thing exclude each other by their key alone. Who
wants a whole kind must not overlook anybody who is just taking a part of it: the two meet at the kind's turn,
which parts share and a whole has alone.
"""

from holdfast.model.stage import Lock, Locked
from holdfast.ports import Conflicting
from holdfast.stores.denial import conflicting
from holdfast.stores.sql.engine import Transaction

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
    return None


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


async def release(transaction: Transaction, tenant: str, call_id: str, nonce: str) -> None:
    """An attempt is over; whoever waits for what it changed may have it."""
    await transaction.run(_RELEASE, (tenant, call_id, nonce))


def _kinds(stage: Lock) -> dict[str, bool]:
    """What is touched, and whether as a whole."""
    found: dict[str, bool] = {}
    for one in stage.resources:
        found[one.kind] = found.get(one.kind, False) or one.whole
    return found
