"""How does a backup become the store again, without letting a key run a second time?

The file is loaded aside and put in place in one step. The store begins a new life: what was running when the
backup was taken is unknown, and nothing is written until somebody has said what happened since.
"""

import secrets
from typing import NamedTuple

from holdfast.model.restored import RESTORED
from holdfast.records.body import act_body
from holdfast.records.chain import Chain, Record
from holdfast.stores.backup.archive import Backup
from holdfast.stores.backup.life import ADD_HALT, ADD_LIFE, LIVES, Life, begun
from holdfast.stores.backup.snapshot import Vessel
from holdfast.stores.halted import EVERYWHERE

_RUNNING = "SELECT tenant, call_id, state, nonce FROM operation WHERE state IN ('claimed', 'dispatched')"
_UNKNOWN = (
    "UPDATE operation SET state = 'unknown', owner = '', note = ? WHERE state IN ('claimed', 'dispatched')"
)
_NOTE = "it was running when the backup was taken"
_RECORD = "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_CHAIN = "INSERT INTO chain_head VALUES ('*', ?, 0, ?, 1, '')"


class Restored(NamedTuple):
    life: Life
    unknown: int
    """Operations that were running when the backup was taken."""
    kept: str | None
    """Where what was there before is now."""


async def restore(vessel: Vessel, backup: Backup, known: list[Life], by: str, now: float) -> Restored:
    """Load `backup`. `known` are the lives of the store that is there now, as far as it can be read."""
    try:
        await load(vessel, backup)
        life = await _begin(vessel, backup, known, now)
        unknown = await _mark(vessel, backup, life, by, now)
        return Restored(life, unknown, await vessel.launch(life.number))
    finally:
        await vessel.abandon()


async def load(vessel: Vessel, backup: Backup) -> None:
    """Everything as it was, in the shape this code works with."""
    await vessel.build(backup.manifest.shape)
    for table, member in backup.manifest.tables.items():
        for batch in backup.batches(table):
            await vessel.many(f"INSERT INTO {table} {member.insert}", batch)
    await vessel.upgrade()


async def _begin(vessel: Vessel, backup: Backup, known: list[Life], now: float) -> Life:
    """Lives that the backup does not know of are told it: one that was never recovered still counts."""
    loaded = {number for number, *_ in await vessel.all(LIVES)}
    for life in known:
        if life.number not in loaded:
            await vessel.run(ADD_LIFE, life)
    last = max([1, *loaded, *(life.number for life in known), await vessel.kept()])
    life = begun(last + 1, now, f"restored from the backup taken {backup.manifest.taken}")
    await vessel.run(ADD_LIFE, life)
    return life


async def _mark(vessel: Vessel, backup: Backup, life: Life, by: str, now: float) -> int:
    """What ran then, ran in another life."""
    chain, running = Chain(f"r_{secrets.token_hex(8)}"), await vessel.all(_RUNNING)
    await vessel.run(_UNKNOWN, (_NOTE,))
    await vessel.run(ADD_HALT, (RESTORED, by, life.why, now))
    manifest = backup.manifest
    told = {
        "life": life.number,
        "taken": manifest.taken,
        "size": manifest.tree_size,
        "root": manifest.tree_root,
    }
    first = chain.append(EVERYWHERE, "", "control", now, act_body(now, "restore", by, **told))
    await vessel.run(_CHAIN, (chain.writer, first.prev))
    records = [first, *(_settled(chain, now, *row) for row in running)]
    await vessel.many(_RECORD, records)
    return len(running)


def _settled(chain: Chain, now: float, tenant: str, call_id: str, state: str, nonce: str) -> Record:
    members = {"from": state, "to": "unknown", "note": _NOTE}
    return chain.append(
        tenant, call_id, "settle", now, act_body(now, "settle", "restore", **members, nonce=nonce)
    )
