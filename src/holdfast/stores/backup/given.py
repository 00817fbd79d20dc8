"""Which keys and grants came and went meanwhile? What was taken back stays taken back."""

from collections.abc import Sequence
from typing import Any

import orjson

from holdfast.model.access import qualified
from holdfast.model.record import Record
from holdfast.stores.backup.rows import Table
from holdfast.stores.backup.snapshot import Row
from holdfast.stores.given import ACCESS as KIND
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.sql.access import change
from holdfast.stores.sql.engine import Transaction

REVOCATION = Table("revocation", ("tenant", "name", "revoked_by", "note", "at", "until", "changed"))


async def take_given(transaction: Transaction, table: Table, rows: Sequence[Row]) -> int:
    """Keys, grants and revocations of the lost store, each with a number of its own here.

    What ended here or there has ended. Of one that holds in both, the later end counts: it was renewed.
    """
    taken = 0
    for row in rows:
        found = await table.find(transaction, row)
        here = None if found is None else table.dict(found)
        there = table.dict(row)
        if here is not None and not _is_news(here, there):
            continue
        there["changed"] = await change(transaction)
        await table.put(transaction, tuple(there[name] for name in table.columns))
        taken += 1
    return taken


def _is_news(here: dict[str, Any], there: dict[str, Any]) -> bool:
    if "ended_at" not in here or here["ended_at"] is not None:
        return False
    if there["ended_at"] is not None:
        return True
    return here["expires_at"] is not None and (there["expires_at"] or 0.0) > here["expires_at"]


def told_revocation(record: Record) -> Row | None:
    """What a record of the log says was revoked; None of every other."""
    if record.kind != KIND:
        return None
    said = orjson.loads(record.body)
    if said.get("operation") != "revoke":
        return None
    name = qualified(record.tenant, said["credential"])
    return (EVERYWHERE, name, said["caller"], said["note"], record.at, None, 0)
