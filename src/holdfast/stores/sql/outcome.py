"""How did it end? The jobs behind `ledger.finish`, `settle` and `forget`, each one transaction."""

from typing import NamedTuple

from holdfast.model.operation import OperationRef
from holdfast.model.sequel import NewJob, Sequel
from holdfast.model.vocabulary import State
from holdfast.records.body import act_body
from holdfast.stores.labels import Gain
from holdfast.stores.spending import Outcome, outcome_of
from holdfast.stores.sql import budgets, labels, locks, sequels, uses
from holdfast.stores.sql.engine import Transaction, Withdrawn

_SET = """
UPDATE operation SET state = ?1, outcome = ?2, note = ?3, updated_at = ?4, finished_at = ?5,
  finished_boot_id = ?6, forget_boot = ?7 + window_s
WHERE tenant = ?8 AND principal = ?9 AND tool = ?10 AND key = ?11 AND epoch = ?12
"""
# A sweeper marks an operation unknown without touching epoch and nonce: a late but truthful result of the
# same attempt may still settle it.
FINISH = _SET + " AND nonce = ?13 AND state IN ('claimed', 'dispatched', 'unknown')"
# An attempt that is over can do no more harm, however long its worker lives: from now on a probe that sees
# nothing counts.
DISOWN = """
UPDATE operation SET owner = ''
WHERE tenant = ? AND principal = ? AND tool = ? AND key = ? AND epoch = ? AND nonce = ?
"""
CONTRADICT = _SET + " AND nonce = ?13 AND state = 'no_effect'"
SETTLE = _SET + " AND nonce = ?13 AND state = ?14"
ABANDON = """
UPDATE operation SET state = 'no_effect', updated_at = ?1, finished_at = ?1, finished_boot_id = ?2,
  forget_boot = ?3 + window_s
WHERE tenant = ?4 AND principal = ?5 AND tool = ?6 AND key = ?7 AND nonce = ?8 AND state = 'dispatched'
RETURNING call_id
"""
VOID_QUESTIONS = """
UPDATE approval SET answer = 'AUTO_DENIED'
WHERE tenant = ? AND principal = ? AND tool = ? AND key = ? AND answer = 'PENDING'
"""
NOW = "SELECT state, epoch, nonce FROM operation WHERE tenant = ? AND principal = ? AND tool = ? AND key = ?"

# The conditions stand twice: an operation that was claimed again in the meantime is looked at once more.
FORGET_BATCH = 500
"""Operations forgotten in one transaction: others want the writer too."""
FORGET_THIS_BOOT = """
UPDATE operation SET payload = NULL, outcome = NULL, attendant = NULL
WHERE (tenant, principal, tool, key) IN (
  SELECT tenant, principal, tool, key FROM operation
  WHERE payload IS NOT NULL AND finished_boot_id = ?1 AND forget_boot <= ?2 LIMIT ?3)
  AND payload IS NOT NULL AND finished_boot_id = ?1 AND forget_boot <= ?2
"""
# In the order of another boot's time, which is that of the wall clock unless somebody set it then.
FORGET_OTHER_BOOT = """
UPDATE operation SET payload = NULL, outcome = NULL, attendant = NULL
WHERE (tenant, principal, tool, key) IN (
  SELECT tenant, principal, tool, key FROM operation
  WHERE payload IS NOT NULL AND finished_boot_id = ?1 ORDER BY forget_boot LIMIT ?3)
  AND payload IS NOT NULL AND finished_boot_id = ?1 AND finished_at + window_s <= ?2
"""
NEXT_BOOT = "SELECT min(finished_boot_id) FROM operation WHERE payload IS NOT NULL AND finished_boot_id > ?"
_OVER = tuple([state for state in State if state.settled or state is State.NO_EFFECT])
FORGET_JOBS = "DELETE FROM job WHERE state = 'ENDED' AND updated_at <= ?"
JOB_KEPT_S = 3600.0
"""A job that is over is dropped after this long: the ledger has what came of it."""
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
    call_id: str
    epoch: int
    nonce: str
    state: State
    outcome: bytes | None  # sealed
    note: str
    at: Moment
    repeatable: bool = False  # the upstream makes one effect of many attempts
    over: bool = False  # the attempt has ended: nothing of it runs any more
    budget: Outcome | None = None  # what it means for what was reserved; None: nothing yet
    locked: bool = False  # it keeps others from changing the same, until it is over

    def parameters(self) -> tuple[object, ...]:
        wall, boot_id, boot = self.at
        finished = (wall, boot_id, boot) if self.state in _OVER else (None, None, None)
        said = (self.state._value_, self.outcome, self.note, wall)
        return (*said, *finished, *self.ref, self.epoch, self.nonce)


