"""Does every code have its place in every protocol, and only one?"""

import pytest

from holdfast.model.errors import TABLE, AdmissionError, Code, HoldfastError, NoEffect, remedy
from tests.requirements import requirement

# The closed sets of the documents the system was described in.
S1_FAMILIES = set(
    "INVALID_INPUT AUTHORIZATION_DENIED TOOL_NOT_FOUND DEADLINE_EXCEEDED RATE_LIMITED UPSTREAM_FAILURE "
    "INTERNAL_TOOL_ERROR RESOURCE_EXHAUSTED PRECONDITION_FAILED CONFLICT APPROVAL_REQUIRED".split()
)
S4_CLASSES = set(
    "SYNTACTIC_PARSE_FAIL STRUCTURAL_VIOLATION TYPE_MISMATCH OUT_OF_BOUNDS SEMANTIC_INVALIDITY "
    "PERMISSION_DENIED POLICY_VIOLATION STALE_STATE CONFIRMATION_MISSING BUDGET_EXHAUSTED RATE_LIMITED "
    "TIMEOUT IDEMPOTENCY_CONFLICT SIGNATURE_MISMATCH DEPENDENCY_UNAVAILABLE "
    "OBSERVATION_NORMALIZATION_FAIL COMPENSATION_REQUIRED COMPENSATION_FAILED UNKNOWN_ERROR".split()
)
GRPC_STATUSES = set(
    "CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE "
    "DATA_LOSS UNAUTHENTICATED".split()
)
CODES = set(
    "TOOL_NOT_FOUND VERSION_INCOMPATIBLE TOOL_UNAVAILABLE TOOL_QUARANTINED PERMISSION_DENIED "
    "SYNTACTIC_PARSE_FAIL STRUCTURAL_VIOLATION TYPE_MISMATCH OUT_OF_BOUNDS SEMANTIC_INVALIDITY "
    "POLICY_VIOLATION STALE_STATE CONFLICT APPROVAL_REQUIRED APPROVAL_DENIED BUDGET_EXHAUSTED "
    "RATE_LIMITED RESOURCE_EXHAUSTED KEY_REQUIRED KEY_IN_USE KEY_MISMATCH KEY_EXPIRED TIMEOUT CANCELLED "
    "DEPENDENCY_UNAVAILABLE OUTPUT_INVALID EFFECT_MISMATCH COMPENSATION_REQUIRED COMPENSATION_FAILED "
    "OUTCOME_UNKNOWN INTERNAL".split()
)

HTTP = {
    202: {Code.APPROVAL_REQUIRED},
    400: {
        Code.SYNTACTIC_PARSE_FAIL,
        Code.STRUCTURAL_VIOLATION,
        Code.TYPE_MISMATCH,
        Code.OUT_OF_BOUNDS,
        Code.SEMANTIC_INVALIDITY,
        Code.KEY_REQUIRED,
        Code.VERSION_INCOMPATIBLE,
    },
    403: {Code.POLICY_VIOLATION, Code.APPROVAL_DENIED, Code.PERMISSION_DENIED},
    404: {Code.TOOL_NOT_FOUND},
    409: {Code.KEY_IN_USE, Code.CONFLICT},
    410: {Code.KEY_EXPIRED},
    412: {Code.STALE_STATE},
    422: {Code.KEY_MISMATCH},
    429: {Code.RATE_LIMITED, Code.BUDGET_EXHAUSTED},
    499: {Code.CANCELLED},
    500: {Code.INTERNAL},
    502: {
        Code.OUTPUT_INVALID,
        Code.EFFECT_MISMATCH,
        Code.COMPENSATION_REQUIRED,
        Code.COMPENSATION_FAILED,
    },
    503: {
        Code.TOOL_UNAVAILABLE,
        Code.TOOL_QUARANTINED,
        Code.DEPENDENCY_UNAVAILABLE,
        Code.RESOURCE_EXHAUSTED,
    },
    504: {Code.TIMEOUT, Code.OUTCOME_UNKNOWN},
}


@requirement("VAL-1")
def test_the_set_of_codes_is_closed() -> None:
    assert {code.value for code in Code} == CODES


@requirement("VAL-2")
def test_the_table_has_every_code_once() -> None:
    assert list(TABLE) == list(Code)


