"""Which routes are there, what do they take and what do they answer?

The OpenAPI 3.1 document served at /openapi.json. A test holds it against the routes of the application.
"""

from functools import cache
from typing import Any

from holdfast.gateway.costs import GROUPS
from holdfast.model.errors import TABLE
from holdfast.servers.chain_schemas import CHAINED
from holdfast.servers.channel_schemas import CHANNELS
from holdfast.servers.figure_schemas import FIGURES
from holdfast.servers.headers import SAME_AS
from holdfast.servers.policy_schemas import TRIED
from holdfast.servers.schemas import SCHEMAS, TEXT, Schema, many, ref
from holdfast.servers.standing_schemas import STANDING
from holdfast.servers.upstream_session_schemas import SESSIONS

Operation = dict[str, Any]

OBSERVED = {200: "done, partial or preview", 202: "held: a person has been asked"}


@cache
def document() -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "version": "1",
            "description": "A governed gateway between agents and their tools.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"apiKey": []}, {}],
        "paths": {path: dict(operations) for path, operations in PATHS.items()},
        "components": {
            "schemas": {**SCHEMAS, **STANDING, **TRIED, **FIGURES, **CHANNELS, **CHAINED, **SESSIONS},
            "securitySchemes": {
                "apiKey": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`Bearer hf_<id>_<secret>`, or a token; `auth.mode: local` needs none",
                }
            },
        },
    }


