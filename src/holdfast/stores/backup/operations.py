"""Which of two rows about one operation is the later truth: the restored one, or the one that was lost?"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.records.body import act_body
from holdfast.stores.backup.rows import Table
from holdfast.stores.backup.snapshot import Row
from holdfast.stores.sql.engine import Transaction

_SURE = {"no_effect": 1, "failed_final": 2, "committed": 3, "compensated": 4}
"""What is known, and how much it forbids: between two answers the one that keeps a key from running again."""
_NOTE = "it was running when its store was lost"

Operation = Mapping[str, Any]


class Taken(NamedTuple):
    operations: int = 0
    unknown: int = 0

    def plus(self, other: "Taken") -> "Taken":
        return Taken(self.operations + other.operations, self.unknown + other.unknown)


async def take_operations(
    transaction: Transaction, table: Table, rows: Sequence[Row], since: float, now: float
) -> Taken:
    """Take over every row that knows more; `since` is when the restored store began to live."""
    taken = Taken()
    for row in rows:
        found = await table.find(transaction, row)
        there = table.dict(row)
        if found is None or knows_more(there, table.dict(found), since):
            taken = taken.plus(await _take(transaction, table, there, now))
    return taken


def knows_more(there: Operation, here: Operation, since: float) -> bool:
    if there["epoch"] != here["epoch"]:
        return bool(there["epoch"] > here["epoch"])
    if all(there[name] == here[name] for name in ("state", "nonce", "updated_at")):
        return False
    sure, found_out = _SURE.get(there["state"], 0), _SURE.get(here["state"], 0)
    if found_out and (here["updated_at"] >= since or there["updated_at"] < here["updated_at"]):
        return sure > max(found_out, 1)  # found out here: only a surer answer than that replaces it
    return sure > 1 or bool(there["updated_at"] >= here["updated_at"])


async def _take(transaction: Transaction, table: Table, there: Operation, now: float) -> Taken:
    row, running = dict(there), there["state"] in ("claimed", "dispatched")
    if running:
        row |= {"state": "unknown", "owner": "", "note": _NOTE}
        members = {"from": there["state"], "to": "unknown", "note": _NOTE, "nonce": there["nonce"]}
        body = act_body(now, "settle", "recover", **members)
        transaction.record(there["tenant"], there["call_id"], "settle", now, body)
    await table.put(transaction, tuple(row.values()))
    return Taken(1, int(row["state"] == "unknown"))
