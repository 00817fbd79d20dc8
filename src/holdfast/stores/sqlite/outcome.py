"""How did it end? The jobs behind `ledger.finish`, `settle` and `forget`, each one transaction."""

from typing import NamedTuple

from holdfast.model.operation import OperationRef
from holdfast.model.vocabulary import State
from holdfast.stores.sqlite.claim import GIVE_BACK, TAKE_AGAIN
from holdfast.stores.sqlite.writer import Transaction

_SET = """
UPDATE operation SET state = ?1, outcome = ?2, note = ?3, updated_at = ?4, finished_at = ?5,
  finished_boot_id = ?6, forget_boot = ?7 + window_s
WHERE tenant = ?8 AND principal = ?9 AND tool = ?10 AND key = ?11 AND epoch = ?12
"""
# A sweeper marks an operation unknown without touching epoch and nonce: a late but truthful result of the
# same attempt may still settle it.
FINISH = _SET + " AND nonce = ?13 AND state IN ('claimed', 'dispatched', 'unknown') RETURNING approval_id"
CONTRADICT = _SET + " AND nonce = ?13 AND state = 'no_effect' RETURNING approval_id"
SETTLE = _SET + " AND nonce = ?13 AND state = ?14 RETURNING approval_id"
ABANDON = """
UPDATE operation SET state = 'no_effect', updated_at = ?1, finished_at = ?1, finished_boot_id = ?2,
  forget_boot = ?3 + window_s
WHERE tenant = ?4 AND principal = ?5 AND tool = ?6 AND key = ?7 AND nonce = ?8 AND state = 'dispatched'
RETURNING approval_id, call_id
"""
VOID_QUESTIONS = """
UPDATE approval SET answer = 'AUTO_DENIED'
WHERE tenant = ? AND principal = ? AND tool = ? AND key = ? AND answer = 'PENDING'
"""
NOW = "SELECT state, epoch, nonce FROM operation WHERE tenant = ? AND principal = ? AND tool = ? AND key = ?"

FORGET_BATCH = 500
"""Operations forgotten in one transaction: others want the writer too."""
FORGET_THIS_BOOT = """
UPDATE operation SET payload = NULL, outcome = NULL WHERE (tenant, principal, tool, key) IN (
  SELECT tenant, principal, tool, key FROM operation
  WHERE payload IS NOT NULL AND finished_boot_id = ?1 AND forget_boot <= ?2 LIMIT ?3)
"""
FORGET_OTHER_BOOTS = """
UPDATE operation SET payload = NULL, outcome = NULL WHERE (tenant, principal, tool, key) IN (
  SELECT tenant, principal, tool, key FROM operation
  WHERE payload IS NOT NULL AND finished_boot_id IS NOT NULL AND finished_boot_id <> ?1
    AND finished_at + window_s <= ?2 LIMIT ?3)
"""
CANCEL_KEPT_S = 3600.0
"""A cancellation nobody could obey any more is dropped after this long."""


class Moment(NamedTuple):
    """Now, on both clocks."""

    wall: float
    boot_id: str
    boot: float


class End(NamedTuple):
    """What is to be written about one attempt's end."""

    ref: OperationRef
    epoch: int
    nonce: str
    state: State
    outcome: bytes | None  # sealed
    note: str
    at: Moment
    repeatable: bool = False  # the upstream makes one effect of many attempts

    def parameters(self) -> tuple[object, ...]:
        wall, boot_id, boot = self.at
        final = self.state.settled or self.state is State.NO_EFFECT
        finished = (wall, boot_id, boot) if final else (None, None, None)
        return (self.state, self.outcome, self.note, wall, *finished, *self.ref, self.epoch, self.nonce)


class Told(NamedTuple):
    """Who the record is about."""

    call_id: str
    body: str


def finish(transaction: Transaction, end: End, told: Told) -> tuple[bool, bool]:
    """Whether the operation took this end, and whether the end contradicts what the ledger says."""
    returned = transaction.execute(FINISH, end.parameters()).fetchone()
    if returned is not None:
        _give_back(transaction, end, returned[0])
        _record(transaction, end, told, "outcome")
        return True, False
    # Too late: somebody settled it meanwhile, or a newer attempt has the key.
    corrected = end.state is State.COMMITTED and _correct(transaction, end)
    contradicts = corrected or _contradicts(transaction, end)
    _record(transaction, end, told, "contradiction" if contradicts else "late")
    return corrected, contradicts


def _correct(transaction: Transaction, end: End) -> bool:
    """The effect happened although a probe or a person said it had not: stop saying so."""
    returned = transaction.execute(CONTRADICT, end.parameters()).fetchone()
    if returned is not None and returned[0] is not None:
        transaction.execute(TAKE_AGAIN, (end.nonce, end.ref.tenant, returned[0]))
    return returned is not None


def _contradicts(transaction: Transaction, end: End) -> bool:
    if end.repeatable:
        return False
    committed = _committed_under(transaction, end)
    if end.state is State.COMMITTED:
        return not committed
    return committed and end.state in (State.NO_EFFECT, State.FAILED_FINAL)


def _committed_under(transaction: Transaction, end: End) -> bool:
    """Whether the ledger already holds an effect of this very attempt."""
    found = transaction.execute(NOW, end.ref).fetchone()
    return found is not None and found == (State.COMMITTED, end.epoch, end.nonce)


def settle(transaction: Transaction, end: End, seen: State, told: Told) -> bool:
    returned = transaction.execute(SETTLE, (*end.parameters(), seen)).fetchone()
    if returned is None:
        return False
    _give_back(transaction, end, returned[0])
    if seen is State.HELD:
        transaction.execute(VOID_QUESTIONS, end.ref)
    _record(transaction, end, told, "settle")
    return True


def abandon(transaction: Transaction, ref: OperationRef, nonce: str, at: Moment, body: str) -> bool:
    """Free a claim whose caller went away before it learned of it: nothing was dispatched."""
    wall, boot_id, boot = at
    returned = transaction.execute(ABANDON, (wall, boot_id, boot, *ref, nonce)).fetchone()
    if returned is None:
        return False
    approval_id, call_id = returned
    if approval_id is not None:
        transaction.execute(GIVE_BACK, (ref.tenant, approval_id, nonce))
    transaction.record(ref.tenant, call_id, "outcome", wall, body)
    return True


def note_outcome(transaction: Transaction, tenant: str, kind: str, at: float, told: Told) -> None:
    """A record about a call that has no operation."""
    transaction.record(tenant, told.call_id, kind, at, told.body)


def forget(transaction: Transaction, at: Moment) -> int:
    """At most one batch of each kind; 0 when nothing is left to forget."""
    here = transaction.execute(FORGET_THIS_BOOT, (at.boot_id, at.boot, FORGET_BATCH)).rowcount
    there = transaction.execute(FORGET_OTHER_BOOTS, (at.boot_id, at.wall, FORGET_BATCH)).rowcount
    transaction.execute("DELETE FROM cancel WHERE at <= ?", (at.wall - CANCEL_KEPT_S,))
    return int(here + there)


def _give_back(transaction: Transaction, end: End, approval_id: str | None) -> None:
    if approval_id is not None and end.state is State.NO_EFFECT:
        transaction.execute(GIVE_BACK, (end.ref.tenant, approval_id, end.nonce))


def _record(transaction: Transaction, end: End, told: Told, kind: str) -> None:
    transaction.record(end.ref.tenant, told.call_id, kind, end.at.wall, told.body)
