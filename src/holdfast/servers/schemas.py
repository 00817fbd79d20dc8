"""What do the JSON documents of the HTTP doors look like, as JSON Schema 2020-12?

Closed sets come from the code that owns them, so this page cannot fall behind.
"""

from enum import StrEnum
from typing import Any

from holdfast.model.approval import Answer
from holdfast.model.errors import Code
from holdfast.model.observation import Status
from holdfast.model.vocabulary import Effect, KeySource, Rung, Strength, ToolStatus

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
COUNT: Schema = {"type": "integer", "minimum": 0}
SECONDS: Schema = {"type": "number", "minimum": 1}
ANY: Schema = {}
FREE: Schema = {"type": "object"}
COUNTS: Schema = {"type": "object", "additionalProperties": {"type": "integer"}}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def many(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def words(kind: type[StrEnum]) -> Schema:
    return {"type": "string", "enum": [str(word) for word in kind]}


def or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None, about: str = "") -> Schema:
    schema = {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }
    return {"description": about, **schema} if about else schema


OBSERVATION = record(
    {
        "call_id": TEXT,
        "tool": TEXT,
        "status": ref("Status"),
        "field_errors": many(ref("FieldError")),
        "remedy": ref("Remedy"),
        "data": ANY,
        "warnings": many(TEXT),
        "replayed": FLAG,
        "attempts": COUNT,
        "policy_decision_id": or_null(TEXT),
        "trace_id": TEXT,
        "latency_ms": {"type": "number", "minimum": 0},
        "key_source": or_null(words(KeySource)),
        "citations": many(FREE),
        "mutations": many(FREE),
    },
    {
        "version": TEXT,
        "code": ref("Code"),
        "message": TEXT,
        "approval": ref("ApprovalRef"),
        "outcome": ref("Outcome"),
        "provenance": ref("Provenance"),
        "cost": FREE,
        "key": TEXT,
        "timing": ref("Timing"),
        "input_commitment": TEXT,
        "grant": FREE,
        "pagination": FREE,
        "deprecation": FREE,
        "verification": FREE,
        "steps": FREE,
        "pending": {**FREE, "description": "a job or a run that goes on without the call, and how far it is"},
        "upstream_session": FREE,
        "preview": FREE,
        "fallback": FREE,
        "native": FREE,
    },
    "What became of a call; the only thing a caller gets back.",
)

