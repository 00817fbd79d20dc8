"""The plain way to write a record, kept as it was first written: whatever is faster must say the same."""

from base64 import b64encode
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from holdfast.model.call import Call
from holdfast.model.derive import mutation_class
from holdfast.model.errors import Code
from holdfast.model.observation import Observation, Status
from holdfast.model.stage import UseGrant
from holdfast.model.steps import ORDER
from holdfast.model.tool import Tool
from holdfast.model.verdict import PASS
from holdfast.ports import Secrets

_DENIALS = frozenset({Code.PERMISSION_DENIED, Code.POLICY_VIOLATION, Code.APPROVAL_DENIED})
_KINDS: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number"}


class _Facts(NamedTuple):
    """What every record of one contract says."""

    tool: str
    operation: str
    mutation_class: str
    declared: list[dict[str, str]]
    contract_digest: str | None = None


def intent_body(call: Call, at: float, secrets: Secrets | None = None) -> str:
    """A call about to run; with `secrets`, what policy judged is kept too."""
    facts, principal = _facts(call.tool), call.principal
    return dumps(
        {
            "timestamp": _iso(at),
            "trace_id": call.trace_id,
            "caller": principal.user,
            "agent": principal.agent,
            "tool": facts.tool,
            "operation": facts.operation,
            "input_commitment": call.commitment,
            "output_summary": None,
            "mutation_class": facts.mutation_class,
            "side_effects": facts.declared,
            "auth_decision": "ALLOW",
            "approval_id": _grant(call),
            "latency_ms": None,
            "status": None,
            "error_code": None,
            "nonce": call.nonce,
            "policy_decision_id": _decision_id(call),
            "contract_digest": facts.contract_digest,
            "decision": _decision(call, secrets),
            "claim": None if secrets is None else _claim(call, secrets),
            **_task(call),
            **_handed(call),
        }
    )


def outcome_body(
    call: Call,
    at: float,
    observation: Observation,
    code: Code | None,
    output_commitment: str | None,
    state: str | None = None,
    secrets: Secrets | None = None,
) -> str:
    """A call that ran, was refused, held or replayed; `code` may say more than the caller was told."""
    tool: Tool | None = getattr(call, "tool", None)  # a call refused early has none
    facts = _Facts(call.proposal.tool, "", "", []) if tool is None else _facts(tool)
    principal, approval = call.principal, observation.approval
    return dumps(
        {
            "timestamp": _iso(at),
            "trace_id": call.trace_id,
            "caller": principal.user,
            "agent": principal.agent,
            "tool": facts.tool,
            "operation": facts.operation or None,
            "input_commitment": call.commitment,
            "output_summary": _summary(observation.data),
            "output_commitment": output_commitment,
            "mutation_class": facts.mutation_class or None,
            "side_effects": [_effect(mutation) for mutation in observation.mutations],
            "auth_decision": _auth_decision(call, observation, code),
            "approval_id": _grant(call) if approval is None else approval.id,
            "latency_ms": observation.latency_ms,
            "status": observation.status,
            "error_code": code,
            "nonce": call.nonce,
            "policy_decision_id": _decision_id(call),
            "attempts": observation.attempts,
            "replayed": observation.replayed,
            "state": None if call.operation is None else state,  # of the operation, where there is one
            "alarms": call.alarms,
            "contract_digest": facts.contract_digest,
            "decision": None if secrets is None else _decision(call, secrets),
            "gates": _gates(call),
            **_gate(call),
            **_task(call),
            **_handed(call),
        }
    )


def dumps(members: dict[str, Any]) -> str:
    return orjson.dumps(members).decode()


def _facts(tool: Tool) -> _Facts:
    contract = tool.contract
    promise = contract.transactional
    declared = [
        {"resource": entry.resource, "operation": entry.operation, "scope": entry.scope}
        for entry in promise.manifest
    ]
    kind = mutation_class(promise.effect, promise.undo)
    name = f"{contract.tool}@{contract.version}"
    return _Facts(name, contract.identity.name, kind, declared, contract.digest)


def _grant(call: Call) -> str | None:
    for _, stage in call.staged:
        if isinstance(stage, UseGrant):
            return stage.approval_id
    return None


def _decision(call: Call, secrets: Secrets | None) -> dict[str, Any] | None:
    """What policy said, and sealed, what it was asked."""
    decision = getattr(call, "decision", None)
    if decision is None:
        return None
    told = {
        "version": decision.version,
        "allow": decision.allow,
        "floor": decision.floor,
        "need": dict(decision.need),
        "risk": decision.risk,
        "policies": decision.policies,
    }
    told |= {name: said for name in ("redact", "verify") if (said := getattr(decision, name))}
    if decision.facts is not None and secrets is not None:
        told["facts"] = b64encode(secrets.seal(call.principal.tenant, orjson.dumps(decision.facts))).decode()
    return told


def _claim(call: Call, secrets: Secrets) -> str | None:
    """Sealed, what is claimed: a ledger that lost the operation knows it again from its records (PPL-5)."""
    if call.ref is None or not call.writes:
        return None
    said = (call.ref.principal, call.ref.tool, call.ref.key, call.fingerprint, call.tool.contract.window_s)
    return b64encode(secrets.seal(call.ref.tenant, orjson.dumps(said))).decode()


def _handed(call: Call) -> dict[str, Any]:
    """By which delegation somebody acts, and for whom it was handed on."""
    principal = call.principal
    if not principal.act:
        return {}
    told: dict[str, Any] = {} if principal.act == (principal.agent,) else {"act": list(principal.act)}
    tokens = [name for name in principal.rests_on if name.startswith("token:")]
    return told | ({"delegation": tokens[-1].removeprefix("token:")} if tokens else {})


def _gates(call: Call) -> list[int] | dict[str, int]:
    """After how many microseconds each step was over, by name where the names are not the first of all."""
    names = [*(name for name, _ in call.verdicts), "execute", "verify"][: len(call.marks)]
    over = {name: int((mark - call.started) * 1e6) for name, mark in zip(names, call.marks, strict=True)}
    return list(over.values()) if tuple(names) == ORDER[: len(names)] else over


def _gate(call: Call) -> dict[str, str]:
    """The gate that did not let it pass."""
    refused = [name for name, verdict in call.verdicts if verdict != PASS]
    return {"gate": refused[0]} if refused else {}


def _task(call: Call) -> dict[str, str]:
    task = call.proposal.task
    return {} if task is None else {"task": task[:200]}


def _decision_id(call: Call) -> str | None:
    decision = getattr(call, "decision", None)
    return None if decision is None else decision.id


def _auth_decision(call: Call, observation: Observation, code: Code | None) -> str:
    if observation.status is Status.HELD:
        return "REQUIRES_APPROVAL"
    if code in _DENIALS:
        return "DENY"
    decision = getattr(call, "decision", None)
    if decision is not None:
        return "ALLOW" if decision.allow else "DENY"
    return "DENY" if observation.status is Status.REFUSED else "ALLOW"


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
    second, fraction = divmod(at, 1.0)
    return f"{_to_the_second(second)}.{int(fraction * 1000):03d}+00:00"


def _to_the_second(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
