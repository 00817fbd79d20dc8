"""Which metrics are there, and what does each count?

One table. Every series also knows its tenant; whether that is shown is decided when it is looked at
(`exposition`). Labels are closed sets or names of the catalog, never text of a caller.
"""

from dataclasses import dataclass
from typing import Literal

LATENCY_MS = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 30_000, 300_000)
"""The bounds of the timeout classes (500 ms, 5 s, 5 min) are among them."""
DECISION_MS = (1_000, 5_000, 15_000, 60_000, 150_000, 300_000, 600_000, 1_800_000, 3_600_000, 86_400_000)
"""From a click to a day; an approval lives ten minutes unless configured."""

LEVELS = (0, 1, 2, 3, 4)
"""Few capabilities have more than two or three tools."""

CALLS = "tool_invocation_count_total"
LATENCY = "tool_invocation_latency_ms"
COST = "tool_invocation_cost_total"
RETRIES = "tool_invocation_retries_total"
TIMEOUTS = "tool_invocation_timeouts_total"
RETRY_SUCCESSES = "tool_retry_successes_total"
UNSAFE_RETRIES = "tool_unsafe_retries_blocked_total"
KEY_MATCHES = "tool_key_matches_total"
REPAIRS = "tool_repair_loops_total"
ASKED = "tool_approval_requests_total"
DECIDED = "tool_approval_resolution_time_ms"
COVERED = "tool_approval_covered_total"
OUTPUT_INVALID = "tool_output_invalid_total"
TO_VERIFY = "tool_verification_required_total"
MISCLASSIFIED = "tool_approval_mode_misclassified_total"
SECURITY = "tool_security_events_total"
SETTLED = "tool_settlements_total"
READINGS = "tool_readings_total"
FALLBACK = "tool_fallback_level"

PENDING = "tool_approval_pending_count"
CAPABILITY = "tool_capability_info"
TIMEOUT_RATE = "tool_invocation_timeout_rate"
REPLAY_RATE = "tool_idempotency_replay_rate"
SCHEMA_RATE = "tool_schema_validation_failure_rate"
HEALTH = "tool_health"
ALERTS = "tool_alerts_open"
BREAKER = "holdfast_breaker_state"
IN_USE = "holdfast_bulkhead_in_use"
SIZE = "holdfast_bulkhead_size"
IN_FLIGHT = "holdfast_calls_in_flight"
LATE = "holdfast_late_answers"


@dataclass(frozen=True, slots=True)
class Instrument:
    kind: Literal["counter", "histogram", "gauge"]
    labels: tuple[str, ...]
    about: str
    bounds: tuple[float, ...] = ()


def _counter(labels: str, about: str) -> Instrument:
    return Instrument("counter", tuple(labels.split()), about)


def _gauge(labels: str, about: str) -> Instrument:
    return Instrument("gauge", tuple(labels.split()), about)


# Counted as calls end. The tenant stands before the other labels of each.
COUNTED: dict[str, Instrument] = {
    CALLS: _counter(
        "tool version upstream effect mutation_class status code gate replayed ran recorded",
        "proposals that were answered, by how: the gate that decided (empty when all passed), the code the "
        "record keeps, whether an upstream was tried, whether the record was written",
    ),
    LATENCY: Instrument(
        "histogram",
        ("tool", "version", "upstream", "timeout_class"),
        "milliseconds of calls that passed every gate, from proposal to answer",
        LATENCY_MS,
    ),
    COST: _counter(
        "tool version cost_category currency",
        "cost of the attempts made, by part; the category is `unsplit` where a contract has no parts, and no "
        "category or several",
    ),
    RETRIES: _counter("tool version", "attempts after the first of a call"),
    TIMEOUTS: _counter(
        "tool version timeout_class", "calls that passed every gate and overran their deadline"
    ),
    RETRY_SUCCESSES: _counter("tool version", "calls that were done after more than one attempt"),
    UNSAFE_RETRIES: _counter(
        "tool version by",
        "repetitions that could have acted twice and were not made: by the `gateway` after a failure, or "
        "asked for by a `caller` while the outcome is unknown",
    ),
    KEY_MATCHES: _counter(
        "tool result",
        "writes whose key was known: `replayed`, `waited` for the first and replayed, `mismatch`, `in_use`, "
        "`expired`, or `resumed`",
    ),
    REPAIRS: _counter(
        "tool result",
        "operations proposed again after a repairable refusal: `triggered`, `repaired`, `exhausted`; known "
        "within one process, by key",
    ),
    ASKED: _counter("tool", "questions put to people"),
    COVERED: _counter("tool by", "calls that needed a person and had a yes already, by a `rule` or a `plan`"),
    DECIDED: Instrument(
        "histogram",
        ("tool", "resolution"),
        "milliseconds from a question to its answer: `approved`, `denied`, or `auto_denied` when the sweep "
        "finds that nobody answered",
        DECISION_MS,
    ),
    OUTPUT_INVALID: _counter("tool version", "answers of upstreams that did not fit their contract"),
    TO_VERIFY: _counter("tool", "observations of writes that ask the caller to verify later"),
    MISCLASSIFIED: _counter(
        "tool mode",
        "calls whose approval mode was wrong: the effect was another than declared, or the need for approval "
        "rose on the way",
    ),
    SECURITY: _counter("tool gate", "security events, by the gate that decided the call"),
    SETTLED: _counter(
        "tool state by", "operations settled after the fact: by `probe`, `sweep`, `late` answer or `person`"
    ),
    READINGS: _counter("tool status", "the gateway's own reads for gates, checks and probes"),
    FALLBACK: Instrument(
        "histogram",
        ("capability",),
        "calls of tools that can fall back, by the level that answered: 0 is the first tool, "
        "the number of tools what came after them, a person or a stale answer",
        LEVELS,
    ),
}

# Computed when somebody looks.
LOOKED_UP: dict[str, Instrument] = {
    TIMEOUT_RATE: _gauge("tool version timeout_class", "share of calls beyond their deadline since start"),
    REPLAY_RATE: _gauge("tool", "share of calls answered by an earlier one since start"),
    SCHEMA_RATE: _gauge(
        "tool phase", "share of `input` and `output` that did not fit its schema since start"
    ),
    PENDING: _gauge("tool approver_group", "open questions, by tool and the role that still has to answer"),
    CAPABILITY: _gauge("tool version capability", "1 for each capability tag of a tool that was called"),
    HEALTH: _gauge(
        "tool",
        "1 - (0.5 error + 0.3 latency + 0.2 timeout) of tools called in the last 15 minutes, as of the last "
        "look; of several tenants the lowest",
    ),
    ALERTS: _gauge("kind", "alerts that were open when somebody looked last"),
    BREAKER: _gauge("tool state", "1 for the state a tool's breaker is in: `closed`, `half_open`, `open`"),
    IN_USE: _gauge("upstream", "calls in flight at an upstream"),
    SIZE: _gauge("upstream", "calls an upstream takes at once"),
    IN_FLIGHT: _gauge("", "calls under way in this process"),
    LATE: _gauge("", "answers still awaited after their caller was told `unknown`"),
}

INSTRUMENTS = COUNTED | LOOKED_UP
