"""How is a record said in plain words, and why did a call not run?"""

from collections.abc import Mapping
from typing import Any

from holdfast.gateway.passages import Told
from holdfast.model.errors import Code
from holdfast.model.observation import Status
from holdfast.model.vocabulary import State

KINDS = {
    "intent": "claim",
    "outcome": "outcome",
    "late": "outcome",
    "contradiction": "outcome",
    "refusal": "gate",
    "hold": "gate",
    "replay": "gate",
    "ask": "approval",
    "escalate": "approval",
    "vote": "vote",
    "settle": "settle",
    "security": "security",
}
"""What sort of moment a kind of record is; the others are `control`."""

WHY: dict[Code, str] = {
    Code.TOOL_NOT_FOUND: "there is no such tool, or none that this caller may use",
    Code.VERSION_INCOMPATIBLE: "no usable version of the tool answers what was asked for",
    Code.TOOL_UNAVAILABLE: "it is halted, or its upstream does not answer",
    Code.TOOL_QUARANTINED: "the tool changed and waits for an operator to accept it",
    Code.PERMISSION_DENIED: "the caller may not use this tool, and was told that there is none",
    Code.SYNTACTIC_PARSE_FAIL: "the arguments cannot be read as JSON",
    Code.STRUCTURAL_VIOLATION: "the arguments lack something, or have something that does not belong there",
    Code.TYPE_MISMATCH: "an argument is of the wrong type",
    Code.OUT_OF_BOUNDS: "an argument is out of its bounds",
    Code.SEMANTIC_INVALIDITY: "the arguments do not make sense together",
    Code.POLICY_VIOLATION: "policy does not allow it",
    Code.STALE_STATE: "the target is not as the caller believed",
    Code.CONFLICT: "something changed while it was on its way",
    Code.APPROVAL_REQUIRED: "a person must say yes first",
    Code.APPROVAL_DENIED: "a person said no, or nobody said yes in time",
    Code.BUDGET_EXHAUSTED: "a budget is used up",
    Code.RATE_LIMITED: "a rate is used up for the moment",
    Code.RESOURCE_EXHAUSTED: "the store, or too many open questions, stood in its way",
    Code.KEY_REQUIRED: "a write needs a key, and it came without one",
    Code.KEY_IN_USE: "another call with its key was still running",
    Code.KEY_MISMATCH: "its key belongs to another operation",
    Code.KEY_EXPIRED: "the operation of its key is so old that its answer is no longer kept",
    Code.TIMEOUT: "its time was over",
    Code.CANCELLED: "it was cancelled before anything ran",
    Code.DEPENDENCY_UNAVAILABLE: "its upstream cannot be reached",
    Code.OUTPUT_INVALID: "the answer does not fit its contract",
    Code.EFFECT_MISMATCH: "what happened is not what its contract says",
    Code.COMPENSATION_REQUIRED: "a part of it happened and has to be undone",
    Code.COMPENSATION_FAILED: "a part of it happened and could not be undone",
    Code.OUTCOME_UNKNOWN: "it may or may not have happened",
    Code.INTERNAL: "something broke inside the gateway; the operator's log says what",
}


def why(code: str) -> str:
    return WHY[Code(code)] if code in Code.__members__ else code


def sentence(one: Told) -> str:
    """What a record says, for people. Names and notes in it may be anybody's: whoever shows it escapes it."""
    body = one.body
    by = str(body.get("caller", ""))
    match one.kind:
        case "intent":
            return f"claimed: {by} through {body.get('agent')} may act from here on{_resting(body)}"
        case "outcome" if "tool" not in body:
            return f"given up by {by} before anything was sent"
        case "outcome" if (body.get("status"), body.get("state")) == (Status.PARTIAL, State.UNKNOWN):
            return f"goes on without the call{_tried(body)}"
        case "outcome":
            return f"ended {_ending(body)}{_tried(body)}"
        case "late":
            return f"its answer came late: {_ending(body)}"
        case "contradiction":
            return f"ended {_ending(body)}, although the ledger said otherwise: check its target"
        case "refusal" if body.get("status") == Status.PREVIEW:
            return "previewed; nothing ran"
        case "refusal":
            return f"refused{_at_gate(body)}: {why(str(body.get('error_code') or ''))}"
        case "hold":
            return f"held{_at_gate(body)}: {why(Code.APPROVAL_REQUIRED)}"
        case "replay":
            return "asked again with the same key: got the first answer, nothing ran"
        case "ask":
            return f"asked for {need(body.get('need') or {})}"
        case "escalate":
            return f"escalated to {', '.join(body.get('to') or ()) or 'the next group'}"
        case "vote" if body.get("operation") == "expire":
            return "denied, because nobody answered in time"
        case "vote":
            return _vote(body, by)
        case "settle":
            return _settled(body, by)
        case "security":
            return f"security: {by}: {body.get('alarm')}"
        case _:
            return f"{body.get('operation') or one.kind} by {by}"


def need(need: Mapping[str, int]) -> str:
    """`2 x operator`, as everywhere else."""
    return ", ".join(f"{count} x {role}" for role, count in sorted(need.items())) or "nobody"


def settled_note(body: Mapping[str, Any]) -> str:
    """What was said to a settlement, without who said it."""
    by = f"settled by {body.get('caller')!r}"
    return str(body.get("note") or "").removeprefix(by).removeprefix(": ")


def _resting(body: Mapping[str, Any]) -> str:
    return f", by {body['approval_id']}" if body.get("approval_id") else ""


def _ending(body: Mapping[str, Any]) -> str:
    """Its status, its code, and where its operation stands."""
    told = str(body.get("status"))
    if body.get("error_code"):
        told += f" ({body['error_code']})"
    return f"{told}, {body['state']}" if body.get("state") else told


def _tried(body: Mapping[str, Any]) -> str:
    attempts = body.get("attempts") or 0
    return f" after {attempts} attempts" if attempts > 1 else ""


def _at_gate(body: Mapping[str, Any]) -> str:
    return f" by gate '{body['gate']}'" if body.get("gate") else ""


def _vote(body: Mapping[str, Any], by: str) -> str:
    said = "approved" if body.get("approve") else "denied"
    via = f", standing in with the role {body['via']}" if body.get("via") else ""
    return f"{said} by {by} as {body.get('role')}{via}"


def _settled(body: Mapping[str, Any], by: str) -> str:
    match body.get("operation"):
        case "count_lost_read":
            return "its worker died: what it read counts as used"
        case "settle":
            note = settled_note(body)
            if body.get("to") == State.UNKNOWN:
                return f"nobody knows whether it happened: {note}"
            return f"settled by {by}: {body.get('to')}{f' ({note})' if note else ''}"
        case did:
            return f"{did} by {by}"
