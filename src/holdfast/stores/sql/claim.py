"""Is the right to act ours? The job behind `ledger.begin`, in one transaction (DEC-1)."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.model.approval import Answer
from holdfast.model.operation import OperationRef
from holdfast.model.stage import (
    AnswerFor,
    Lock,
    PolicyVersion,
    ReserveBudget,
    SeenLabels,
    Stage,
    TakeRate,
    UseGrant,
    UseRule,
    UseStep,
    WorkIn,
)
from holdfast.ports import Denied
from holdfast.stores.denial import grant_denied, outdated, rate_denied, why_unusable
from holdfast.stores.halted import EVERYWHERE, halted
from holdfast.stores.rate import AHEAD_S, SLACK_S, wait_ms
from holdfast.stores.sql import budgets, capabilities, labels, locks, session_moves, uses
from holdfast.stores.sql.budgets import Holder
from holdfast.stores.sql.engine import Row, Transaction, Withdrawn
from holdfast.stores.sql.rows import CALL_ID, CREATED_AT, EPOCH, FIND, NONCE

# A new operation is `dispatched` at once: from the moment its claim is durable nobody could prove after a
# crash that nothing was sent.
CLAIM = """
INSERT INTO operation (tenant, principal, tool, key, call_id, version, contract_digest, fingerprint, state,
  epoch, nonce, owner, key_source, trace_id, created_at, updated_at, boot_id, deadline_boot, lease_boot,
  window_s, approval_id, payload, attendant)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'dispatched',
  1, ?9, ?10, ?11, ?12, ?13, ?13, ?14, ?15, ?16,
  ?17, ?18, ?19, ?20)
ON CONFLICT (tenant, principal, tool, key) DO NOTHING
"""
# An operation keeps the id of its first call, whoever claims it again. An unknown one is claimed again (?21)
# only where the upstream itself makes one effect of many attempts. Who runs it for a client that is not here
# (the gateway itself, or after that client left) leaves open that somebody may come for it.
CLAIM_AGAIN = """
UPDATE operation SET state = 'dispatched', epoch = epoch + 1, version = ?6, nonce = ?9, owner = ?10,
  key_source = ?11, trace_id = ?12, updated_at = ?13, boot_id = ?14, deadline_boot = ?15, lease_boot = ?16,
  window_s = ?17, approval_id = ?18, payload = ?19, attendant = coalesce(nullif(?20, ''), attendant),
  outcome = NULL, finished_at = NULL, finished_boot_id = NULL, forget_boot = NULL, note = ''
WHERE tenant = ?1 AND principal = ?2 AND tool = ?3 AND key = ?4 AND contract_digest = ?7 AND fingerprint = ?8
  AND (state IN ('no_effect', 'held') OR (?21 AND state = 'unknown'))
RETURNING epoch, call_id, created_at
"""

# GCRA in one statement; `rate.arrival` is the same sum in Python and says why it has a second bound.
TAKE_RATE = """
INSERT INTO rate (tenant, bucket, tat)
VALUES (?1, ?2, CAST(?3 AS DOUBLE PRECISION) + CAST(?4 AS DOUBLE PRECISION))
ON CONFLICT (tenant, bucket) DO UPDATE
SET tat = CASE WHEN rate.tat BETWEEN ?3 AND ?3 + ?5 + ?7 THEN rate.tat ELSE ?3 END + ?4
WHERE CASE WHEN rate.tat BETWEEN ?3 AND ?3 + ?5 + ?7 THEN rate.tat ELSE ?3 END + ?4 - ?3 - ?5 <= ?6
RETURNING tat
"""
READ_RATE = "SELECT tat FROM rate WHERE tenant = ? AND bucket = ?"

USE_GRANT = """
UPDATE approval SET used_nonce = ? WHERE tenant = ? AND id = ? AND principal = ? AND tool = ? AND key = ?
  AND fingerprint = ? AND contract_digest = ? AND answer = 'APPROVED' AND used_nonce IS NULL
  AND expires_at > ?
