"""What does the audit keep of a call?

S1's fifteen fields, in our words. Never a raw argument, a result or a field error's value: arguments and
outcome appear as keyed commitments (CON-6), so a record proves what was said without saying it. What policy
judged is kept sealed: it can be judged again (AUD-3) for as long as its tenant's key is kept. So is the
operation's name.
"""

from base64 import b64decode
from binascii import b2a_base64
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from holdfast.model.call import Call, Decision, Principal, Proposal
from holdfast.model.contract import Contract
from holdfast.model.costs import spent
from holdfast.model.derive import mutation_class
from holdfast.model.errors import Code, StoreError
from holdfast.model.holders import brought
from holdfast.model.moment import iso_cut
from holdfast.model.observation import Observation, Status
from holdfast.model.operation import Operation
from holdfast.model.stage import RESTS_ON, approval_of
from holdfast.model.steps import ORDER
from holdfast.model.tool import Tool
from holdfast.model.verdict import Pass
from holdfast.ports import Secrets, Settlement

_DENIALS = frozenset({Code.PERMISSION_DENIED, Code.POLICY_VIOLATION, Code.APPROVAL_DENIED})
_KINDS: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number"}


class _Facts(NamedTuple):
    """What every record of one contract says."""

    tool: str
    operation: str | None = None
    mutation_class: str | None = None
    declared: Any = ()
    """The effect manifest, written already."""
    contract_digest: str | None = None


class Claimed(NamedTuple):
    """The operation that an intent speaks of."""

    principal: str
    tool: str
    key: str
    fingerprint: str
    window_s: float


_FACTS: dict[str, _Facts] = {}
_MOST_FACTS = 4096  # contracts in use are few; old versions need not be remembered
LONGEST_TASK = 200
"""Characters of a task's name that are kept: an agent may call it anything."""


def intent_body(call: Call, at: float, secrets: Secrets | None = None) -> str:
    """A call about to run; with `secrets`, what policy judged is kept too."""
    facts, principal = _facts(call.tool), call.proposal.principal
    decision: Decision | None = getattr(call, "decision", None)
    told: dict[str, Any] = {
        "timestamp": iso_cut(at),
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
        "policy_decision_id": None if decision is None else decision.id,
        "contract_digest": facts.contract_digest,
        "decision": _decision(decision, principal.tenant, secrets),
        "claim": None if secrets is None else _claim(call, secrets),
    }
    if call.proposal.task is not None:
        _belonging(told, call.proposal)
    if principal.act:
        _handed(told, principal)
    return dumps(told)


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
    facts = _Facts(call.proposal.tool) if tool is None else _facts(tool)
    principal, approval = call.proposal.principal, observation.approval
    decision: Decision | None = getattr(call, "decision", None)
    told: dict[str, Any] = {
        "timestamp": iso_cut(at),
        "trace_id": call.trace_id,
        "caller": principal.user,
        "agent": principal.agent,
        "tool": facts.tool,
        "operation": facts.operation,
        "input_commitment": call.commitment,
        "output_summary": _summary(observation.data),
        "output_commitment": output_commitment,
        "mutation_class": facts.mutation_class,
        "side_effects": [_effect(mutation) for mutation in observation.mutations],
        "auth_decision": _auth_decision(decision, observation, code),
        "approval_id": _grant(call) if approval is None else approval.id,
        "latency_ms": observation.latency_ms,
        "status": observation.status._value_,
        "error_code": code,
        "nonce": call.nonce,
        "policy_decision_id": None if decision is None else decision.id,
        "attempts": observation.attempts,
        "replayed": observation.replayed,
        "state": None if call.operation is None else state,  # of the operation, where there is one
        "alarms": call.alarms,
        "contract_digest": facts.contract_digest,
        "decision": None if secrets is None else _decision(decision, principal.tenant, secrets),
        "gates": _gates(call),
    }
    if call.verdicts and not isinstance((last := call.verdicts[-1])[1], Pass):
        told["gate"] = last[0]
    if call.proposal.task is not None:
        _belonging(told, call.proposal)
    if call.attempts and (cost := spent(call)) is not None:
        told["cost"] = cost
    if (standing := call.proposal.fallback) is not None and standing.level:
        told["fallback"] = {"capability": standing.capability, "level": standing.level}
    if tool is not None and (tool.contract.labels or call.shows) and (labels := brought(call, observation)):
        told["labels"] = labels
    if principal.act:
        _handed(told, principal)
    return dumps(told)


