"""Why did a call not go through, and what may be done about it?

The closed set of codes (VAL-1) and the one table that translates each of them for
people, programs and wire protocols (VAL-2). `retryable` here is the authority: no
caller should retry what the table does not call retryable.

    HoldfastError                 anything Holdfast raises on purpose
    ├── ConfigError               the configuration cannot be used
    ├── AdmissionError            a contract was refused, with every reason
    ├── StoreError                the store cannot be used
    ├── NotFound                  there is no such thing, or it is not yours
    ├── Forbidden                 it exists, and you may not
    ├── TooManyAsks               too many questions to people are open for one principal
    ├── SecretError               a secret cannot be had from its provider
    └── NoEffect                  raised by a tool: it proves nothing happened
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.model.vocabulary import Word


class Code(Word):
    TOOL_NOT_FOUND = "TOOL_NOT_FOUND"
    VERSION_INCOMPATIBLE = "VERSION_INCOMPATIBLE"
    TOOL_UNAVAILABLE = "TOOL_UNAVAILABLE"
    TOOL_QUARANTINED = "TOOL_QUARANTINED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    SYNTACTIC_PARSE_FAIL = "SYNTACTIC_PARSE_FAIL"
    STRUCTURAL_VIOLATION = "STRUCTURAL_VIOLATION"
    TYPE_MISMATCH = "TYPE_MISMATCH"
    OUT_OF_BOUNDS = "OUT_OF_BOUNDS"
    SEMANTIC_INVALIDITY = "SEMANTIC_INVALIDITY"
    POLICY_VIOLATION = "POLICY_VIOLATION"
    STALE_STATE = "STALE_STATE"
    CONFLICT = "CONFLICT"
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"
    APPROVAL_DENIED = "APPROVAL_DENIED"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    RATE_LIMITED = "RATE_LIMITED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    KEY_REQUIRED = "KEY_REQUIRED"
    KEY_IN_USE = "KEY_IN_USE"
    KEY_MISMATCH = "KEY_MISMATCH"
    KEY_EXPIRED = "KEY_EXPIRED"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"
    DEPENDENCY_UNAVAILABLE = "DEPENDENCY_UNAVAILABLE"
    OUTPUT_INVALID = "OUTPUT_INVALID"
    EFFECT_MISMATCH = "EFFECT_MISMATCH"
    COMPENSATION_REQUIRED = "COMPENSATION_REQUIRED"
    COMPENSATION_FAILED = "COMPENSATION_FAILED"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class Remedy:
    """What may be done now; S4's response vector."""

    retryable: bool
    repairable: bool
    requires_approval: bool
    fail_closed: bool
    escalate: bool
    next_action: str
    retry_after_ms: int | None = None


NO_REMEDY = Remedy(False, False, False, False, False, "none")


class Entry(NamedTuple):
    family: str  # S1's error envelope
    s4: str  # S4's taxonomy class
    http: int
    jsonrpc: int
    mcp: str  # how MCP carries it: a tool result with isError, or a protocol error
    grpc: str
    flags: str  # r retryable, p repairable, a requires approval, f fail closed, e escalate
    next_action: str

    def remedy(self, retry_after_ms: int | None = None, next_action: str | None = None) -> Remedy:
        has = self.flags.__contains__
        return Remedy(
            has("r"), has("p"), has("a"), has("f"), has("e"), next_action or self.next_action, retry_after_ms
        )