@requirement("VAL-2")
@pytest.mark.parametrize("code", Code)
def test_a_code_has_a_word_in_every_language(code: Code) -> None:
    entry = TABLE[code]
    assert entry.family in S1_FAMILIES
    assert entry.s4 in S4_CLASSES
    assert entry.grpc in GRPC_STATUSES
    assert entry.mcp in ("result", "protocol")
    assert entry.jsonrpc in (-32700, -32601, -32602, -32603) or -32099 <= entry.jsonrpc <= -32000
    assert set(entry.flags) <= set("rpafe")
    assert len(entry.flags) == len(set(entry.flags))
    assert entry.next_action == entry.next_action.strip() != ""


@requirement("VAL-2")
def test_a_code_that_has_its_own_number_in_json_rpc_shares_it_with_nobody() -> None:
    own = [entry.jsonrpc for entry in TABLE.values() if entry.jsonrpc >= -32099]
    assert len(own) == len(set(own))


@requirement("NAM-3", "VAL-2")
def test_http_status_follows_the_published_table() -> None:
    assert {code: entry.http for code, entry in TABLE.items()} == {
        code: status for status, codes in HTTP.items() for code in codes
    }


# S4's own flags: repairable, retryable without a change, approval needed.
S4_FLAGS = {
    Code.SYNTACTIC_PARSE_FAIL: (True, False, False),
    Code.STRUCTURAL_VIOLATION: (True, False, False),
    Code.TYPE_MISMATCH: (True, False, False),
    Code.OUT_OF_BOUNDS: (True, False, False),
    Code.SEMANTIC_INVALIDITY: (True, False, False),
    Code.PERMISSION_DENIED: (False, False, False),
    Code.POLICY_VIOLATION: (False, False, False),
    Code.STALE_STATE: (True, False, False),
    Code.APPROVAL_REQUIRED: (False, False, True),
    Code.BUDGET_EXHAUSTED: (False, False, True),
    Code.RATE_LIMITED: (False, True, False),
    Code.TIMEOUT: (False, True, False),
    Code.DEPENDENCY_UNAVAILABLE: (False, True, False),
    Code.KEY_IN_USE: (False, True, False),
    Code.KEY_MISMATCH: (False, False, False),
    Code.OUTPUT_INVALID: (False, False, False),
    Code.COMPENSATION_REQUIRED: (False, False, False),
    Code.COMPENSATION_FAILED: (False, False, True),
    Code.INTERNAL: (False, False, False),
    Code.RESOURCE_EXHAUSTED: (False, False, False),
    Code.OUTCOME_UNKNOWN: (False, False, False),
}


@requirement("VAL-2")
@pytest.mark.parametrize("code", S4_FLAGS)
def test_what_may_be_done_is_what_the_taxonomy_says(code: Code) -> None:
    told = remedy(code)
    assert (told.repairable, told.retryable, told.requires_approval) == S4_FLAGS[code]


@requirement("VAL-2")
def test_only_what_may_succeed_unchanged_is_retryable() -> None:
    assert {code for code in Code if remedy(code).retryable} == {
        Code.TOOL_UNAVAILABLE,
        Code.CONFLICT,
        Code.RATE_LIMITED,
        Code.KEY_IN_USE,
        Code.TIMEOUT,
        Code.DEPENDENCY_UNAVAILABLE,
    }


def test_a_remedy_carries_when_and_what_next() -> None:
    told = remedy(Code.RATE_LIMITED, 1500, "wait_for_the_next_minute")
    assert (told.retry_after_ms, told.next_action) == (1500, "wait_for_the_next_minute")
    assert remedy(Code.RATE_LIMITED).next_action == TABLE[Code.RATE_LIMITED].next_action


def test_an_admission_error_has_the_reasons_apart_and_in_its_text() -> None:
    error = AdmissionError("shop.x", (reason for reason in ("one", "two")))
    assert error.reasons == ("one", "two")
    assert str(error) == "tool 'shop.x' is not admitted: one; two"
    assert isinstance(error, HoldfastError)


def test_an_admission_error_of_several_tools_names_each() -> None:
    assert str(AdmissionError("a.x, a.y", ["one"])) == "tools 'a.x', 'a.y' are not admitted: one"


def test_no_effect_carries_why() -> None:
    assert NoEffect("nothing to do").code is Code.SEMANTIC_INVALIDITY
    assert NoEffect("gone", Code.CONFLICT).code is Code.CONFLICT
