"""Is this call allowed, and on what condition?

Policy stands outside the model and denies by default. What it decides, and why, is
kept on the call: the approval gate reads the condition, the record keeps the rest.
"""

from holdfast.model.call import Call, Decision
from holdfast.model.errors import Code
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.model.vocabulary import SafetyMode
from holdfast.ports import Ports

_READ_ONLY = SafetyMode.READ_ONLY


async def policy(call: Call, ports: Ports) -> Verdict:
    foreign = _foreign_tenant(call)
    if foreign is not None:
        return foreign
    decision = call.decision = _own_reading(ports) if call.principal.system else ports.policy.decide(call)
    if not decision.allow and ports.promotion is not None and await ports.promotion.follow():
        decision = call.decision = ports.policy.decide(call)  # other policies are in force by now
    if not decision.allow:
        why = "; ".join(decision.reasons) or "no policy permits it"
        return Refusal(Code.POLICY_VIOLATION, f"policy does not allow this call: {why}")
    if call.writes and call.proposal.safety_mode is _READ_ONLY:
        return Refusal(Code.POLICY_VIOLATION, "safety mode 'read_only' refuses every write")
    return PASS


def _own_reading(ports: Ports) -> Decision:
    """The gateway reads for a gate; `authorize` has seen that it is a read."""
    return Decision(
        id=f"pd_{ports.ids.nonce()}", allow=True, reasons=("own reading",), version=ports.policy.version
    )


def _foreign_tenant(call: Call) -> Refusal | None:
    """A tenant named in the arguments must be the caller's own; AUT-6+."""
    name = call.tool.contract.security.tenant_argument
    if name is None or call.arguments.get(name, call.principal.tenant) == call.principal.tenant:
        return None
    call.alarms.append(f"argument {name!r} names another tenant")
    return Refusal(Code.PERMISSION_DENIED, f"argument {name!r} must be your own tenant")