def _content(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _said(about: str, schema: Schema) -> dict[str, Any]:
    return {"description": about, "content": _content(schema)}


def _error(about: str) -> dict[str, Any]:
    return _said(about, ref("TransportError"))


def _operation(
    name: str,
    about: str,
    responses: dict[int, dict[str, Any]],
    *,
    body: str | None = None,
    parameters: list[dict[str, Any]] | None = None,
    public: bool = False,
) -> Operation:
    common = {500: _error("something broke inside")}
    if not public:
        common |= {401: _error("no valid credential"), 403: _error("not allowed")}
    if body:
        common |= {
            400: _said("the body cannot be used", ref("Observation")),
            413: _error("the body is too large"),
        }
    operation: Operation = {
        "operationId": name,
        "summary": about,
        "responses": {str(status): said for status, said in sorted({**common, **responses}.items())},
    }
    if parameters:
        operation["parameters"] = parameters
    if body:
        operation["requestBody"] = {"required": True, "content": _content(ref(body))}
    if public:
        operation["security"] = []
    return operation


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": TEXT}


def _in_query(name: str, schema: Schema, about: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": about}


def _observed() -> dict[int, dict[str, Any]]:
    """Every status the code table can give, with the codes that give it."""
    told = dict(OBSERVED)
    for status in {entry.http for entry in TABLE.values()} - {200, 202}:
        told[status] = ", ".join(code for code, entry in TABLE.items() if entry.http == status)
    responses = {status: _said(about, ref("Observation")) for status, about in told.items()}
    replayed = {"description": "true on a replay of an earlier answer", "schema": {"const": "true"}}
    responses[200]["headers"] = {"Idempotent-Replayed": replayed}
    wait = {"description": "seconds; not with BUDGET_EXHAUSTED", "schema": {"type": "integer", "minimum": 1}}
    for status in (409, 429):
        responses[status]["headers"] = {"Retry-After": wait}
    return responses


def _call_headers() -> list[dict[str, Any]]:
    same = [
        {"name": name, "in": "header", "schema": TEXT, "description": f"stands for '{member}' of the body"}
        for name, member in SAME_AS.items()
    ]
    traced = [
        {"name": name, "in": "header", "schema": TEXT, "description": "W3C trace context"}
        for name in ("traceparent", "tracestate")
    ]
    return [*same, *traced]


def _mcp(name: str, about: str, status: int, said: str) -> Operation:
    return _operation(
        name,
        about,
        {
            status: {"description": said},
            400: {"description": "no message of this protocol"},
            404: {"description": "no such session, or not yours"},
            503: _error("not served now"),
        },
    )


_METADATA = _operation(
    "protectedResource",
    "Which tokens open /mcp (RFC 9728)",
    {200: _said("the metadata", {"type": "object"})},
    public=True,
)
_SUBJECT_KEYS = _operation(
    "subjectKeys",
    "The keys that check what this gateway tells token servers of its callers (RFC 8693)",
    {200: _said("a JWK set", {"type": "object"})},
    public=True,
)
_ID = _in_path("id")
_UNKNOWN = _error("unknown, or not yours")
_CONFLICT = _error("not in a state that allows it")

PATHS: dict[str, dict[str, Operation]] = {
    "/v1/calls": {
        "post": _operation("propose", "Call a tool", _observed(), body="Call", parameters=_call_headers()),
    },
    "/v1/calls/{id}": {
        "get": _operation(
            "lookUp",
            "What became of a call",
            {200: _said("the call as the ledger knows it now", ref("Observation")), 404: _UNKNOWN},
            parameters=[_ID],
        ),
    },
    "/v1/calls/{id}/cancel": {
        "post": _operation(
            "cancel",
            "Cancel a call",
            {
                200: _said("cancelled", ref("Cancellation")),
                202: _said("asked of the process that runs it", ref("Cancellation")),
                404: _UNKNOWN,
                409: _said("too late", ref("Cancellation")),
            },
            parameters=[_ID],
        ),
    },
    "/v1/calls/{id}/settle": {
        "post": _operation(
            "settle",
            "Say what became of an uncertain call",
            {200: _said("settled", ref("Observation")), 404: _UNKNOWN, 409: _CONFLICT},
            body="Settlement",
            parameters=[_ID],
        ),
    },
    "/v1/tools": {
        "get": _operation(
            "tools",
            "The tools this caller may see",
            {200: _said("one page", ref("ToolPage")), 400: _said("bad parameters", ref("Observation"))},
            parameters=[
                _in_query("q", TEXT, "words that name, description or tags must contain"),
                _in_query("cursor", TEXT, "next_cursor of the page before"),
                _in_query("limit", {"type": "integer", "minimum": 1}, "100 when left out, 500 at most"),
            ],
        ),
    },
    "/v1/why": {
        "get": _operation(
            "whyTool",
            "Why a tool cannot be used",
            {200: _said("the answer", ref("Explanation")), 400: _said("no tool named", ref("Observation"))},
            parameters=[{**_in_query("tool", TEXT, "namespace.name"), "required": True}],
        ),
        "post": _operation(
            "why", "Why a call is not allowed", {200: _said("the answer", ref("Explanation"))}, body="Why"
        ),
    },
    "/v1/approvals": {
        "get": _operation("approvals", "Open questions to people", {200: _said("open", ref("Approvals"))}),
    },
    "/v1/approvals/{id}": {
        "get": _operation(
            "approval",
            "One open question",
            {200: _said("the question", ref("Approval")), 404: _UNKNOWN},
            parameters=[_ID],
        ),
    },
    "/v1/approvals/{id}/decision": {
        "post": _operation(
            "decide",
            "Answer a question",
            {200: _said("the question now", ref("Approval")), 404: _UNKNOWN, 409: _CONFLICT},
            body="Decision",
            parameters=[_ID],
        ),
    },
    "/v1/rules": {
        "get": _operation("rules", "Approvals that stand", {200: _said("all there were", ref("Rules"))}),
        "post": _operation(
            "proposeRule",
            "Ask people whether a rule may stand",
            {202: _said("it waits for them", ref("Rule")), 404: _UNKNOWN, 409: _CONFLICT},
            body="RuleWish",
        ),
    },
    "/v1/rules/proposals": {
        "get": _operation(
            "proposeRules",
            "Rules that past answers suggest, with their proof",
            {200: _said("suggested", ref("RuleProposals")), 400: _said("no time", ref("Observation"))},
            parameters=[
                _in_query("since", TEXT, "from this time on, in ISO 8601; 30 days when left out"),
                _in_query("tool", TEXT, "only for this tool"),
            ],
        ),
    },
    "/v1/rules/{id}": {
        "get": _operation(
            "rule", "One rule", {200: _said("the rule", ref("Rule")), 404: _UNKNOWN}, parameters=[_ID]
        ),
        "delete": _operation(
            "revokeRule",
            "End a rule at once, in every process",
            {200: _said("ended", ref("Rule")), 404: _UNKNOWN, 409: _CONFLICT},
            parameters=[_ID],
        ),
    },
    "/v1/rules/{id}/acceptance": {
        "post": _operation(
            "acceptRule",
            "Say yes to a rule",
            {200: _said("the rule now", ref("Rule")), 404: _UNKNOWN, 409: _CONFLICT},
            body="Acceptance",
            parameters=[_ID],
        ),
    },
    "/v1/plans": {
        "get": _operation("plans", "Plans", {200: _said("all there were", ref("Plans"))}),
        "post": _operation(
            "proposePlan",
            "Ask people once about all the calls of a plan",
            {
                200: _said("no step needs approval", ref("Planned")),
                202: _said("it waits for them", ref("Planned")),
                422: _said("steps would be refused; nobody was asked", ref("Planned")),
            },
            body="PlanWish",
        ),
    },
    "/v1/plans/{id}": {
        "get": _operation(
            "plan", "One plan", {200: _said("the plan", ref("Plan")), 404: _UNKNOWN}, parameters=[_ID]
        ),
        "delete": _operation(
            "revokePlan",
            "End a plan at once",
            {200: _said("ended", ref("Plan")), 404: _UNKNOWN, 409: _CONFLICT},
            parameters=[_ID],
        ),
    },
    "/v1/chains": {
        "get": _operation("chains", "Chains", {200: _said("those you may know of", ref("ChainReports"))}),
    },
    "/v1/chains/{name}": {
        "get": _operation(
            "chain",
            "One chain",
            {200: _said("as it is declared", ref("Chain")), 404: _UNKNOWN},
            parameters=[_in_path("name")],
        ),
    },
    "/v1/chains/{name}/plan": {
        "post": _operation(
            "planChain",
            "Ask people once about the steps whose arguments follow from the input",
            {
                200: _said("no step needs approval", ref("Planned")),
                202: _said("it waits for them", ref("Planned")),
                404: _UNKNOWN,
                409: _error("it cannot be run"),
                422: _said("steps would be refused; nobody was asked", ref("Planned")),
            },
            body="ChainInput",
            parameters=[_in_path("name")],
        ),
    },
    "/v1/chains/{name}/prove": {
        "post": _operation(
            "proveChain",
            "Do and undo each step of a saga in a twin, and see whether all is as before",
            {
                200: _said("what was found, step by step", ref("ChainProof")),
                404: _UNKNOWN,
                409: _error("nothing can be shown here, such as without a twin"),
            },
            body="ChainInput",
            parameters=[_in_path("name")],
        ),
    },
    "/v1/chains/{name}/accept": {
        "post": _operation(
            "acceptChain",
            "Take a saga as it is where nobody has shown that its undoings undo",
            {200: _said("what was taken on", ref("ChainAccepted")), 404: _UNKNOWN, 409: _CONFLICT},
            body="ChainAcceptance",
            parameters=[_in_path("name")],
        ),
    },
    "/v1/runs": {
        "get": _operation("runs", "Runs of chains", {200: _said("newest first", ref("Runs"))}),
        "post": _operation(
            "beginRun",
            "Run a chain",
            {
                200: _said("the run of this key is over", ref("RunShown")),
                202: _said("it is on its way", ref("RunShown")),
                404: _UNKNOWN,
                409: _error("it cannot be run, or the key was used for something else"),
            },
            body="RunWish",
        ),
    },
    "/v1/runs/{id}": {
        "get": _operation(
            "run",
            "One run",
            {200: _said("the run", ref("RunShown")), 404: _UNKNOWN},
            parameters=[_ID],
        ),
    },
    "/v1/runs/{id}/resume": {
        "post": _operation(
            "resumeRun",
            "Go on with a run that waits for a person",
            {202: _said("it goes on", ref("RunShown")), 404: _UNKNOWN, 409: _CONFLICT},
            parameters=[_ID],
        ),
    },
    "/v1/runs/{id}/choose": {
        "post": _operation(
            "chooseForRun",
            "Say which way a run goes that waits for a person's choice",
            {202: _said("it goes on", ref("RunShown")), 404: _UNKNOWN, 409: _CONFLICT},
            body="Choice",
            parameters=[_ID],
        ),
    },
    "/v1/runs/{id}/abandon": {
        "post": _operation(
            "abandonRun",
            "End a run as it stands",
            {200: _said("ended", ref("RunShown")), 404: _UNKNOWN, 409: _CONFLICT},
            body="Abandonment",
            parameters=[_ID],
        ),
    },
    "/v1/runs/{id}/cancel": {
        "post": _operation(
            "cancelRun",
            "Stop a run; a saga takes back what it has done",
            {
                202: _said("it is told", ref("RunShown")),
                404: _UNKNOWN,
                409: _said("too late", ref("RunShown")),
            },
            parameters=[_ID],
        ),
    },
    "/v1/sessions": {
        "get": _operation(
            "upstreamSessions",
            "Sessions that upstreams keep open",
            {200: _said("one's own, or everybody's for operators", ref("UpstreamSessions"))},
        ),
    },
    "/v1/sessions/{id}": {
        "get": _operation(
            "upstreamSession",
            "One session, and what was done in it",
            {200: _said("the session", ref("UpstreamSessionShown")), 404: _UNKNOWN},
            parameters=[_ID],
        ),
    },
    "/v1/sessions/{id}/rollback": {
        "post": _operation(
            "rollBackUpstreamSession",
            "Roll a session back",
            {
                200: _said("nothing of it is left", ref("UpstreamSessionShown")),
                202: _said("it is tried again until it is", ref("UpstreamSessionShown")),
                404: _UNKNOWN,
                409: _CONFLICT,
            },
            parameters=[_ID],
        ),
    },
    "/v1/sessions/{id}/undo": {
        "post": _operation(
            "undoUpstreamSession",
            "Take back what was committed in a session, step by step",
            {
                200: _said("all of it is taken back", ref("UpstreamSessionUndone")),
                202: _said("the last of these failed or waits: ask again", ref("UpstreamSessionUndone")),
                404: _UNKNOWN,
                409: _error("it was not committed, or some of its steps cannot be taken back"),
            },
            body="UpstreamSessionUndo",
            parameters=[_ID],
        ),
    },
    "/v1/sessions/{id}/settle": {
        "post": _operation(
            "settleUpstreamSession",
            "Say how a session ended of which nobody knows that",
            {200: _said("settled", ref("UpstreamSessionShown")), 404: _UNKNOWN, 409: _CONFLICT},
            body="UpstreamSessionOutcome",
            parameters=[_ID],
        ),
    },
    "/v1/halts": {
        "get": _operation("halts", "What is halted", {200: _said("target and note", ref("Halts"))}),
        "post": _operation(
            "halt", "Halt, in every process", {200: _said("halted", ref("Halted"))}, body="Halt"
        ),
    },
    "/v1/halts/{target}": {
        "delete": _operation(
            "resume",
            "Resume what was halted",
            {200: _said("resumed", ref("Halted")), 404: _error("not halted")},
            parameters=[_in_path("target")],
        ),
    },
    "/v1/grants": {
        "get": _operation(
            "grants", "Scopes held for a while: one's own, or all of them", {200: _said("all", ref("Grants"))}
        ),
        "post": _operation(
            "grant",
            "Give somebody a scope for a while",
            {201: _said("given", ref("Grant")), 404: _error("no such person here"), 409: _CONFLICT},
            body="NewGrant",
        ),
    },
    "/v1/grants/{id}": {
        "delete": _operation(
            "revokeGrant",
            "Take a grant back, in every process",
            {200: _said("revoked", ref("Grant")), 404: _UNKNOWN},
            parameters=[_ID],
        ),
    },
    "/v1/elevations": {
        "post": _operation(
            "elevate",
            "Ask people for a scope for a while",
            {202: _said("asked", ref("Elevation")), 409: _CONFLICT},
            body="NewElevation",
        ),
    },
    "/rpc": {
        "post": {
            **_operation(
                "rpc",
                "JSON-RPC 2.0: tools.list, tools.call, calls.get",
                {
                    200: _said(
                        "one response, or one per request of a batch",
                        {"anyOf": [ref("RpcResponse"), many(ref("RpcResponse"))]},
                    ),
                    204: {"description": "notifications only"},
                    413: _error("the body is too large"),
                },
                parameters=_call_headers(),
            ),
            "requestBody": {
                "required": True,
                "content": _content({"anyOf": [ref("RpcRequest"), many(ref("RpcRequest"))]}),
            },
        },
    },
    "/oauth/token": {
        "post": {
            **_operation(
                "exchange",
                "Hand on what somebody holds, as a token for an agent (RFC 8693)",
                {
                    200: _said("the token", ref("Delegation")),
                    400: _said("an OAuth error; nothing was given", ref("OAuthError")),
                    413: _error("the body is too large"),
                    429: _error("too many at once"),
                },
            ),
            "requestBody": {
                "required": True,
                "content": {"application/x-www-form-urlencoded": {"schema": ref("Exchange")}},
            },
        },
    },
    "/oauth/revoke": {
        "post": {
            **_operation(
                "revoke",
                "End a delegation and whatever was handed on from it (RFC 7009)",
                {
                    200: _said("it counts no more, if it ever did", {"type": "object"}),
                    400: _said("an OAuth error", ref("OAuthError")),
                    413: _error("the body is too large"),
                },
            ),
            "requestBody": {
                "required": True,
                "content": {
                    "application/x-www-form-urlencoded": {
                        "schema": {"type": "object", "properties": {"token": TEXT}, "required": ["token"]}
                    }
                },
            },
        },
    },
    "/health": {
        "get": _operation("health", "The process is up", {200: _said("up", ref("Health"))}, public=True),
    },
    "/ready": {
        "get": _operation(
            "ready",
            "Calls can be taken now",
            {200: _said("ready", ref("Ready")), 503: _said("not ready", ref("Ready"))},
            public=True,
        ),
    },
    "/openapi.json": {
        "get": _operation(
            "openapi", "This document", {200: _said("OpenAPI 3.1", {"type": "object"})}, public=True
        ),
    },
    "/": {
        "get": _operation(
            "home",
            "What this is",
            {200: {"description": "a page", "content": {"text/html": {"schema": TEXT}}}},
            public=True,
        ),
    },
    "/metrics": {
        "get": _operation(
            "metrics",
            "Prometheus metrics, as far as this caller may see them",
            {
                200: {"description": "text format 0.0.4", "content": {"text/plain": {"schema": TEXT}}},
                404: _error("metrics are switched off"),
            },
        ),
    },
    "/mcp": {
        "get": _mcp("mcpStream", "News for an MCP client before 2026-07-28", 200, "a stream of messages"),
        "post": {
            **_mcp("mcp", "One MCP message, of either era", 200, "the answer, or a stream that ends with it"),
            "requestBody": {"required": True, "content": _content({"type": "object"})},
        },
        "delete": _mcp("mcpEnd", "End a session of an MCP client before 2026-07-28", 200, "it is over"),
    },
    "/.well-known/jwks.json": {"get": _SUBJECT_KEYS},
    "/.well-known/oauth-protected-resource": {"get": _METADATA},
    "/.well-known/oauth-protected-resource/mcp": {"get": {**_METADATA, "operationId": "protectedMcp"}},
    "/v1/policy/diff": {
        "post": _operation(
            "policyDiff",
            "Which past calls policies would decide otherwise",
            {200: _said("what flips", ref("Diff")), 404: _UNKNOWN, 409: _CONFLICT},
            body="Candidate",
        ),
    },
    "/v1/health": {
        "get": _operation(
            "toolHealth", "How well tools and upstreams are", {200: _said("the worst first", ref("Healths"))}
        ),
    },
    "/v1/alerts": {
        "get": _operation(
            "alerts",
            "What is wrong now, or was since a time",
            {200: _said("newest first", ref("Alerts")), 400: _said("no time", ref("Observation"))},
            parameters=[_in_query("since", TEXT, "those that are over too, from this time on, in ISO 8601")],
        ),
    },
    "/v1/channels": {
        "get": _operation(
            "channels", "Whether people are told of what waits", {200: _said("each channel", ref("Channels"))}
        ),
    },
    "/v1/costs": {
        "get": _operation(
            "costs",
            "What calls cost: one's own, or everybody's for an operator",
            {200: _said("the dearest first", ref("Costs")), 400: _said("bad parameters", ref("Observation"))},
            parameters=[
                _in_query("by", {"type": "string", "enum": list(GROUPS)}, "'tool' when left out"),
                _in_query("since", TEXT, "from this day on, in ISO 8601; 30 days when left out"),
            ],
        ),
        "post": _operation(
            "reportCost",
            "Say what a task cost beside its calls",
            {201: _said("written down", ref("CostReport")), 409: _error("no such cost")},
            body="CostReport",
        ),
    },
    "/v1/jobs/{word}": {
        "post": _operation(
            "calledBack",
            "Say that there is news of a job; only what submitted it knows the address",
            {
                202: _said("it is asked after now", ref("CalledBack")),
                404: _error("no such job, or it is over"),
                413: _error("the body is too large, and not read"),
                429: _error("too much news at once"),
            },
            parameters=[_in_path("word")],
            public=True,
        ),
    },
    "/v1/audit": {
        "get": _operation(
            "audit",
            "The records of this caller's tenant",
            {200: _said("one page", ref("AuditPage")), 400: _said("bad parameters", ref("Observation"))},
            parameters=[
                _in_query("call", TEXT, "only the records of this call"),
                _in_query("since", TEXT, "only from this time on, in ISO 8601"),
                _in_query("cursor", TEXT, "next_cursor of the page before"),
                _in_query("limit", {"type": "integer", "minimum": 1}, "100 when left out, 1000 at most"),
            ],
        ),
    },
    "/v1/audit/proof/{record}": {
        "get": _operation(
            "auditProof",
            "Proof that a record is in the log",
            {200: _said("the record and its way to the signed root", ref("AuditProof")), 404: _UNKNOWN},
            parameters=[_in_path("record")],
        ),
    },
}
