"""Is this call allowed, and on what condition?

Policy stands outside the model and denies by default. What it decides, and why, is
kept on the call: the approval gate reads the condition, the record keeps the rest.
"""

from holdfast.model.call import Call, Decision
from holdfast.model.errors import Code
from holdfast.model.resources import ANYTHING, kind_of, resources
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.model.vocabulary import SafetyMode
from holdfast.ports import Ports

_READ_ONLY = SafetyMode.READ_ONLY


async def policy(call: Call, ports: Ports) -> Verdict:
    foreign = _foreign_tenant(call)
    if foreign is not None:
        return foreign
    if call.principal.bounds.resources is not None and (beyond := _beyond(call)) is not None:
        return beyond
    decision = call.decision = _own_reading(ports) if call.principal.system else ports.policy.decide(call)
    if decision.wants_labels:  # a policy asks what the caller has seen; of most tools none does
        decision = call.decision = await ports.judged(call)
    if not decision.allow and ports.promotion is not None and await ports.promotion.follow():
        decision = call.decision = await ports.judged(call)  # other policies are in force by now
    if decision.alert and not call.previewing:
        call.alarms += decision.alert
    if not decision.allow:
        why = "; ".join(decision.reasons) or "no policy permits it"
        return Refusal(Code.POLICY_VIOLATION, f"policy does not allow this call: {why}")
    if decision.verify and (lacking := _unverifiable(call, decision)) is not None:
        return lacking
    if call.writes and call.proposal.safety_mode is _READ_ONLY:
        return Refusal(Code.POLICY_VIOLATION, "safety mode 'read_only' refuses every write")
    return PASS


def _unverifiable(call: Call, decision: Decision) -> Refusal | None:
    """Better not to act than to act and not be able to show it."""
    declared = {"postconditions": call.tool.postconditions, "probe": call.tool.probe}
    for way in decision.verify if call.writes else ():
        if not declared[way]:
            asks, name = ", ".join(map(repr, decision.policies)), call.tool.contract.tool
            text = f"policy {asks} wants the effect shown by {way!r}, and {name!r} declares none"
            return Refusal(Code.POLICY_VIOLATION, f"{text}; declare it in the contract")
    return None


def _own_reading(ports: Ports) -> Decision:
    """The gateway reads for a gate; `authorize` has seen that it is a read."""
    return Decision(
        id=f"pd_{ports.ids.nonce()}", allow=True, reasons=("own reading",), version=ports.policy.version
    )


def _beyond(call: Call) -> Refusal | None:
    """A delegation may reach some resources alone; the tool is theirs to see (VAL-2+)."""
    bounds, contract = call.principal.bounds, call.tool.contract
    for resource in resources(contract, call.arguments):
        if not bounds.reaches(contract.tool, (resource,)):
            what = "what this tool touches" if resource == ANYTHING else f"these {kind_of(resource)!r}"
            return Refusal(Code.PERMISSION_DENIED, f"what was delegated to you does not reach {what}")
    return None


def _foreign_tenant(call: Call) -> Refusal | None:
    """A tenant named in the arguments must be the caller's own; AUT-6+."""
    name = call.tool.contract.security.tenant_argument
    if name is None or call.arguments.get(name, call.principal.tenant) == call.principal.tenant:
        return None
    call.alarms.append(f"argument {name!r} names another tenant")
    return Refusal(Code.PERMISSION_DENIED, f"argument {name!r} must be your own tenant")