class Told(NamedTuple):
    """Who the record is about."""

    call_id: str
    body: str
    alarms: tuple[str, ...] = ()
    by: str = ""
    gained: tuple[Gain, ...] = ()  # what its caller has seen once it is told
    sequels: tuple[Sequel, ...] = ()  # what else is written with it, sealed
    worker: str = ""


async def finish(transaction: Transaction, end: End, told: Told) -> tuple[bool, bool]:
    """Whether the operation took this end, and whether the end contradicts what the ledger says."""
    if told.gained:
        await labels.gain(transaction, told.gained)
    taken = await transaction.run(FINISH, end.parameters()) == 1
    if end.locked and not _goes_on(end, told):
        await locks.release(transaction, end.ref.tenant, end.call_id, end.nonce, end.at.wall)
    if taken:
        if end.over and end.state is State.UNKNOWN:
            await transaction.run(DISOWN, (*end.ref, end.epoch, end.nonce))
        if end.budget is not None:
            await budgets.settle(transaction, end.ref.tenant, end.call_id, end.budget, end.at.wall)
        await _give_back(transaction, end)
        for sequel in told.sequels:
            await sequels.write(transaction, sequel, end.ref, end.call_id, told.worker, end.at.wall)
        _record(transaction, end, told, "outcome")
        return True, False
    # Too late: somebody settled it meanwhile, or a newer attempt has the key.
    corrected = end.state is State.COMMITTED and await _correct(transaction, end)
    contradicts = corrected or await _contradicts(transaction, end)
    _record(transaction, end, told, "contradiction" if contradicts else "late")
    return corrected, contradicts


def _goes_on(end: End, told: Told) -> bool:
    """Whether something of it may still change what it locked: a function past its deadline, or a job."""
    working = end.state is State.UNKNOWN and not end.over
    return working or any(isinstance(sequel, NewJob) for sequel in told.sequels)


async def finish_again(transaction: Transaction, end: End, told: Told) -> tuple[bool, bool]:
    """After a commit of which nobody knows whether it happened: an end that stands is not written twice."""
    now = await transaction.one(NOW + " /* FOR UPDATE */", end.ref)
    if now == (end.state.value, end.epoch, end.nonce):
        return True, False
    return await finish(transaction, end, told)


async def _correct(transaction: Transaction, end: End) -> bool:
    """The effect happened although a probe or a person said it had not: stop saying so."""
    if await transaction.run(CONTRADICT, end.parameters()) == 0:
        return False
    if end.budget is not None:  # its time was counted when it was given back
        await budgets.settle(transaction, end.ref.tenant, end.call_id, Outcome(happened=True), end.at.wall)
    await uses.take_again(transaction, end.ref, end.nonce, end.call_id)
    return True


async def _contradicts(transaction: Transaction, end: End) -> bool:
    if end.repeatable:
        return False
    committed = await _committed_under(transaction, end)
    if end.state is State.COMMITTED:
        return not committed
    return committed and end.state in (State.NO_EFFECT, State.FAILED_FINAL)


async def _committed_under(transaction: Transaction, end: End) -> bool:
    """Whether the ledger already holds an effect of this very attempt."""
    found = await transaction.one(NOW, end.ref)
    return found is not None and found == (State.COMMITTED, end.epoch, end.nonce)


