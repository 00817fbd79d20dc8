"""How is an observation written as JSON?

NAM-4, member by member and in this order: spelled out, because it is done for every call and a loop over the
names costs three times as much. Members marked `?` there are left out where there is nothing to say.
"""

from typing import TYPE_CHECKING, Any

from holdfast.model.errors import NO_REMEDY, Remedy

if TYPE_CHECKING:
    from holdfast.model.fields import FieldError
    from holdfast.model.observation import ApprovalRef, Observation, Outcome, Provenance, Timing


def members(said: "Observation") -> dict[str, Any]:
    """JSON data, but for what is in `data`, `native` and the other parts that are somebody else's."""
    told: dict[str, Any] = {"call_id": said.call_id, "tool": said.tool, "status": said.status._value_}
    if said.version is not None:
        told["version"] = said.version
    if said.code is not None:
        told["code"] = said.code._value_
    if said.message is not None:
        told["message"] = said.message
    told["field_errors"] = [_fault(fault) for fault in said.field_errors] if said.field_errors else []
    told["remedy"] = _NOTHING_TO_DO.copy() if said.remedy is NO_REMEDY else _remedy(said.remedy)
    told["data"] = said.data
    told["warnings"] = said.warnings
    if said.approval is not None:
        told["approval"] = _approval(said.approval)
    if said.outcome is not None:
        told["outcome"] = _outcome(said.outcome)
    told["replayed"] = said.replayed
    told["attempts"] = said.attempts
    if said.provenance is not None:
        told["provenance"] = _provenance(said.provenance)
    told["policy_decision_id"] = said.policy_decision_id
    told["trace_id"] = said.trace_id
    told["latency_ms"] = said.latency_ms
    if said.cost is not None:
        told["cost"] = said.cost
    if said.key is not None:
        told["key"] = said.key
    told["key_source"] = None if said.key_source is None else said.key_source._value_
    if said.timing is not None:
        told["timing"] = _timing(said.timing)
    if said.input_commitment is not None:
        told["input_commitment"] = said.input_commitment
    if said.grant is not None:
        told["grant"] = said.grant
    if said.pagination is not None:
        told["pagination"] = said.pagination
    told["citations"] = said.citations
    told["mutations"] = said.mutations
    if said.deprecation is not None:
        told["deprecation"] = said.deprecation
    if said.verification is not None:
        told["verification"] = said.verification
    if said.steps is not None:
        told["steps"] = said.steps
    if said.pending is not None:
        told["pending"] = said.pending
    if said.upstream_session is not None:
        told["upstream_session"] = said.upstream_session
    if said.preview is not None:
        told["preview"] = said.preview
    if said.fallback is not None:
        told["fallback"] = said.fallback
    if said.native is not None:
        told["native"] = said.native
    return told


def _fault(fault: "FieldError") -> dict[str, str]:
    return {
        "path": fault.path,
        "expected": fault.expected,
        "actual": fault.actual,
        "message": fault.message,
    }


def _remedy(remedy: Remedy) -> dict[str, Any]:
    told: dict[str, Any] = {
        "retryable": remedy.retryable,
        "repairable": remedy.repairable,
        "requires_approval": remedy.requires_approval,
        "fail_closed": remedy.fail_closed,
        "escalate": remedy.escalate,
        "next_action": remedy.next_action,
    }
    if remedy.retry_after_ms is not None:
        told["retry_after_ms"] = remedy.retry_after_ms
    return told


def _approval(approval: "ApprovalRef") -> dict[str, str]:
    return {"id": approval.id, "url": approval.url, "expires_at": approval.expires_at}


def _outcome(outcome: "Outcome") -> dict[str, str]:
    return {"rung": outcome.rung._value_, "strength": outcome.strength._value_}


def _provenance(provenance: "Provenance") -> dict[str, Any]:
    return {
        "source": provenance.source,
        "version": provenance.version,
        "retrieved_at": provenance.retrieved_at,
        "freshness": provenance.freshness,
        "confidence": provenance.confidence,
    }


def _timing(timing: "Timing") -> dict[str, str | None]:
    return {
        "queued_at": timing.queued_at,
        "started_at": timing.started_at,
        "completed_at": timing.completed_at,
    }


_NOTHING_TO_DO = _remedy(NO_REMEDY)
