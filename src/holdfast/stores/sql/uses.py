"""What does a call rest on that is used up: an approval, a rule, a step of a plan? APR-4, APR-8, APR-9.

Used in the transaction of the claim, and given back where the attempt had no effect. Which of them an attempt
used is on its operation.
"""

from holdfast.model.operation import OperationRef
from holdfast.model.stage import UseRule, UseStep
from holdfast.ports import Denied
from holdfast.stores.denial import standing_denied, why_rule_ended, why_step_gone
from holdfast.stores.sql.engine import Transaction

_USE_RULE = """
UPDATE standing_rule SET used = used + 1 WHERE tenant = ? AND id = ? AND ended_at IS NULL AND expires_at > ?
  AND (most IS NULL OR used < most)
"""
_RULE = "SELECT ended_by, expires_at FROM standing_rule WHERE tenant = ? AND id = ?"
# The plan is locked: whoever revokes it does so before this claim, or after it.
_PLAN = "SELECT ended_by, expires_at FROM plan WHERE tenant = ? AND id = ? /* FOR UPDATE */"
_USE_STEP = """
UPDATE plan_step SET used_nonce = ?, call_id = ? WHERE tenant = ? AND plan = ? AND number = ?
  AND used_nonce IS NULL
"""

_ON = """
SELECT approval_id FROM operation WHERE tenant = ? AND principal = ? AND tool = ? AND key = ? AND nonce = ?
"""
_GRANT_BACK = "UPDATE approval SET used_nonce = NULL WHERE tenant = ? AND id = ? AND used_nonce = ?"
_GRANT_AGAIN = "UPDATE approval SET used_nonce = ?3 WHERE tenant = ?1 AND id = ?2 AND used_nonce IS NULL"
_RULE_BACK = "UPDATE standing_rule SET used = used - 1 WHERE tenant = ? AND id = ? AND used > 0"
_RULE_AGAIN = "UPDATE standing_rule SET used = used + 1 WHERE tenant = ? AND id = ?"
_STEP_BACK = """
UPDATE plan_step SET used_nonce = NULL, call_id = NULL
WHERE tenant = ? AND plan = ? AND number = ? AND used_nonce = ?
"""
_STEP_AGAIN = """
UPDATE plan_step SET used_nonce = ?4, call_id = ?5
WHERE tenant = ?1 AND plan = ?2 AND number = ?3 AND used_nonce IS NULL
"""

RULE_IDS, PLAN_IDS = "rul_", "pln_"
"""How the names of rules and plans begin; an approval's begins otherwise."""


async def use_rule(
    transaction: Transaction, gate: str, stage: UseRule, tenant: str, now: float
) -> Denied | None:
    if await transaction.run(_USE_RULE, (tenant, stage.rule_id, now)) == 1:
        return None
    found = await transaction.one(_RULE, (tenant, stage.rule_id))
    ended_by, expires_at = found or (None, 0.0)
    return standing_denied(gate, f"rule '{stage.rule_id}'", why_rule_ended(ended_by, expires_at <= now))


async def use_step(
    transaction: Transaction, gate: str, stage: UseStep, tenant: str, now: float, nonce: str, call_id: str
) -> Denied | None:
    name = (tenant, stage.plan_id, stage.number)
    found = await transaction.one(_PLAN, name[:2])
    ended_by, expires_at = found or (None, 0.0)
    stands = ended_by is None and expires_at > now
    if stands and await transaction.run(_USE_STEP, (nonce, call_id, *name)) == 1:
        return None
    why = why_step_gone(ended_by, expires_at <= now)
    return standing_denied(gate, f"plan '{stage.plan_id}'", why)


async def give_back(transaction: Transaction, ref: OperationRef, nonce: str) -> None:
    """An attempt without effect has not used up what it rests on; APR-4."""
    match await _used(transaction, ref, nonce):
        case (None, _):
            pass
        case (str(rule), _) if rule.startswith(RULE_IDS):
            await transaction.run(_RULE_BACK, (ref.tenant, rule))
        case (str(plan), int(number)):
            await transaction.run(_STEP_BACK, (ref.tenant, plan, number, nonce))
        case (approval, _):
            await transaction.run(_GRANT_BACK, (ref.tenant, approval, nonce))


async def take_again(transaction: Transaction, ref: OperationRef, nonce: str, call_id: str) -> None:
    """It had an effect after all."""
    match await _used(transaction, ref, nonce):
        case (None, _):
            pass
        case (str(rule), _) if rule.startswith(RULE_IDS):
            await transaction.run(_RULE_AGAIN, (ref.tenant, rule))
        case (str(plan), int(number)):
            await transaction.run(_STEP_AGAIN, (ref.tenant, plan, number, nonce, call_id))
        case (approval, _):
            await transaction.run(_GRANT_AGAIN, (ref.tenant, approval, nonce))


async def _used(transaction: Transaction, ref: OperationRef, nonce: str) -> tuple[str | None, int | None]:
    """What an attempt rests on, and which step where that is a plan."""
    found = await transaction.one(_ON, (*ref, nonce))
    if found is None or found[0] is None:
        return None, None
    name, _, number = str(found[0]).partition("#")
    return name, int(number) if number and name.startswith(PLAN_IDS) else None
