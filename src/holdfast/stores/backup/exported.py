"""Which operations does an exported log tell of?

Records hold no payloads and no answers, but each intent says, sealed, which operation it claimed. That is
enough to know a key again: it does not run a second time, though what it answered is gone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast.model.derive import MutationClass
from holdfast.model.record import Record
from holdfast.ports import Secrets
from holdfast.records.body import Claimed, claim_of
from holdfast.stores.backup.operations import Taken, knows_more
from holdfast.stores.backup.rows import Table
from holdfast.stores.sql.engine import Transaction

COLUMNS = (
    "tenant principal tool key call_id version contract_digest fingerprint state epoch nonce owner key_source"
    " trace_id created_at updated_at boot_id window_s approval_id note"
)
OPERATION = Table("operation", tuple(COLUMNS.split()))
NOTE = "all that is left of it are its records"
_TELL = "UPDATE operation SET state = ?, updated_at = ?, note = ? WHERE tenant = ? AND call_id = ?"


@dataclass(slots=True)
class Told:
    """What the records say of one operation so far."""

    tenant: str
    call_id: str
    claimed: Claimed
    intent: dict[str, Any]
    created_at: float
    updated_at: float
    epoch: int = 1
    state: str = "unknown"

    def row(self) -> tuple[object, ...]:
        said, claimed = self.intent, self.claimed
        name = (self.tenant, claimed.principal, claimed.tool, claimed.key, self.call_id)
        what = (said["tool"].rpartition("@")[2], said["contract_digest"], claimed.fingerprint)
        attempt = (self.state, self.epoch, said["nonce"], "", "caller", said["trace_id"])
        times = (self.created_at, self.updated_at, "", claimed.window_s)
        return (*name, *what, *attempt, *times, said["approval_id"], NOTE)


class Telling:
    """Reads records in the order of the log."""

    def __init__(self, secrets: Secrets, tenants: Iterable[str]) -> None:
        self._secrets = secrets
        self._tenants = frozenset(tenants)
        self._told: dict[tuple[str, str], Told] = {}
        self.unreadable = 0
        """Intents that tell nothing: their tenant's key is gone, or they were written before intents told."""

    def see(self, record: Record) -> None:
        if record.kind == "intent":
            self._begun(record, orjson.loads(record.body))
        elif record.kind in ("outcome", "settle", "contradiction"):
            told = self._told.get((record.tenant, record.call_id))
            if told is not None:
                self._ended(told, record, orjson.loads(record.body))

    def rows(self) -> list[tuple[object, ...]]:
        return [told.row() for told in self._told.values()]

    def _begun(self, record: Record, body: dict[str, Any]) -> None:
        if body.get("mutation_class") == MutationClass.READ_ONLY:
            return
        known = record.tenant in self._tenants  # asking for a key that is gone would make a new one
        claimed = claim_of(body, record.tenant, self._secrets) if known else None
        if claimed is None:
            self.unreadable += 1
            return
        name, at = (record.tenant, record.call_id), record.at
        before = self._told.get(name)
        created, epoch = (at, 1) if before is None else (before.created_at, before.epoch + 1)
        self._told[name] = Told(*name, claimed, body, created, at, epoch)

    def _ended(self, told: Told, record: Record, body: dict[str, Any]) -> None:
        if body.get("nonce") != told.intent["nonce"]:
            return  # an earlier attempt
        if record.kind == "settle":
            state = body.get("to")
        elif body.get("operation") == "abandon" and "tool" not in body:
            state = "no_effect"
        else:
            state = body.get("state")
        if state is not None and (record.kind != "contradiction" or state == "committed"):
            told.state, told.updated_at = str(state), record.at


async def take_told(transaction: Transaction, rows: Sequence[tuple[object, ...]], since: float) -> Taken:
    """What is here and can be read stays: an export only adds what became of it."""
    taken = Taken()
    for row in rows:
        there, found = OPERATION.dict(row), await OPERATION.find(transaction, row)
        here = None if found is None else OPERATION.dict(found)
        if here is not None and not knows_more(there, here, since):
            continue
        if here is not None and here["nonce"] == there["nonce"]:
            name = (here["tenant"], here["call_id"])
            await transaction.run(_TELL, (there["state"], there["updated_at"], NOTE, *name))
        else:
            await OPERATION.put(transaction, row)
        taken = taken.plus(Taken(1, int(there["state"] == "unknown")))
    return taken
