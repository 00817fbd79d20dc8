"""Which figures hold when nobody says otherwise?

One table (FIG-1). Every figure is a constant with its reason; `FIGURES` lists them
for the reference page, which a test compares with this file.
"""

from typing import NamedTuple, TypeVar

from holdfast.model.vocabulary import TimeoutClass


class Figure(NamedTuple):
    name: str
    value: float
    unit: str
    why: str


FIGURES: list[Figure] = []

N = TypeVar("N", int, float)


def _figure(name: str, value: N, unit: str, why: str) -> N:
    FIGURES.append(Figure(name, value, unit, why))
    return value


INTERACTIVE_S = _figure(
    "interactive_s", 0.5, "s", "timeout class `interactive`: in-memory work and cache look-ups"
)
STANDARD_S = _figure("standard_s", 5.0, "s", "timeout class `standard`: a query or an API call")
LONG_RUNNING_S = _figure("long_running_s", 300.0, "s", "timeout class `long_running`: builds, large files")
ASYNC_S = _figure(
    "async_s", 86_400.0, "s", "timeout class `async`: submit and poll; the longest a job is waited for"
)
POLL_S = _figure("poll_s", 1.0, "s", "before a job is first asked after; doubled each time")
POLL_CAP_S = _figure("poll_cap_s", 60.0, "s", "longest pause between two looks at a job")
JOB_WAIT_S = _figure("job_wait_s", 86_400.0, "s", "longest a job is waited for; then it is cancelled")
JOB_CALLER_S = _figure(
    "job_caller_s", 30.0, "s", "a caller of a job who names no deadline is told after so long that it goes on"
)
JOB_CANCEL_S = _figure("job_cancel_s", 60.0, "s", "a job that was to be cancelled has so long to end")
SESSION_IDLE_S = _figure(
    "session_idle_s", 300.0, "s", "a session at an upstream that nobody works in for so long is rolled back"
)
SESSION_KEPT_S = _figure(
    "session_kept_s", 2_592_000.0, "s", "how long what was committed in a session can be taken back"
)
FALLBACK_CONFIDENCE = _figure(
    "fallback_confidence", 0.1, "share", "confidence that an answer loses with each level of its fallback"
)
BREAKER_FAILURES = _figure(
    "breaker_failures", 5, "failures", "a breaker opens after this many failures in its window"
)
BREAKER_OPEN_S = _figure(
    "breaker_open_s",
    30.0,
    "s",
    "how long an open breaker refuses before one half-open trial; also its window",
)
BREAKER_TRIALS = _figure("breaker_trials", 1, "calls", "calls a half-open breaker lets through to find out")
RETRIES = _figure("retries", 3, "retries", "extra attempts at a retryable and safe call")
RETRY_BASE_S = _figure("retry_base_s", 0.2, "s", "wait before the first retry; doubles each time")
RETRY_CAP_S = _figure("retry_cap_s", 10.0, "s", "no single wait between retries is longer")
RETRY_JITTER = _figure("retry_jitter", 0.25, "share", "each wait is moved by up to this share either way")
CONNECT_S = _figure("connect_s", 5.0, "s", "connecting to an upstream")
STDIO_READ_S = _figure("stdio_read_s", 30.0, "s", "one read from a stdio upstream")
PROBES_TO_UNAVAILABLE = _figure(
    "probes_to_unavailable", 3, "probes", "failed liveness probes before an upstream's tools are unavailable"
)
LIVENESS_S = _figure("liveness_s", 30.0, "s", "between liveness probes")
DISCOVERY_TTL_S = _figure("discovery_ttl_s", 300.0, "s", "how long a discovered tool list is believed")
GRANT_S = _figure("grant_s", 3600.0, "s", "life of a grant of scopes")
GRANT_REFRESH_S = _figure("grant_refresh_s", 60.0, "s", "a grant is refreshed this long before it ends")
GRANT_MOST_S = _figure("grant_most_s", 2_592_000.0, "s", "longest life of a grant of scopes")
ELEVATION_MOST_S = _figure("elevation_most_s", 86_400.0, "s", "longest life of a grant by approval")
DENIALS = _figure("denials", 5, "denials", "of one caller, within the next figure, raise a security event")
DENIALS_S = _figure("denials_s", 60.0, "s", "in which denials of one caller are counted")
TOKEN_SKEW_S = _figure("token_skew_s", 30.0, "s", "how far a token issuer's clock may be off")
TOKEN_SKEW_MAX_S = _figure("token_skew_max_s", 300.0, "s", "and the most that can be configured")
JWKS_REFRESH_S = _figure("jwks_refresh_s", 600.0, "s", "between looks at an issuer's keys")
JWKS_UNKNOWN_S = _figure(
    "jwks_unknown_s", 5.0, "s", "least time between looks at an issuer's keys for a token with an unknown one"
)
JWKS_STALE_S = _figure(
    "jwks_stale_s", 14_400.0, "s", "how long an issuer's keys count that could not be looked at again"
)
JWKS_DEADLINE_S = _figure("jwks_deadline_s", 5.0, "s", "one look at an issuer's keys")
DELEGATION_S = _figure("delegation_s", 3600.0, "s", "life of a delegation, when nobody asks for another")
DELEGATION_MOST_S = _figure("delegation_most_s", 86_400.0, "s", "no delegation lasts longer")
DELEGATION_DEPTH = _figure("delegation_depth", 8, "delegations", "between a person and who acts, at most")
APPROVAL_S = _figure("approval_s", 600.0, "s", "an unanswered approval is denied after this long")
ESCALATION_SHARE = _figure(
    "escalation_share",
    0.5,
    "share",
    "first escalation of an unanswered approval; the rest of the chain follows evenly",
)
DEDUP_FLOOR_S = _figure("dedup_floor_s", 3600.0, "s", "shortest deduplication window of a key")
DEDUP_FLOOR_ASYNC_S = _figure(
    "dedup_floor_async_s", 86_400.0, "s", "shortest deduplication window of a key for an async tool"
)
LEASE_DEADLINES = _figure(
    "lease_deadlines", 3, "deadlines", "a claim's lease lasts this many times the call's deadline"
)
LEASE_MIN_S = _figure("lease_min_s", 15.0, "s", "and never less than this")
DUPLICATE_WAIT_S = _figure(
    "duplicate_wait_s", 2.0, "s", "a concurrent duplicate waits this long for the first one's answer"
)
SETTLE_AFTER_S = _figure(
    "settle_after_s",
    2.0,
    "s",
    "a negative probe counts this long after the attempt's deadline, when the contract is silent",
)
CHAIN_LEASE_S = _figure("chain_lease_s", 15.0, "s", "a silent process drives its chains, then others do")
CHOICE_CONFIDENCE = _figure(
    "choice_confidence", 0.8, "of 1", "a tool that chooses for a chain is so sure, or a person chooses"
)
SWEEP_S = _figure("sweep_s", 2.0, "s", "between looks for operations whose worker died")
CHECKPOINT_S = _figure(
    "checkpoint_s", 10.0, "s", "between signed checkpoints of the audit log, while records come in"
)
HEALTH_WINDOW_S = _figure("health_window_s", 900.0, "s", "window of the health score")
LATENCY_ALERT = _figure("latency_alert", 2.0, "x baseline", "a p99 latency beyond this raises an alert")
ERROR_ALERT = _figure("error_alert", 0.05, "share", "an error rate beyond this raises an alert")
TIMEOUT_ALERT = _figure("timeout_alert", 0.02, "share", "a timeout rate beyond this raises an alert")
BACKLOG_ALERT = _figure("backlog_alert", 20, "approvals", "this many waiting approvals raise an alert")
BACKLOG_ALERT_S = _figure("backlog_alert_s", 600.0, "s", "how long the backlog must last to alert")
BASELINE_S = _figure(
    "baseline_s", 86_400.0, "s", "of traffic before the window, that latency is compared with"
)
ALERT_EVERY_S = _figure("alert_every_s", 30.0, "s", "between looks for what is wrong")
LEAST_CALLS = _figure("least_calls", 20, "calls", "fewer in the window say nothing about a share of them")
LEAST_LATENCIES = _figure(
    "least_latencies", 100, "calls", "fewer say nothing about a 99th percentile, in the window or before it"
)
EXHAUSTED_ALERT = _figure(
    "exhausted_alert", 1, "calls", "calls that failed after every retry, in the window, raise an alert"
)
LOOP_S = _figure("loop_s", 60.0, "s", "in which calls are counted that look like a loop")
LOOP_FAILURES = _figure(
    "loop_failures",
    20,
    "calls",
    "of one caller and task at one tool that fail or are refused alike are a loop",
)
LOOP_CALLS = _figure(
    "loop_calls", 120, "calls", "of one task at one tool that end alike are a loop, even if they are done"
)
LOOP_SHARE = _figure("loop_share", 0.9, "share", "of such calls that must have ended alike")
COST_ALERT = _figure("cost_alert", 3.0, "x median", "a day's cost of a tool, or a task's, beyond this alerts")
COST_DAYS = _figure("cost_days", 14, "days", "before today that a cost is compared with")
COST_SAMPLES = _figure("cost_samples", 5, "days or tasks", "fewer before it say nothing about a cost")
ALERT_KEPT_S = _figure("alert_kept_s", 7_776_000.0, "s", "how long an alert that is over can be looked up")
SELECTION_K = _figure("selection_k", 10, "tools", "tools selected for one task")
MIN_TRUST = _figure("min_trust", 0.5, "score", "tools below this trust are not selected")
GENERATION_RESERVE = _figure("generation_reserve", 4096, "tokens", "kept free for the model's answer")
REPAIR_ATTEMPTS = _figure("repair_attempts", 3, "attempts", "repairs of one proposal")
MAILS_PER_RECIPIENT_HOUR = _figure("mails_per_recipient_hour", 3, "mails", "per recipient and hour")
MESSAGES_PER_CHANNEL_HOUR = _figure("messages_per_channel_hour", 10, "messages", "per channel and hour")
NOTICE_SEND_S = _figure("notice_send_s", 10.0, "s", "one try at sending a notice")
MAIL_SEND_S = _figure(
    "mail_send_s", 25.0, "s", "one try at a mail; its servers let strangers wait on purpose"
)
NOTICE_LEASE_S = _figure(
    "notice_lease_s", 30.0, "s", "whoever sends a notice and dies is waited for this long; longer than a try"
)
NOTICE_RETRY_S = _figure(
    "notice_retry_s", 5.0, "s", "before a notice is tried again; doubles each time, moved by the retry jitter"
)
NOTICE_RETRY_CAP_S = _figure("notice_retry_cap_s", 900.0, "s", "no wait between tries at a notice is longer")
NOTICE_GIVE_UP_S = _figure(
    "notice_give_up_s", 86_400.0, "s", "a notice that could not be sent for so long is given up"
)
NOTICE_KEPT_S = _figure("notice_kept_s", 7 * 86_400.0, "s", "sent and given up notices are kept this long")
GUI_SETTLE_S = _figure("gui_settle_s", 5.0, "s", "a screen must be still this long before it is read")
GUI_HISTORY = _figure("gui_history", 2048, "tokens", "history kept of a screen session")
USAGE_REPORT_S = _figure("usage_report_s", 604_800.0, "s", "period of the usage report of a deprecated tool")
REMOVAL_QUIET_S = _figure(
    "removal_quiet_s", 86_400.0, "s", "a deprecated version is removed only after this long without use"
)
TRUST_THRESHOLD = _figure(
    "trust_threshold",
    50,
    "of 100",
    "callers from here on may make undoable writes outside prod without approval",
)
LAZY_ABOVE = _figure("lazy_above", 64, "tools", "an MCP client is shown no longer list than this")
ASK_S = _figure("ask_s", 300.0, "s", "a client may take this long to answer what a running tool asks it")
UPSTREAM_CONCURRENCY = _figure(
    "upstream_concurrency", 32, "calls", "calls in flight at one upstream (its bulkhead)"
)
INGRESS_RATE = _figure(
    "ingress_rate",
    2000.0,
    "proposals/s",
    "proposals one principal may make before anything else is looked at",
)
INGRESS_BURST = _figure("ingress_burst", 4000.0, "proposals", "and at once")
OPEN_ASKS = _figure("open_asks", 50, "approvals", "open approvals per principal")
OPEN_ASKS_TASK = _figure("open_asks_task", 20, "approvals", "open approvals per task of a principal")
RULE_S = _figure("rule_s", 30 * 86_400.0, "s", "life of a standing rule where nobody says otherwise")
MOST_RULE_S = _figure("most_rule_s", 90 * 86_400.0, "s", "no standing rule lives longer")
PLAN_GRANT_S = _figure(
    "plan_grant_s", 3600.0, "s", "how long a plan can be used, beyond the time people have to answer"
)
MOST_STEPS = _figure("most_steps", 50, "steps", "steps of one plan; more than people read")
QUICK_ANSWER_S = _figure(
    "quick_answer_s", 3.0, "s", "an answer faster than this was hardly read: it counts as fatigue"
)
RULE_EVIDENCE = _figure(
    "rule_evidence", 3, "calls", "calls that people approved before a rule is proposed for their like"
)
PLAN_S = _figure("plan_s", 900.0, "s", "how long a plan token holds, and never less than an approval")
RELEASE_RETRY_S = _figure(
    "release_retry_s", 5.0, "s", "before an approved call is released by the gateway again; doubles each time"
)
LABEL_KEPT_S = _figure(
    "label_kept_s", 2_592_000.0, "s", "a session keeps a label this long after it last brought what has it"
)
REVIEW_DAYS = _figure("review_days", 7.0, "days", "how far a policy diff looks back")
REVIEW_LASTS_S = _figure(
    "review_lasts_s", 86_400.0, "s", "how long an accepted policy diff counts for a promotion"
)
KEEP_ALIVE_S = _figure(
    "keep_alive_s",
    180.0,
    "s",
    "how long a connection may rest; longer than proxies and clients keep theirs, so that they close it",
)
BODY_BYTES = _figure("body_bytes", 1_048_576, "bytes", "largest request body")
BODY_DEPTH = _figure("body_depth", 32, "levels", "deepest nesting of arguments")
BODY_STRING = _figure("body_string", 262_144, "characters", "longest string in arguments")
BODY_KEYS = _figure("body_keys", 10_000, "members", "most keys and items in arguments")