CALL = record(
    {
        "tool": {**TEXT, "description": "namespace.name, or namespace.name@version"},
        "arguments": {
            "type": ["object", "string"],
            "description": "an object, or a string that holds one as JSON",
        },
    },
    {
        "version": {**TEXT, "description": "exact, LATEST, 2.x, ^2.0.0 or a range"},
        "key": {**TEXT, "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
        "task": TEXT,
        "step": TEXT,
        "session": TEXT,
        "deadline_ms": {"type": "integer", "minimum": 1},
        "if_match": {**TEXT, "description": "the version or ETag of the target this call was planned on"},
        "approval_token": {**TEXT, "description": "what an approver's answer carried; optional"},
        "plan_token": {**TEXT, "description": "of a preview: run only if that still holds"},
        "plan": {**TEXT, "description": "an approved plan this is a step of; one that fits is found without"},
        "release": {
            "type": "string",
            "enum": ["caller", "gateway"],
            "description": "who proposes the call again once it is approved",
        },
        "preview": {**FLAG, "description": "tell what would happen, and do nothing"},
    },
    "One call of one tool. A member that is null counts as left out.",
)

TOOL = record(
    {
        "name": TEXT,
        "version": TEXT,
        "status": words(ToolStatus),
        "effect": words(Effect),
        "key_required": FLAG,
        "description": TEXT,
        "input_schema": FREE,
        "output_schema": FREE,
        "use_when": many(TEXT),
        "do_not_use_when": many(TEXT),
        "preconditions": many(TEXT),
        "side_effects": TEXT,
        "repair_hints": many(TEXT),
        "examples": many(record({"description": TEXT, "arguments": FREE})),
    },
    about="What a model may know about one tool version.",
)

APPROVAL = record(
    {
        "id": TEXT,
        "call_id": TEXT,
        "tool": TEXT,
        "asked_by": TEXT,
        "need": {**COUNTS, "description": "how many people of which role must say yes"},
        "missing": COUNTS,
        "answer": words(Answer),
        "used": FLAG,
        "votes": many(
            record({"person": TEXT, "role": TEXT, "approve": FLAG, "note": TEXT, "at": TIME}, {"via": TEXT})
        ),
        "level": {**COUNT, "description": "how often it was escalated"},
        "release": {"type": "string", "enum": ["caller", "gateway"]},
        "packet": FREE,
        "created_at": TIME,
        "expires_at": TIME,
    },
    {
        "token": {**TEXT, "description": "proof of an approval, in the answer to the vote that gave it"},
        "said": {**TEXT, "description": "why a release by the gateway came to nothing"},
    },
    about="One question to people.",
)

POLICY: dict[str, Schema] = {
    "id": TEXT,
    "effect": {"type": "string", "enum": ["permit", "forbid"]},
    "reason": TEXT,
    "place": {**TEXT, "description": "file:line:column"},
    "text": TEXT,
}
EXPLANATION = record(
    {"tool": TEXT, "allowed": FLAG, "call_id": {**TEXT, "description": "where this answer is recorded"}},
    {
        "decision_id": TEXT,
        "ask": {**TEXT, "description": "whom to ask, where the rest may not be told"},
        "gate": TEXT,
        "code": ref("Code"),
        "message": TEXT,
        "need": {**COUNTS, "description": "who would have to approve it"},
        "policies": many(record(POLICY)),
        "closest": record({**POLICY, "failing": many(TEXT)}, about="The permit that nearly held."),
        "changes": {**many(TEXT), "description": "single changes, each of which would allow it"},
    },
    "Why a call is allowed or not.",
)

HEX: Schema = {**TEXT, "pattern": "^[0-9a-f]{64}$"}
AUDIT_RECORD = record(
    {
        "record": {**TEXT, "description": "its name: writer:number"},
        "leaf": {**COUNT, "description": "its place in the tree"},
        "call_id": TEXT,
        "kind": TEXT,
        "at": TIME,
        "hash": HEX,
        "body": FREE,
    },
    about="One audit entry, to read.",
)
EXACT_RECORD = record(
    {
        "tenant": TEXT,
        "writer": TEXT,
        "seq": COUNT,
        "call_id": TEXT,
        "kind": TEXT,
        "at": {"type": "number"},
        "body": {**TEXT, "description": "the exact text that was hashed"},
        "prev": HEX,
        "hash": HEX,
    },
    about="One audit entry, as it was hashed.",
)
AUDIT_PROOF = record(
    {
        "record": ref("ExactRecord"),
        "leaf": COUNT,
        "size": COUNT,
        "root": HEX,
        "path": many(HEX),
        "checkpoint": {**or_null(TEXT), "description": "the signed note of `root`; null: not anchored yet"},
        "anchored": FLAG,
    },
    about="That a record is in the tree of `size` records; RFC 6962.",
)

RPC_ID: Schema = {"type": ["string", "number", "null"]}
RPC_REQUEST = record(
    {
        "jsonrpc": {"const": "2.0"},
        "method": {"type": "string", "enum": ["tools.list", "tools.call", "calls.get"]},
    },
    {"params": FREE, "id": RPC_ID},
    "A request without an id is a notification and has no answer.",
)
RPC_ERROR = record({"code": {"type": "integer"}, "message": TEXT}, {"data": ANY})
RPC_RESPONSE = record({"jsonrpc": {"const": "2.0"}, "id": RPC_ID}, {"result": ANY, "error": RPC_ERROR})

SCHEMAS: dict[str, Schema] = {
    "Observation": OBSERVATION,
    "Status": words(Status),
    "Code": {"description": "The closed set of reasons.", **words(Code)},
    "FieldError": record(
        {"path": TEXT, "expected": TEXT, "actual": TEXT, "message": TEXT}, about="`path` is a JSON Pointer."
    ),
    "Remedy": record(
        {
            "retryable": FLAG,
            "repairable": FLAG,
            "requires_approval": FLAG,
            "fail_closed": FLAG,
            "escalate": FLAG,
            "next_action": TEXT,
        },
        {"retry_after_ms": COUNT},
        "What may be done now.",
    ),
    "ApprovalRef": record({"id": TEXT, "url": TEXT, "expires_at": TEXT}),
    "Outcome": record({"rung": words(Rung), "strength": words(Strength)}),
    "Provenance": record(
        {
            "source": TEXT,
            "version": TEXT,
            "retrieved_at": TEXT,
            "freshness": TEXT,
            "confidence": {"type": "number"},
        }
    ),
    "Timing": record({"queued_at": TEXT, "started_at": or_null(TEXT), "completed_at": TEXT}),
    "Call": CALL,
    "Tool": TOOL,
    "ToolPage": record({"tools": many(ref("Tool")), "next_cursor": or_null(TEXT)}, {"hint": TEXT}),
    "Why": record({"tool": TEXT}, {"arguments": {"type": ["object", "string"]}}, "A call that is not made."),
    "Explanation": EXPLANATION,
    "AuditRecord": AUDIT_RECORD,
    "AuditPage": record({"records": many(ref("AuditRecord")), "next_cursor": or_null(TEXT)}),
    "AuditProof": AUDIT_PROOF,
    "ExactRecord": EXACT_RECORD,
    "Approval": APPROVAL,
    "Approvals": record({"approvals": many(ref("Approval"))}),
    "Decision": record({"decision": {"type": "string", "enum": ["approve", "deny"]}}, {"note": TEXT}),
    "Settlement": record({"outcome": {"type": "string", "enum": ["committed", "no-effect"]}, "note": TEXT}),
    "CalledBack": record({"status": TEXT}),
    "Cancellation": record(
        {"call_id": TEXT, "result": {"type": "string", "enum": ["cancelled", "requested", "too late"]}}
    ),
    "Halt": record({"target": TEXT}, {"note": TEXT}, "Target: all, an upstream, a tool or a principal."),
    "Halted": record({"target": TEXT, "halted": FLAG}, {"note": TEXT}),
    "Halts": record({"halts": {"type": "object", "additionalProperties": TEXT}}),
    "NewGrant": record(
        {"person": TEXT, "scope": TEXT},
        {"agent": TEXT, "for_s": SECONDS, "renew": FLAG, "note": TEXT},
        "For an hour when `for_s` is left out; renewed before it ends when `renew` says so.",
    ),
    "Grant": record(
        {
            "id": TEXT,
            "person": TEXT,
            "agent": or_null(TEXT),
            "scope": TEXT,
            "granted_by": or_null(TEXT),
            "note": TEXT,
            "expires_at": or_null(TEXT),
            "renewed": FLAG,
            "approval_id": or_null(TEXT),
            "state": {"type": "string", "enum": ["waiting", "held", "over", "revoked"]},
        }
    ),
    "Grants": record({"grants": many(ref("Grant"))}),
    "NewElevation": record(
        {"scope": TEXT, "reason": TEXT},
        {"for_s": SECONDS},
        "A scope that is not held; an operator who is somebody else must approve it.",
    ),
    "Elevation": record(
        {"status": {"const": "held"}, "grant": TEXT, "message": TEXT, "approval": ref("ApprovalRef")}
    ),
    "RpcRequest": RPC_REQUEST,
    "RpcResponse": RPC_RESPONSE,
    "Exchange": record(
        {"grant_type": {"const": "urn:ietf:params:oauth:grant-type:token-exchange"}},
        dict.fromkeys(
            (
                "subject_token subject_token_type actor_token actor_token_type requested_token_type resource"
                " audience scope agent tools resources expires_in narrow"
            ).split(),
            TEXT,
        ),
        "Patterns of `scope`, `tools` and `resources` are separated by spaces.",
    ),
    "Delegation": record(
        {
            "access_token": TEXT,
            "issued_token_type": TEXT,
            "token_type": {"const": "Bearer"},
            "expires_in": COUNT,
            "scope": TEXT,
            "jti": TEXT,
        },
        {"tools": TEXT, "resources": TEXT},
    ),
    "OAuthError": record(
        {"error": TEXT, "error_description": TEXT},
        {"would_give": {"type": "object"}},
        "RFC 6749; `would_give` is what is held of what was asked for.",
    ),
    "TransportError": record(
        {"error": TEXT, "next": TEXT}, {"incident": TEXT}, "The request never became a call."
    ),
    "Health": record({"status": {"const": "ok"}}),
    "Ready": record(
        {
            "ready": FLAG,
            "store": {
                "type": "string",
                "enum": ["ok", "slow", "unreachable", "unwritable", "restored", "closed"],
            },
            "draining": FLAG,
            "policy": TEXT,
        },
        {"next": TEXT},
        "Draining: this process is about to end.",
    ),
}