_C = Code
# fmt: off
TABLE: dict[Code, Entry] = {
    _C.TOOL_NOT_FOUND:         Entry("TOOL_NOT_FOUND", "PERMISSION_DENIED", 404, -32601, "protocol", "NOT_FOUND", "p", "search_tools"),
    _C.VERSION_INCOMPATIBLE:   Entry("TOOL_NOT_FOUND", "STRUCTURAL_VIOLATION", 400, -32602, "result", "FAILED_PRECONDITION", "p", "choose_another_version"),
    _C.TOOL_UNAVAILABLE:       Entry("UPSTREAM_FAILURE", "DEPENDENCY_UNAVAILABLE", 503, -32010, "result", "UNAVAILABLE", "r", "retry_later_or_use_fallback"),
    _C.TOOL_QUARANTINED:       Entry("UPSTREAM_FAILURE", "POLICY_VIOLATION", 503, -32011, "result", "FAILED_PRECONDITION", "fe", "ask_operator_to_accept_change"),
    _C.PERMISSION_DENIED:      Entry("AUTHORIZATION_DENIED", "PERMISSION_DENIED", 403, -32012, "result", "PERMISSION_DENIED", "f", "ask_for_access"),
    _C.SYNTACTIC_PARSE_FAIL:   Entry("INVALID_INPUT", "SYNTACTIC_PARSE_FAIL", 400, -32700, "protocol", "INVALID_ARGUMENT", "p", "repair_arguments"),
    _C.STRUCTURAL_VIOLATION:   Entry("INVALID_INPUT", "STRUCTURAL_VIOLATION", 400, -32602, "result", "INVALID_ARGUMENT", "p", "repair_arguments"),
    _C.TYPE_MISMATCH:          Entry("INVALID_INPUT", "TYPE_MISMATCH", 400, -32602, "result", "INVALID_ARGUMENT", "p", "repair_arguments"),
    _C.OUT_OF_BOUNDS:          Entry("INVALID_INPUT", "OUT_OF_BOUNDS", 400, -32602, "result", "OUT_OF_RANGE", "p", "repair_arguments"),
    _C.SEMANTIC_INVALIDITY:    Entry("INVALID_INPUT", "SEMANTIC_INVALIDITY", 400, -32602, "result", "INVALID_ARGUMENT", "p", "replan_or_ask_for_facts"),
    _C.POLICY_VIOLATION:       Entry("AUTHORIZATION_DENIED", "POLICY_VIOLATION", 403, -32013, "result", "PERMISSION_DENIED", "f", "ask_why_not"),
    _C.STALE_STATE:            Entry("PRECONDITION_FAILED", "STALE_STATE", 412, -32014, "result", "FAILED_PRECONDITION", "p", "refresh_state_and_replan"),
    _C.CONFLICT:               Entry("CONFLICT", "STALE_STATE", 409, -32015, "result", "ABORTED", "r", "refresh_then_retry"),
    _C.APPROVAL_REQUIRED:      Entry("APPROVAL_REQUIRED", "CONFIRMATION_MISSING", 202, -32016, "result", "FAILED_PRECONDITION", "a", "wait_for_approval_then_call_again"),
    _C.APPROVAL_DENIED:        Entry("AUTHORIZATION_DENIED", "CONFIRMATION_MISSING", 403, -32017, "result", "PERMISSION_DENIED", "f", "stop_or_propose_something_else"),
    _C.BUDGET_EXHAUSTED:       Entry("RESOURCE_EXHAUSTED", "BUDGET_EXHAUSTED", 429, -32018, "result", "RESOURCE_EXHAUSTED", "ae", "request_budget"),
    _C.RATE_LIMITED:           Entry("RATE_LIMITED", "RATE_LIMITED", 429, -32019, "result", "RESOURCE_EXHAUSTED", "r", "wait_then_retry"),
    _C.RESOURCE_EXHAUSTED:     Entry("RESOURCE_EXHAUSTED", "UNKNOWN_ERROR", 503, -32020, "result", "RESOURCE_EXHAUSTED", "e", "tell_operator"),
    _C.KEY_REQUIRED:           Entry("INVALID_INPUT", "STRUCTURAL_VIOLATION", 400, -32021, "result", "INVALID_ARGUMENT", "p", "add_key"),
    _C.KEY_IN_USE:             Entry("CONFLICT", "IDEMPOTENCY_CONFLICT", 409, -32022, "result", "ABORTED", "r", "wait_then_retry_same_key"),
    _C.KEY_MISMATCH:           Entry("CONFLICT", "SIGNATURE_MISMATCH", 422, -32023, "result", "FAILED_PRECONDITION", "f", "use_a_new_key_for_a_new_operation"),
    _C.KEY_EXPIRED:            Entry("CONFLICT", "IDEMPOTENCY_CONFLICT", 410, -32024, "result", "FAILED_PRECONDITION", "f", "check_what_happened_then_use_a_new_key"),
    _C.TIMEOUT:                Entry("DEADLINE_EXCEEDED", "TIMEOUT", 504, -32025, "result", "DEADLINE_EXCEEDED", "r", "retry_same_key"),
    _C.CANCELLED:              Entry("DEADLINE_EXCEEDED", "TIMEOUT", 499, -32026, "result", "CANCELLED", "", "call_again_if_still_wanted"),
    _C.DEPENDENCY_UNAVAILABLE: Entry("UPSTREAM_FAILURE", "DEPENDENCY_UNAVAILABLE", 503, -32027, "result", "UNAVAILABLE", "r", "retry_later_or_use_fallback"),
    _C.OUTPUT_INVALID:         Entry("INTERNAL_TOOL_ERROR", "OBSERVATION_NORMALIZATION_FAIL", 502, -32028, "result", "DATA_LOSS", "e", "tell_operator"),
    _C.EFFECT_MISMATCH:        Entry("INTERNAL_TOOL_ERROR", "UNKNOWN_ERROR", 502, -32029, "result", "DATA_LOSS", "fe", "check_target_state"),
    _C.COMPENSATION_REQUIRED:  Entry("INTERNAL_TOOL_ERROR", "COMPENSATION_REQUIRED", 502, -32030, "result", "ABORTED", "e", "compensate"),
    _C.COMPENSATION_FAILED:    Entry("INTERNAL_TOOL_ERROR", "COMPENSATION_FAILED", 502, -32031, "result", "ABORTED", "ae", "reconcile_by_hand"),
    _C.OUTCOME_UNKNOWN:        Entry("DEADLINE_EXCEEDED", "UNKNOWN_ERROR", 504, -32032, "result", "UNKNOWN", "fe", "ask_again_with_same_key_or_settle"),
    _C.INTERNAL:               Entry("INTERNAL_TOOL_ERROR", "UNKNOWN_ERROR", 500, -32603, "result", "INTERNAL", "fe", "tell_operator"),
}
# fmt: on