SECRET_READ_S = _figure("secret_read_s", 5.0, "s", "reading a secret from its provider, or fetching a token")
SECRET_TTL_S = _figure(
    "secret_ttl_s",
    300.0,
    "s",
    "how long a secret from a command, a keyring or a vault is used before it is read again",
)
SESSION_HOURS = _figure("session_hours", 12.0, "h", "somebody stays signed in to the console at most")
IDLE_MINUTES = _figure("idle_minutes", 60.0, "min", "and without a request")
SUBJECT_S = _figure("subject_s", 60.0, "s", "life of what the gateway says of a caller to a token server")
EXCHANGED_S = _figure("exchanged_s", 300.0, "s", "life of an exchanged token whose server names none")

TIMEOUT_S: dict[TimeoutClass, float] = {
    TimeoutClass.INTERACTIVE: INTERACTIVE_S,
    TimeoutClass.STANDARD: STANDARD_S,
    TimeoutClass.LONG_RUNNING: LONG_RUNNING_S,
    TimeoutClass.ASYNC: ASYNC_S,
}


def dedup_window(timeout_class: TimeoutClass) -> float:
    """Twice the timeout class, and never less than the floor; IDM-6."""
    floor = DEDUP_FLOOR_ASYNC_S if timeout_class is TimeoutClass.ASYNC else DEDUP_FLOOR_S
    return max(2 * TIMEOUT_S[timeout_class], floor)


def lease(deadline_s: float) -> float:
    """How long a claim may go without news before its owner is asked after."""
    return max(LEASE_DEADLINES * deadline_s, LEASE_MIN_S)
