"""Has a person said yes, where one must?

An approved call is not resumed: it is proposed again and lives its whole life anew,
so policy and state are judged as they are now. The grant is consumed with the claim.
"""

from holdfast.model.approval import Answer, Approval, Need, needed
from holdfast.model.call import Call
from holdfast.model.derive import join
from holdfast.model.errors import Code, TooManyAsks
from holdfast.model.stage import UseGrant
from holdfast.model.verdict import PASS, Hold, Refusal, Verdict
from holdfast.model.vocabulary import Floor
from holdfast.ports import Ports


async def approval(call: Call, ports: Ports) -> Verdict:
    declared = call.tool.contract.security.approval_floor
    ref, need = call.ref, needed(declared, call.decision)
    if not need or call.principal.system:
        return PASS
    if ref is None:
        return Refusal(
            Code.KEY_REQUIRED, "a call that needs approval needs a key, so that the answer finds it"
        )
    found = await ports.approvals.find(ref)
    if found is not None:
        return _judge(call, found, need, ports)
    lacking = _lacking(call, need, ports)
    if lacking is not None:
        return lacking
    try:
        asked = await ports.approvals.ask(call, need, packet(call, join(declared, call.decision.floor)))
    except TooManyAsks as error:
        return Refusal(Code.RATE_LIMITED, str(error), retry_after_ms=60_000)
    return _hold(asked, ports)


def _judge(call: Call, found: Approval, need: Need, ports: Ports) -> Verdict:
    if found.answer in (Answer.DENIED, Answer.AUTO_DENIED):
        why = "nobody answered in time" if found.answer is Answer.AUTO_DENIED else "a person said no"
        return Refusal(
            Code.APPROVAL_DENIED, f"approval {found.id!r} was denied: {why}; this key stays denied"
        )
    if found.fingerprint != call.fingerprint or found.contract_digest != call.tool.contract.digest:
        call.alarms.append(f"approval {found.id} is for another call")
        return Refusal(Code.KEY_MISMATCH, f"approval {found.id!r} is for other arguments or another contract")
    if any(found.need.get(role, 0) < count for role, count in need.items()):
        call.alarms.append(f"the need for approval rose after approval {found.id} was asked for")
        return Refusal(
            Code.APPROVAL_DENIED,
            f"more approval is needed now than {found.id!r} asked for; use a new key",
        )
    if found.answer is Answer.PENDING:
        return _hold(found, ports)
    call.stage("approval", UseGrant(found.id))
    return PASS


def _lacking(call: Call, need: Need, ports: Ports) -> Refusal | None:
    """Better a clear no than a question nobody here could answer."""
    for role, count in need.items():
        holders = ports.people.holders(call.principal.tenant, role)
        if role != "user":
            holders -= {call.principal.user}
        if len(holders) < count:
            return Refusal(
                Code.APPROVAL_DENIED,
                f"this call needs {count} x {role!r} and only {len(holders)} other people here hold that role; "
                "add them under 'auth.people' in the configuration",
                next_action="ask_operator_to_configure_people",
            )
    return None


def packet(call: Call, floor: Floor) -> dict[str, object]:
    """What the approver sees, frozen now."""
    contract, effects = call.tool.contract, call.tool.contract.transactional
    return {
        "action": f"{contract.tool}@{contract.version}",
        "consequence": contract.affordance.side_effects or contract.affordance.description,
        "arguments": call.tool.input.sensitivity.redact(call.arguments),
        "effects": [entry.model_dump(mode="json") for entry in effects.manifest],
        "risk_class": effects.effect.value,
        "why": list(call.decision.reasons),
        "floor": floor.value,
        "undo": effects.undo.value,
        "rollback": effects.rollback_plan or (effects.compensation.tool if effects.compensation else "none"),
        "fingerprint": call.fingerprint,
        "requested_by": call.principal.id,
        "if_rejected": "the call is refused with APPROVAL_DENIED and its key stays denied",
        "trace_id": call.trace_id,
    }


def _hold(asked: Approval, ports: Ports) -> Hold:
    shown = asked.shown(ports.base_url)
    who = ", ".join(f"{count} x {role}" for role, count in asked.missing.items())
    return Hold(
        shown,
        f"waiting for {who} to approve {asked.id!r} until {shown.expires_at}; then call again with the same key",
    )