async def settle(transaction: Transaction, end: End, seen: State, told: Told) -> bool:
    if told.gained:
        await labels.gain(transaction, told.gained)
    if await transaction.run(SETTLE, (*end.parameters(), seen.value)) == 0:
        raise Withdrawn(False)  # somebody else has settled it, and gained what that brought
    if (counts := outcome_of(end.state)) is not None and seen is not State.HELD:
        await budgets.settle(transaction, end.ref.tenant, end.call_id, counts, end.at.wall)
    if seen is not State.HELD:  # what an earlier attempt used was given back with its end
        await _give_back(transaction, end)
    if seen is State.HELD:
        await transaction.run(VOID_QUESTIONS, end.ref)
    else:
        await locks.release(transaction, end.ref.tenant, end.call_id, end.nonce, end.at.wall)
    _record(transaction, end, told, "settle")
    return True


async def abandon(transaction: Transaction, ref: OperationRef, nonce: str, at: Moment, body: str) -> bool:
    """Free a claim whose caller went away before it learned of it: nothing was dispatched."""
    wall, boot_id, boot = at
    returned = await transaction.one(ABANDON, (wall, boot_id, boot, *ref, nonce))
    if returned is None:
        return False
    await budgets.settle(transaction, ref.tenant, returned[0], Outcome(happened=False), wall)
    await uses.give_back(transaction, ref, nonce)
    await locks.release(transaction, ref.tenant, returned[0], nonce, wall)
    transaction.record(ref.tenant, returned[0], "outcome", wall, body)
    return True


async def note_outcome(
    transaction: Transaction, tenant: str, kind: str, at: float, told: Told, budget: Outcome | None = None
) -> None:
    """A record about a call that has no operation."""
    if told.gained:
        await labels.gain(transaction, told.gained)
    transaction.record(tenant, told.call_id, kind, at, told.body)
    _alarm(transaction, tenant, at, told)
    if budget is not None:
        await budgets.drop(transaction, tenant, told.call_id, budget, at)


async def trial(transaction: Transaction, worker: str) -> None:
    """A row of our own, so that nobody waits for anybody; gone before anybody sees it."""
    await transaction.run("INSERT INTO rate (tenant, bucket, tat) VALUES ('*', ?, 0)", (f"trial:{worker}",))
    await transaction.run("DELETE FROM rate WHERE tenant = '*' AND bucket = ?", (f"trial:{worker}",))


async def forget(transaction: Transaction, at: Moment) -> int:
    """At most one batch of each kind; 0 when nothing is left to forget."""
    here = await transaction.run(FORGET_THIS_BOOT, (at.boot_id, at.boot, FORGET_BATCH))
    there, boot = 0, ""
    while boot := (await transaction.all(NEXT_BOOT, (boot,)))[0][0]:
        if boot != at.boot_id:
            there += await transaction.run(FORGET_OTHER_BOOT, (boot, at.wall, FORGET_BATCH))
    await transaction.run("DELETE FROM cancel WHERE at <= ?", (at.wall - CANCEL_KEPT_S,))
    await transaction.run(FORGET_JOBS, (at.wall - JOB_KEPT_S,))
    await transaction.run(locks.FORGET, (at.wall - locks.NAME_KEPT_S,))
    await budgets.forget(transaction, at.wall)
    return int(here + there)


async def _give_back(transaction: Transaction, end: End) -> None:
    """An attempt without effect has not used up its approval; APR-4.

    After the budgets, as a claim takes them: a rule is shared too, and no two must wait for each other.
    """
    if end.state is State.NO_EFFECT:
        await uses.give_back(transaction, end.ref, end.nonce)


def _record(transaction: Transaction, end: End, told: Told, kind: str) -> None:
    transaction.record(end.ref.tenant, told.call_id, kind, end.at.wall, told.body)
    _alarm(transaction, end.ref.tenant, end.at.wall, told)


def _alarm(transaction: Transaction, tenant: str, at: float, told: Told) -> None:
    """A security event has a record of its own, beside that of the call that raised it."""
    for alarm in told.alarms:
        body = act_body(at, "alarm", told.by, alarm=alarm)
        transaction.record(tenant, told.call_id, "security", at, body)
