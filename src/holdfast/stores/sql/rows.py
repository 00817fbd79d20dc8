"""What does a row of the operation table say, seen from here and now?"""

import logging
import math

from holdfast.model.errors import StoreError
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.vocabulary import KeySource, State
from holdfast.ports import Secrets
from holdfast.stores.boot import Boot
from holdfast.stores.sql.engine import Row
from holdfast.stores.worker import Workers

log = logging.getLogger(__name__)

COLUMNS = (
    "tenant, principal, tool, key, call_id, version, contract_digest, fingerprint, state, epoch, nonce,"
    " owner, key_source, trace_id, created_at, updated_at, boot_id, deadline_boot, lease_boot, payload,"
    " outcome, note, attendant"
)
CALL_ID, STATE, EPOCH, NONCE, OWNER, CREATED_AT, BOOT_ID, LEASE = 4, 8, 9, 10, 11, 14, 16, 18

# Texts put together from constants, once, so that every statement is prepared once.
_BY_REF = "tenant = ? AND principal = ? AND tool = ? AND key = ?"
FIND = f"SELECT {COLUMNS} FROM operation WHERE {_BY_REF}"  # noqa: S608
FIND_CALL = f"SELECT {COLUMNS} FROM operation WHERE tenant = ? AND call_id = ?"  # noqa: S608
_RUNNING = "state IN ('claimed', 'dispatched')"  # word for word the condition of the index
# One place in the index each: compared as a pair, every row of the owner before would be looked at.
NEXT_OWNER = (
    f"SELECT boot_id, owner FROM operation WHERE {_RUNNING} AND boot_id = ? AND owner > ?"  # noqa: S608
    " ORDER BY owner LIMIT 1"
)
NEXT_OWNED_BOOT = (
    f"SELECT boot_id, owner FROM operation WHERE {_RUNNING} AND boot_id > ?"  # noqa: S608
    " ORDER BY boot_id, owner LIMIT 1"
)
FIND_RUNNING = (
    f"SELECT {COLUMNS} FROM operation WHERE {_RUNNING} AND boot_id = ? AND owner = ? AND lease_boot < ?"  # noqa: S608
    " ORDER BY lease_boot, call_id LIMIT ?"
)
FIND_UNKNOWN = (
    f"SELECT {COLUMNS} FROM operation WHERE state = 'unknown' AND (updated_at, call_id) > (?, ?)"  # noqa: S608
    " ORDER BY updated_at, call_id LIMIT ?"
)


_OPEN_STATES = frozenset({State.CLAIMED, State.DISPATCHED, State.UNKNOWN})


class Rows:
    """Reads rows with this process's eyes: its boot clock, its neighbours, its keys."""

    def __init__(self, secrets: Secrets, boot: Boot, workers: Workers) -> None:
        self._secrets = secrets
        self._boot = boot
        self._workers = workers

    def operation(self, row: Row) -> Operation:
        tenant, principal, tool, key, call_id, version, digest, fingerprint = row[:8]
        state, epoch, nonce, owner, key_source, trace_id, created_at, updated_at = row[8:16]
        _, deadline, _, payload, outcome, note, attendant = row[16:23]
        since_deadline = self._since(row, deadline)
        return Operation(
            ref=OperationRef(tenant, principal, tool, key),
            call_id=call_id,
            version=version,
            contract_digest=digest,
            fingerprint=fingerprint,
            state=State(state),
            epoch=epoch,
            nonce=nonce,
            owner=owner,
            key_source=KeySource(key_source),
            trace_id=trace_id,
            created_at=created_at,
            updated_at=updated_at,
            deadline_passed=since_deadline > 0,
            since_deadline_s=max(since_deadline, 0.0),
            lease_passed=self._since(row, row[LEASE]) > 0,
            owner_alive=self._owner_alive(row),
            observation=self._unsealed(tenant, outcome),
            payload=self._unsealed(tenant, payload),
            note=note,
            attendant=attendant,
        )

    def lost_before(self, boot_id: str, owner: str) -> float:
        """Running operations of this owner are nobody's where their lease ended before this."""
        here = boot_id == self._boot.id and self._workers.alive(owner)
        return self._boot.now() if here else math.inf

    def _owner_alive(self, row: Row) -> bool:
        if row[STATE] not in _OPEN_STATES:
            return True  # nobody is asked after
        return bool(row[BOOT_ID] == self._boot.id and self._workers.alive(row[OWNER]))

    def _since(self, row: Row, moment: float | None) -> float:
        """Seconds since a moment of the row's boot; before this machine's last start is long ago."""
        if moment is None:
            return 0.0
        return self._boot.now() - moment if row[BOOT_ID] == self._boot.id else math.inf

    def _unsealed(self, tenant: str, sealed: bytes | None) -> bytes | None:
        if sealed is None:
            return None
        try:
            return self._secrets.unseal(tenant, sealed)
        except StoreError as error:  # erased or tampered with: as good as forgotten, never a fresh start
            log.warning("%s", error)
            return None