def _gates(call: Call) -> list[int] | dict[str, int]:
    """After how many microseconds each step was over; by name where a gate before the last was not asked."""
    asked, started = call.verdicts, call.started
    micros = [int((at - started) * 1e6) for at in call.marks]
    if not asked or asked[-1][0] == ORDER[len(asked) - 1]:
        return micros
    return dict(zip([name for name, _ in asked], micros, strict=False))


def _belonging(told: dict[str, Any], proposal: Proposal) -> None:
    """To which task it belongs; of a step of a chain, to which call, and upon which other steps it rests."""
    told["task"] = None if proposal.task is None else proposal.task[:LONGEST_TASK]
    if proposal.part_of:
        told["part_of"] = proposal.part_of
    if proposal.after:
        told["after"] = proposal.after


def _handed(told: dict[str, Any], principal: Principal) -> None:
    """By which delegation somebody acts, and for whom it was handed on; AUT-2."""
    if principal.handed_on:
        told["act"] = principal.act
    tokens = [name for name in principal.rests_on if name.startswith("token:")]
    if tokens:
        told["delegation"] = tokens[-1].removeprefix("token:")


def kind_of_unrun(observation: Observation) -> str:
    """What a record about a call that did not run is called."""
    if observation.replayed:
        return "replay"
    return "hold" if observation.status is Status.HELD else "refusal"


def act_body(at: float, act: str, by: str, **members: Any) -> str:
    """Something a person or the gateway itself did to a call or to the gateway."""
    return dumps({"timestamp": iso_cut(at), "operation": act, "caller": by, **members})


def settle_body(at: float, operation: Operation, settlement: Settlement) -> str:
    """How an operation's outcome became known after the fact."""
    said = {"from": operation.state, "to": settlement.state, "note": settlement.note}
    labels = {"labels": settlement.labels} if settlement.labels else {}
    return act_body(at, "settle", settlement.by, **said, nonce=operation.nonce, **labels)


def dumps(members: dict[str, Any]) -> str:
    return orjson.dumps(members).decode()


def _facts(tool: Tool) -> _Facts:
    digest = tool.contract.digest
    found = _FACTS.get(digest)
    if found is None:
        if len(_FACTS) >= _MOST_FACTS:
            _FACTS.clear()
        found = _FACTS[digest] = _looked_up(tool.contract)
    return found


def _looked_up(contract: Contract) -> _Facts:
    promise = contract.transactional
    declared = [
        {"resource": entry.resource, "operation": entry.operation, "scope": entry.scope}
        for entry in promise.manifest
    ]
    kind = mutation_class(promise.effect, promise.undo)
    name = f"{contract.tool}@{contract.version}"
    written = orjson.Fragment(orjson.dumps(declared))
    return _Facts(name, contract.identity.name, kind.value, written, contract.digest)


def _grant(call: Call) -> str | None:
    for _, stage in call.staged:
        if type(stage) in RESTS_ON:
            return approval_of(stage)
    return None


def _decision(decision: Decision | None, tenant: str, secrets: Secrets | None) -> dict[str, Any] | None:
    """What policy said, and sealed, what it was asked."""
    if decision is None:
        return None
    told = {
        "version": decision.version,
        "allow": decision.allow,
        "floor": decision.floor._value_,
        "need": dict(decision.need),
        "risk": decision.risk,
        "policies": decision.policies,
    }
    if decision.redact:
        told["redact"] = decision.redact
    if decision.verify:
        told["verify"] = decision.verify
    if decision.facts is not None and secrets is not None:
        told["facts"] = _sealed(secrets, tenant, decision.facts)
    return told


def _claim(call: Call, secrets: Secrets) -> str | None:
    """Sealed, what is claimed: a ledger that lost the operation knows it again from its records (PPL-5)."""
    if call.key is None or not call.writes:
        return None
    principal, contract = call.proposal.principal, call.tool.contract
    said = (principal.id, contract.tool, call.key, call.fingerprint, contract.window_s)
    return _sealed(secrets, principal.tenant, said)


def _sealed(secrets: Secrets, tenant: str, said: object) -> str:
    return b2a_base64(secrets.seal(tenant, orjson.dumps(said)), newline=False).decode()


def claim_of(body: Mapping[str, Any], tenant: str, secrets: Secrets) -> Claimed | None:
    """What an intent claimed; None where it claimed nothing, or its tenant's key is gone."""
    sealed = body.get("claim")
    if not isinstance(sealed, str):
        return None
    try:
        return Claimed(*orjson.loads(secrets.unseal(tenant, b64decode(sealed))))
    except (StoreError, ValueError, TypeError):
        return None


def _auth_decision(decision: Decision | None, observation: Observation, code: Code | None) -> str:
    if observation.status is Status.HELD:
        return "REQUIRES_APPROVAL"
    if code is not None and code in _DENIALS:
        return "DENY"
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
