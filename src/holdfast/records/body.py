"""What does the audit keep of a call?

S1's fifteen fields, in our words. Never a raw argument, a result or a field error's value: arguments and
outcome appear as keyed commitments (CON-6), so a record proves what was said without saying it.
"""

from datetime import UTC, datetime
from typing import Any

import orjson

from holdfast.model.call import Call
from holdfast.model.derive import mutation_class
from holdfast.model.errors import Code
from holdfast.model.observation import Observation, Status
from holdfast.model.stage import UseGrant
from holdfast.model.tool import Tool

_DENIALS = frozenset({Code.PERMISSION_DENIED, Code.POLICY_VIOLATION, Code.APPROVAL_DENIED})
_KINDS: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number"}


def intent_body(call: Call, at: float) -> str:
    """A call about to run."""
    members = _common(call, at)
    members["auth_decision"] = "ALLOW"
    members["side_effects"] = _declared(call.tool)
    members["nonce"] = call.nonce
    return dumps(members)


def outcome_body(
    call: Call,
    at: float,
    observation: Observation,
    code: Code | None,
    output_commitment: str | None,
    state: str | None = None,
) -> str:
    """A call that ran, was refused, held or replayed; `code` may say more than the caller was told."""
    members = _common(call, at)
    members["output_summary"] = _summary(observation.data)
    members["output_commitment"] = output_commitment
    members["side_effects"] = [_effect(mutation) for mutation in observation.mutations]
    members["auth_decision"] = _decision(call, observation, code)
    members["approval_id"] = observation.approval.id if observation.approval else members["approval_id"]
    members["latency_ms"] = observation.latency_ms
    members["status"] = observation.status
    members["error_code"] = code
    members["nonce"] = call.nonce
    members["attempts"] = observation.attempts
    members["replayed"] = observation.replayed
    members["state"] = state
    if call.alarms:
        members["alarms"] = call.alarms
    return dumps(members)


def act_body(at: float, act: str, by: str, **members: Any) -> str:
    """Something a person or the gateway itself did to a call or to the gateway."""
    return dumps({"timestamp": _iso(at), "operation": act, "caller": by, **members})


def dumps(members: dict[str, Any]) -> str:
    return orjson.dumps(members).decode()


def _common(call: Call, at: float) -> dict[str, Any]:
    tool: Tool | None = getattr(call, "tool", None)  # a call refused early has none
    members: dict[str, Any] = {
        "timestamp": _iso(at),
        "trace_id": call.trace_id,
        "caller": call.principal.user,
        "agent": call.principal.agent,
        "tool": call.proposal.tool,
        "operation": None,
        "input_commitment": call.commitment,
        "output_summary": None,
        "mutation_class": None,
        "side_effects": [],
        "auth_decision": None,
        "approval_id": next((s.approval_id for _, s in call.staged if isinstance(s, UseGrant)), None),
        "latency_ms": None,
        "status": None,
        "error_code": None,
        "policy_decision_id": getattr(getattr(call, "decision", None), "id", None),
    }
    if tool is not None:
        promise = tool.contract.transactional
        members["tool"] = f"{tool.contract.tool}@{tool.contract.version}"
        members["operation"] = tool.contract.identity.name
        members["mutation_class"] = mutation_class(promise.effect, promise.undo)
    return members


def _decision(call: Call, observation: Observation, code: Code | None) -> str:
    if observation.status is Status.HELD:
        return "REQUIRES_APPROVAL"
    if code in _DENIALS:
        return "DENY"
    decision = getattr(call, "decision", None)
    if decision is not None:
        return "ALLOW" if decision.allow else "DENY"
    return "DENY" if observation.status is Status.REFUSED else "ALLOW"


def _declared(tool: Tool) -> list[dict[str, str]]:
    manifest = tool.contract.transactional.manifest
    return [{"resource": e.resource, "operation": e.operation, "scope": e.scope} for e in manifest]


def _effect(mutation: dict[str, Any]) -> dict[str, str]:
    """The kind of change, not what was written."""
    return {name: str(mutation[name]) for name in ("resource", "operation", "scope") if name in mutation}


def _summary(data: Any) -> dict[str, Any] | None:
    """The shape of a result: what kind of value, how many members."""
    if data is None:
        return None
    kind = _KINDS.get(type(data), "number")
    return {"kind": kind, "size": len(data)} if isinstance(data, dict | list | str) else {"kind": kind}


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