"""
READ_GRANT = "SELECT answer, used_nonce, expires_at FROM approval WHERE tenant = ? AND id = ?"


class Claim(NamedTuple):
    """Everything `ledger.begin` wants written; sealed and put together before it is queued."""

    halt_names: tuple[str, ...]
    row: tuple[object, ...] | None  # parameters of CLAIM; None for a call that claims nothing
    rerun_unknown: bool
    staged: Sequence[tuple[str, Stage]]
    ref: OperationRef | None
    tenant: str
    call_id: str
    nonce: str
    fingerprint: str
    contract_digest: str
    now: float
    intent: str
    holder: Holder | None  # of what is reserved, where something is
    labelled: bool = False  # its outcome will be committed for good, so its intent is too


class Won(NamedTuple):
    epoch: int
    call_id: str
    created_at: float


class Lost(NamedTuple):
    row: Row


async def claim(transaction: Transaction, wish: Claim) -> Won | Lost | Denied | None:
    """None for a call that claims nothing and may go on."""
    if denied := halted(await transaction.halts(wish.halt_names), wish.halt_names):
        return denied
    if denied := outdated(wish.staged, await transaction.promoted()):
        return denied
    if denied := await labels.moved(transaction, wish.staged):
        return denied
    won: Won | None = None
    if wish.row is not None and wish.ref is not None:
        won = await _claim(transaction, wish, wish.row)
        if won is None:
            return await _lost(transaction, wish, wish.ref)
    call_id = wish.call_id if won is None else won.call_id
    if won is not None and won.epoch > 1:
        await budgets.start_over(transaction, wish.tenant, call_id)
        if any(isinstance(stage, Lock) for _, stage in wish.staged):
            await locks.start_over(transaction, wish.tenant, call_id)
    holder = None if wish.holder is None else wish.holder._replace(call_id=call_id)
    for gate, stage in sorted(wish.staged, key=_order):
        if denied := await _write(transaction, gate, stage, wish, holder, call_id):
            raise Withdrawn(denied)
    transaction.record(wish.tenant, call_id, "intent", wish.now, wish.intent)
    return won


async def _claim(transaction: Transaction, wish: Claim, row: tuple[object, ...]) -> Won | None:
    if await transaction.run(CLAIM, row) == 1:
        return Won(1, wish.call_id, wish.now)
    returned = await transaction.one(CLAIM_AGAIN, (*row, wish.rerun_unknown))
    return None if returned is None else Won(*returned)


async def _lost(transaction: Transaction, wish: Claim, ref: OperationRef) -> Won | Lost:
    """Somebody has the key: it may be this very attempt, whose commit went through unheard."""
    row = await transaction.one(FIND, ref)
    assert row is not None  # noqa: S101  operations are never deleted
    if row[NONCE] == wish.nonce:
        return Won(row[EPOCH], row[CALL_ID], row[CREATED_AT])
    return Lost(row)


def _order(staged: tuple[str, Stage]) -> tuple[int, bool, str]:
    """Everybody takes what is shared in one order, so that no two wait for each other."""
    match staged[1]:
        case AnswerFor():  # of its own key, before anybody else is kept waiting
            return -2, False, ""
        case Lock():  # first, for whoever meets another there has kept nobody else waiting
            return -1, False, ""
        case ReserveBudget(bucket=bucket):
            return 0, False, bucket.name
        case TakeRate(shared=shared, bucket=name):
            return 1, shared, name
        case UseRule(rule_id):
            return 2, False, rule_id
        case _:
            return 3, False, ""


async def _write(
    transaction: Transaction, gate: str, stage: Stage, wish: Claim, holder: Holder | None, call_id: str
) -> Denied | None:
    match stage:
        case ReserveBudget():
            assert holder is not None  # noqa: S101  whoever reserves is told to the claim
            return await budgets.reserve(transaction, gate, stage, holder)
        case TakeRate():
            return await _take_rate(transaction, gate, stage, wish)
        case UseGrant():
            return await _use_grant(transaction, gate, stage, wish)
        case UseRule():
            return await uses.use_rule(transaction, gate, stage, wish.tenant, wish.now)
        case UseStep():
            spent = (wish.now, wish.nonce, call_id)
            return await uses.use_step(transaction, gate, stage, wish.tenant, *spent)
        case AnswerFor():
            return await capabilities.check(transaction, gate, stage, wish.ref, wish.now)
        case Lock():
            attempt = (wish.tenant, call_id, wish.nonce, wish.now)
            return await locks.take(transaction, gate, stage, *attempt)
        case WorkIn():
            return await session_moves.use(transaction, gate, stage, wish.tenant, call_id, wish.now)
        case PolicyVersion() | SeenLabels():
            return None  # looked at before anything was written


async def _take_rate(transaction: Transaction, gate: str, stage: TakeRate, wish: Claim) -> Denied | None:
    interval, tenant = stage.per_s / stage.calls, EVERYWHERE if stage.shared else wish.tenant
    parameters = (tenant, stage.bucket, wish.now, interval, stage.per_s, SLACK_S, AHEAD_S)
    if await transaction.one(TAKE_RATE, parameters) is not None:
        return None
    [(tat,)] = await transaction.all(READ_RATE, (tenant, stage.bucket))
    return rate_denied(gate, stage, wait_ms(tat, wish.now, stage.calls, stage.per_s) or 1)


async def _use_grant(transaction: Transaction, gate: str, stage: UseGrant, wish: Claim) -> Denied | None:
    if wish.ref is None:
        return grant_denied(gate, stage, "it names an operation, and this call has no key")
    used = await transaction.run(
        USE_GRANT,
        (
            wish.nonce,
            wish.tenant,
            stage.approval_id,
            *wish.ref[1:],
            wish.fingerprint,
            wish.contract_digest,
            wish.now,
        ),
    )
    if used == 1:
        return None
    found = await transaction.one(READ_GRANT, (wish.tenant, stage.approval_id))
    return grant_denied(gate, stage, _why_not(found, wish.now))


def _why_not(found: tuple[str, str | None, float] | None, now: float) -> str:
    if found is None:
        return "there is no such approval"
    answer, used_nonce, expires_at = found
    return why_unusable(Answer(answer), used_nonce is not None, expires_at <= now)
