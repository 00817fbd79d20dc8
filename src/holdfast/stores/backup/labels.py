"""What does a log tell of what sessions have seen?

The outcome says which labels it brought, the decision before it (sealed) in whose session. Labels that were
lifted since come back with their call: whoever lifted one may lift it again.
"""

from base64 import b64decode
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from holdfast.model.errors import StoreError
from holdfast.model.holders import holders_then
from holdfast.model.observation import Status
from holdfast.model.record import Record
from holdfast.ports import Secrets
from holdfast.stores.labels import Gain
from holdfast.stores.sql.engine import Transaction
from holdfast.stores.sql.labels import gain

_UNKNOWN = f'"status":"{Status.UNKNOWN.value}"'


class LabelsTold:
    """Reads records in the order of the log, in which a call's end may come before its beginning: they can
    be of different chains."""

    def __init__(self, secrets: Secrets, tenants: Iterable[str]) -> None:
        self._secrets = secrets
        self._tenants = frozenset(tenants)
        self._asked: dict[tuple[str, str], str] = {}
        self._early: dict[tuple[str, str], list[tuple[float, list[str]]]] = {}
        self.gained: list[Gain] = []

    def see(self, record: Record) -> None:
        if record.kind == "intent":
            self._begun(record, orjson.loads(record.body))
        elif '"labels":' in record.body:
            self._told(record, orjson.loads(record.body))
        elif record.kind == "outcome" and _UNKNOWN not in record.body:  # which may be settled yet
            self._asked.pop((record.tenant, record.call_id), None)

    def _begun(self, record: Record, body: dict[str, Any]) -> None:
        sealed = (body.get("decision") or {}).get("facts")
        if sealed is None or record.tenant not in self._tenants:
            return
        early = self._early.pop((record.tenant, record.call_id), None)
        if early is None:
            self._asked[record.tenant, record.call_id] = sealed
            return
        for at, labels in early:
            self._gain(record, sealed, labels, at)

    def _told(self, record: Record, body: dict[str, Any]) -> None:
        known = self._asked.pop((record.tenant, record.call_id), None)
        sealed = (body.get("decision") or {}).get("facts") or known  # a replay tells both at once
        labels = body.get("labels")
        if not isinstance(labels, list) or record.tenant not in self._tenants:
            return
        if sealed is None:
            self._early.setdefault((record.tenant, record.call_id), []).append((record.at, labels))
        else:
            self._gain(record, sealed, labels, record.at)

    def _gain(self, record: Record, sealed: str, labels: list[str], at: float) -> None:
        try:
            who = holders_then(orjson.loads(self._secrets.unseal(record.tenant, b64decode(sealed))))
        except (StoreError, ValueError):
            return
        for holder in who.gaining:
            for label in labels:
                self.gained.append(Gain(record.tenant, holder, label, who.principal, record.call_id, at))


async def take_gained(transaction: Transaction, gained: Sequence[Gain]) -> None:
    await gain(transaction, gained)
