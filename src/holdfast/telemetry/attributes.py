"""Which attributes do spans carry?

The names of others (`gen_ai.*`) are constants of our own: the published package marks every one of them as
moved to a place that does not exist yet. `docs/reference/telemetry.md` lists this table; a test compares.
"""

OPERATION = "gen_ai.operation.name"
GEN_AI_TOOL = "gen_ai.tool.name"
GEN_AI_CALL = "gen_ai.tool.call.id"
TOOL = "tool.name"
VERSION = "tool.version"
CALL = "tool.call_id"
EFFECT = "tool.side_effect_class"
VALIDATION = "tool.validation.status"
CODE = "tool.error_code"
RETRYABLE = "tool.retryable"
REPAIRABLE = "tool.repairable"
KEY_HASH = "tool.idempotency_key_hash"
APPROVAL = "tool.approval_id"
TENANT = "tenant.id"
REPLAYABLE = "trace.replayable"
APPROVAL_MODE = "contextos.action.approval_mode_effective"
DECISION = "contextos.action.policy_decision_id"
STATUS = "holdfast.status"
REPLAYED = "holdfast.replayed"
ATTEMPTS = "holdfast.attempts"
UPSTREAM = "holdfast.upstream"
READING = "holdfast.reading"
PART_OF = "holdfast.part_of"
AFTER = "holdfast.after"
GATE = "holdfast.gate"
PHASE = "holdfast.phase"
VERDICT = "holdfast.verdict"
ATTEMPT = "holdfast.attempt"
ERROR_TYPE = "error.type"

EXECUTE_TOOL = "execute_tool"

# attribute: the spans that have it, what it says
SPAN_ATTRIBUTES: dict[str, tuple[str, str]] = {
    OPERATION: ("call", "always `execute_tool`"),
    GEN_AI_TOOL: ("call", "the tool, as the GenAI conventions name it"),
    GEN_AI_CALL: ("call", "the call's id, as the GenAI conventions name it"),
    TOOL: ("call", "the tool, `namespace.name`; `unknown` for one that does not exist"),
    VERSION: ("call", "the version that answered, once it is known"),
    CALL: ("call", "the call's id"),
    EFFECT: ("call", "the declared effect, `READ_ONLY` to `CRITICAL_MUTATION`"),
    VALIDATION: ("call", "`passed`, `repaired`, `failed`, `blocked` or `approval_pending`"),
    CODE: (
        "call, gate, attempt",
        "the code of a refusal or failure; what the record keeps, not what the caller is told",
    ),
    RETRYABLE: ("call", "whether the same call may be made again"),
    REPAIRABLE: ("call", "whether another proposal may pass"),
    KEY_HASH: ("call", "the key under a keyed hash of its tenant, never the key"),
    APPROVAL: ("call", "the approval a held call waits for"),
    TENANT: ("call", "whose call it is"),
    REPLAYABLE: ("call", "its record is written and names arguments and decision"),
    APPROVAL_MODE: ("call", "`read_only`, `local_write`, `network`, `delegated` or `destructive`"),
    DECISION: ("call", "the policy decision's id, once policy was asked"),
    STATUS: ("call", "the observation's status"),
    REPLAYED: ("call", "whether the answer is that of an earlier call"),
    ATTEMPTS: ("call", "attempts made at the upstream"),
    UPSTREAM: ("call, attempt", "where the tool runs"),
    READING: ("call", "whether the gateway itself reads, for a gate or a check"),
    PART_OF: ("call", "of a step of a chain, the id of the call that the chain is"),
    AFTER: ("call", "of a step of a chain, the ids of the steps' calls upon whose answers it rests"),
    GATE: ("gate", "the gate's name"),
    PHASE: (
        "gate, execute, verify, return",
        "`Request`, `Authorize`, `Validate`, `Execute`, `Verify` or `Return`",
    ),
    VERDICT: ("gate", "`pass`, `refusal`, `hold` or `replay`"),
    ATTEMPT: ("attempt", "which attempt, from 1"),
    ERROR_TYPE: ("call, attempt", "the code, or the class of the exception; never its text"),
}