def remedy(code: Code, retry_after_ms: int | None = None, next_action: str | None = None) -> Remedy:
    return TABLE[code].remedy(retry_after_ms, next_action)


class HoldfastError(Exception):
    """Anything Holdfast raises on purpose; its text says what to do next."""


class ConfigError(HoldfastError):
    """The configuration cannot be used."""


class StoreError(HoldfastError):
    """The store cannot be used, or did not take a write."""


class AdmissionError(HoldfastError):
    """A contract was refused, with every reason at once."""

    def __init__(self, tool: str, reasons: Iterable[str]) -> None:
        self.tool = tool
        self.reasons = tuple(reasons)
        named = ", ".join(map(repr, tool.split(", ")))
        word = "tools {} are" if ", " in tool else "tool {} is"
        super().__init__(f"{word.format(named)} not admitted: " + "; ".join(self.reasons))


class TooManyAsks(HoldfastError):
    """Too many questions to people are open for one principal."""


class SecretError(HoldfastError):
    """A secret cannot be had. The text is for operators and never quotes it.

    `passing`: its provider could not be asked, and may be there again in a moment.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        self.passing = passing
        super().__init__(message)


class NoEffect(HoldfastError):
    """Raised by a tool that has done nothing: the key may be used again.

    `code` tells the caller why; without one it is SEMANTIC_INVALIDITY, which asks
    for other arguments or facts. `native` is the error as its protocol gave it.
    """

    def __init__(
        self,
        message: str,
        code: Code = Code.SEMANTIC_INVALIDITY,
        native: Mapping[str, Any] | None = None,
    ) -> None:
        self.code = Code(code)
        self.native = native
        super().__init__(message)


class Overtaken(HoldfastError):
    """Somebody else drives this run by now."""


class NotFound(HoldfastError):
    """There is no such thing, or it is not yours."""


class Forbidden(HoldfastError):
    """It exists, and you may not."""
