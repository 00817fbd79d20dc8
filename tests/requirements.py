"""What must Holdfast do, and which test proves it?

One line per clause of the specification. A test that proves a clause carries its id:

    @requirement("IDM-4")
    async def test_a_duplicate_waits_for_the_first() -> None: ...

`tests/test_requirements.py` checks both ways: a clause that is not deferred has a test, a deferred one has none.
`partial` says what of a proven clause is still missing; a clause may be deferred and partial, then it becomes
partial on the day its first test lands and `deferred` goes.
"""

from dataclasses import dataclass
from difflib import get_close_matches

import pytest


@dataclass(frozen=True, slots=True)
class Requirement:
    id: str
    text: str
    deferred: str | None = None
    partial: str | None = None


PENDING = "built in this milestone, test pending"
GOVERNED = "comes with the milestone 'Governed'"
MCP = "comes with the milestone 'MCP on both sides'"
SPEED = "comes with the milestone 'Speed'"
PEOPLE = "comes with the milestone 'People'"
LATER = "later: no milestone has it yet"

# fmt: off
CLAUSES = (
    # 1. contract and admission
    Requirement("CON-1", "one contract document with all its parts, as Python, YAML or JSON, its own JSON Schema published and versioned"),
    Requirement("CON-2", "a tool that fails any part of admission is refused at registration with all reasons at once"),
    Requirement("CON-3", "cross-field rules: writes declare effects and idempotency, undo none needs floor and preview, critical needs two people and a check"),
    Requirement("CON-4", "the system face of a contract is never shown to a model, and a lint reports poor affordances"),
    Requirement("CON-5", "input schemas are closed by default, nothing is coerced, formats are enforced, defaults are applied before the fingerprint"),
    Requirement("CON-6", "marked fields: payloads encrypted per tenant, keyed commitments in the log, neither shown where they must not be"),
    Requirement("CON-7", "one decorator makes a Python function a tool: schema from hints, descriptions from the docstring, effect stated"),
    Requirement("CON-8", "an imported tool is provisional with a conservative contract until an overlay states the truth"),
    Requirement("CON-9", "mutation class and approval mode are derived from effect, undo and reach by one total table"),
    # 2. catalog, discovery, versions
    Requirement("REG-1", "a namespace per upstream, no collisions, several versions side by side, a closed set of tool statuses"),
    Requirement("REG-2", "MCP discovery negotiates, pages, skips and reports bad descriptors, applies changes atomically, in parallel, cached"),
    Requirement("REG-3", "a dead upstream's tools become unavailable, not deregistered, and return by themselves"),
    Requirement("REG-4", "version specs resolve (exact, LATEST, 2.x, ^, ranges), sunset versions are refused, pins are honoured"),
    Requirement("REG-5", "schema compatibility is computed and a breaking change under a lesser bump is refused, naming each path"),
    Requirement("REG-6", "deprecation goes from notice over warnings and usage reports to removal after a day of no use"),
    Requirement("REG-7", "a share of calls goes to a new version, compared side by side; a release is promoted or rolled back as one", deferred=LATER),
    Requirement("REG-8", "imported descriptors are hashed into a lock file; a material change quarantines the tool until its diff is accepted"),
    Requirement("REG-9", "cached read-only aliases pass every gate and are dropped on policy promotion"),
    # 3. life of a call
    Requirement("LIF-1", "six phases, none skippable, in one short file; no other module can reach execution"),
    Requirement("LIF-2", "the gates stand in one order, and an unauthorised caller learns nothing about a tool"),
    Requirement("LIF-3", "the first gate that does not pass decides, one that raises refuses, an approved call starts again from the top"),
    Requirement("LIF-4", "every call carries tenant, user, agent, session, task, step, environment, trace, deadline, budget and safety mode", partial="budgets are looked up by task, session, principal and tenant; a budget a caller passes along comes later"),
    Requirement("LIF-5", "no failure crashes the gateway or leaks a stack trace, path, secret or host to the caller"),
    Requirement("LIF-6", "policy is judged again at execute time; a need that rises mid-flow refuses and raises a security event"),
    # 4. validation
    Requirement("VAL-1", "the set of codes is closed"),
    Requirement("VAL-2", "one total table gives each code its family, names, wire statuses and remedy, and every code is produced by a test"),
    Requirement("VAL-3", "semantic validators over arguments and looked-up state, as safe expressions or Python functions"),
    Requirement("VAL-4", "size, depth, length and count are limited before parsing; hostile schemas are refused at admission"),
    Requirement("VAL-5", "a call planned on a version of its target is refused with the fresh state when that changed"),
    # 5. identity and credentials
    Requirement("AUT-1", "every network request authenticates; no token is passed through"),
    Requirement("AUT-2", "user, agent and call credentials only ever shrink in scope and life, and the act chain is kept"),
    Requirement("AUT-3", "egress credentials by token exchange or provider, after authorisation only, visible nowhere"),
    Requirement("AUT-4", "grants use globs where * stays in a segment and ** crosses; time-bound, refreshed, revocable, each decision audited"),
    Requirement("AUT-5", "effective scope is the caller's scopes intersected with the required ones; chains never escalate"),
    Requirement("AUT-6", "tenants are isolated in every store, cache, key, metric and audit view"),
    Requirement("AUT-7", "outside parties see opaque session ids, not agent ids"),
    Requirement("AUT-8", "elevation is a time-bound grant by approval; expired egress credentials refuse before dispatch; secrets rotate live"),
    # 6. policy, risk, limits
    Requirement("POL-1", "a policy language over principal, tool, effect, arguments, environment, data and time, in validated, versioned bundles"),
    Requirement("POL-2", "default deny, also with no policy loaded; only dev with local auth loads the starter bundle, and says so"),
    Requirement("POL-3", "when approval is needed: never by default for reads, always for undo none, always in prod above the critical scope"),
    Requirement("POL-4", "budgets by effect, task, session and tenant, reserved before the call and settled after", partial="calls, cost, wall clock and retries; repairs, tokens and extension by approval come with those parts"),
    Requirement("POL-5", "rate limits per tool, tenant and credential, shared between processes, with retry-after"),
    Requirement("POL-6", "egress is none, allow-listed, private only or with approval, resolved safe from SSRF"),
    Requirement("POL-7", "every decision has an id and explains itself, down to the smallest change that would allow it", partial="tools that were not chosen come with selection"),
    Requirement("POL-8", "a candidate bundle replayed over recorded calls shows every decision that flips"),
    # 7. approvals
    Requirement("APR-1", "the packet has every field, evidence frozen at proposal time, agent-controlled text escaped and marked"),
    Requirement("APR-2", "the need is a set of roles and counts; nobody approves their own call"),
    Requirement("APR-3", "unanswered means denied at expiry, after escalation by fraction of the timeout"),
    Requirement("APR-4", "a grant binds operation, digest, fingerprint, approvers and expiry, is used once, and is given back by no effect"),
    Requirement("APR-5", "approvals never depend on the client; a held call can be polled, waited for or called again, across restarts"),
    Requirement("APR-6", "every tool with undo none has a preview with a plan token, revalidated at execution"),
    Requirement("APR-7", "channels: console, CLI, webhook, email"),
    Requirement("APR-8", "a whole chain is approved once, each step consumes its slice, drift re-asks for the delta", partial="steps whose arguments follow from the input are asked about together; one that is given what another step answered asks for itself"),
    Requirement("APR-9", "approval fatigue is measured and standing rules are proposed from history, time-boxed and revocable"),
    # 8. idempotency
    Requirement("IDM-1", "every write has a key, the caller's, derived from task and step, or made by the protocol; a keyless write takes over an equal open or undelivered operation; arguments alone never make a key"),
    Requirement("IDM-2", "a derived key is an HMAC over tenant, principal, task, step and tool; keys are scoped to tenant, principal and tool"),
    Requirement("IDM-3", "duplicates behave by state; the same key with another fingerprint is a mismatch; unknown never expires to free"),
    Requirement("IDM-4", "claim before running, outcome before answering: at most one effect under duplicates, kills and stopped workers"),
    Requirement("IDM-5", "the effect ledger: a dead worker's dispatched claim is unknown, settled by probe, upstream key or a person"),
    Requirement("IDM-6", "after its window a key replays while the outcome is kept, else it is expired; it never runs anew"),
    Requirement("IDM-7", "the key is mapped onto what the upstream offers, and the observation states the strength achieved", partial="functions by argument or Invocation, MCP by _meta, argument or header; SQL markers come with that pack"),
    Requirement("IDM-8", "clock jumps neither reopen a window nor duplicate an effect"),
    # 9. execution
    Requirement("EXE-1", "the deadline is propagated, work is cancelled and not abandoned, a disconnect never cancels a dispatched write"),
    Requirement("EXE-2", "retries only when retryable and safe, with capped, jittered backoff, retry-after and the same key"),
    Requirement("EXE-3", "a breaker per tool and a global revocation switch"),
    Requirement("EXE-4", "fallback per capability by priority, then a person; the observation says the level and what was tried"),
    Requirement("EXE-5", "reads are cached by fingerprint per tenant; stale is never served as live", partial="by time to live; dropping by event comes with change notifications"),
    Requirement("EXE-6", "async tools: submit, progress, poll, callback, cancel, durable"),
    Requirement("EXE-7", "overlapping effect manifests are serialised within the deadline, else a conflict"),
    Requirement("EXE-8", "stateful sessions: begin, commit, rollback, journal, compensation registered at commit; shared across workers; invalid output rolls back before commit"),
    Requirement("EXE-9", "bulkheads per upstream; connections and sessions are pooled and reused"),
    Requirement("EXE-10", "arguments never reach a shell, eval, or concatenated SQL or URL"),
    # 10. verification
    Requirement("VER-1", "output is checked against its schema in one place; a read fails, a write is unknown until probed", partial="MCP's isError and functions; HTTP and gRPC come with those upstreams"),
    Requirement("VER-2", "sanity predicates with severity: temporal, range, referential, cardinality, self-consistency"),
    Requirement("VER-3", "cross-tool consistency with tolerances and a way to resolve", deferred=LATER),
    Requirement("VER-4", "postconditions read the target back after the declared delay, compare, compensate or escalate"),
    Requirement("VER-5", "a read-only tool caught changing state is quarantined; a write with no change is a warning", deferred=LATER),
    Requirement("VER-6", "every write shows its rung: dispatched, accepted, observed, verified; never more than was shown"),
    # 11. observation and routing
    Requirement("OBS-1", "the observation carries provenance, citations, mutations, decision, cost, deprecation, pagination, rung and strength"),
    Requirement("OBS-2", "upstream output is data in a frame it cannot forge; hidden characters and injection patterns are flagged", deferred=LATER),
    Requirement("OBS-3", "results are routed to next step, context, memory, audit or discard", deferred=LATER),
    Requirement("OBS-4", "compression in five levels within the token budget; what does not fit stays behind a handle", deferred=LATER),
    Requirement("OBS-5", "token accounting: window minus system, history, memory and reserve", deferred=LATER),
    Requirement("OBS-6", "information-flow labels follow results, and a label may not reach a sink without declassification", partial="results label their session, task or principal, policies forbid sinks, operators lift labels; through handles and bindings come with chains"),
    # 12. audit and replay
    Requirement("AUD-1", "intent and outcome of every executed call and one record per refusal, append-only and tamper-evident"),
    Requirement("AUD-2", "decisions, approvals, promotions, credentials, quarantines and admin acts are audited too", partial="decisions, approvals, promotions, halts, settlements, keys made, exports and erasures; quarantines come with their milestone"),
    Requirement("AUD-3", "any past decision is reconstructed from the records and comes out the same"),
    Requirement("AUD-4", "retention per tenant, export, erasure of payloads without breaking the proof"),
    Requirement("AUD-5", "nothing that executed is missing from the audit; an outcome that cannot be written is unknown, never done"),
    # 13. telemetry and health
    Requirement("TEL-1", "W3C trace context on every protocol; a span per call with a child per phase; keys hashed", partial="over HTTP, JSON-RPC and MCP; gRPC comes with that protocol"),
    Requirement("TEL-2", "the specified metrics, rates and evaluation metrics over OTLP and a Prometheus endpoint", partial="the rate at which compensations succeed comes later"),
    Requirement("TEL-3", "alerts for degradation, latency, timeout class, backlog, retries, runaway loops and cost"),
    Requirement("TEL-4", "health is 1 - (0.5 error + 0.3 latency + 0.2 timeout), fed to selection and fallback"),
    Requirement("TEL-5", "cost per call in six parts, rolled up to task and tenant"),
    Requirement("TEL-6", "/health, /ready, and structured logs with trace ids"),
    # 14. chains
    Requirement("CHN-1", "chains in YAML or Python are compiled: types, cycles, depth, deadline; all faults at once"),
    Requirement("CHN-2", "sequential steps share the deadline by estimated latency; conditions by predicate or confident model"),
    Requirement("CHN-3", "parallel levels with joins all, quorum, first success, best of N"),
    Requirement("CHN-4", "bindings by path expressions; a missing mandatory field fails with its path, never hangs"),
    Requirement("CHN-5", "per step abort, continue, fallback or compensate; partial results are always reported"),
    Requirement("CHN-6", "a chain is itself a tool under the caller's authority, every step through every gate"),
    Requirement("CHN-7", "a chain killed anywhere resumes with no step done twice; a waiting run holds no process"),
    # 15. sagas
    Requirement("SAG-1", "compensation in reverse order, idempotent and retried, with its six states"),
    Requirement("SAG-2", "steps with undo none come last or are approved first; after the pivot, forward only"),
    Requirement("SAG-3", "a failed compensation alerts and gives an operator the journal and a way to resume"),
    Requirement("SAG-4", "compensations are tested: do then undo is identity, or a person accepts it"),
    # 16. selection
    Requirement("SEL-1", "tools are shown in tiers: an index, schemas of the chosen, detail on demand", partial="pinned tools and three to search, describe and call the rest; no token budgets yet"),
    Requirement("SEL-2", "tools are packed under a token budget, exact where small, greedy with a bound elsewhere", deferred=LATER),
    Requirement("SEL-3", "rules, lexical and semantic retrieval, a learned router and a model, layered", deferred=LATER),
    Requirement("SEL-4", "health, trust, cost and policy influence ranking; what a principal may not use is never shown", partial="health ranks, and what a principal may not use is never shown; trust and cost do not rank yet"),
    Requirement("SEL-5", "selection quality is measured on public tool-retrieval sets", deferred=LATER),
    # 17. repair
    Requirement("HEA-1", "repair is bounded, never touches permission, policy or key failures, and a repaired write is a new proposal", deferred=LATER),
    Requirement("HEA-2", "deterministic repairers first, a model second", deferred=LATER),
    Requirement("HEA-3", "repair metrics: success, mean attempts, overhead, false repairs", deferred=LATER),
    # 18. tools made by agents
    Requirement("FRG-1", "gap detection and a template with code, schemas, dependencies, limits and tests", deferred=LATER),
    Requirement("FRG-2", "sandbox tiers by OS isolation; a missing kernel feature refuses the tier", deferred=LATER),
    Requirement("FRG-3", "analysis, types, scan, tests, fuzzing and output schema make a weighted score against a threshold", deferred=LATER),
    Requirement("FRG-4", "a made tool is rejected, ephemeral, or promoted after human review", deferred=LATER),
    # 19. ecosystem
    Requirement("ECO-1", "marketplace entries, searched by capability with constraints, ranked by fixed weights", deferred=LATER),
    Requirement("ECO-2", "trust from eight signals with decay, stages, provider limits, revocation that reaches everyone", deferred=LATER),
    Requirement("ECO-3", "known inputs are replayed to detect drift; signs of abuse quarantine", partial="hidden instructions in descriptions are flagged; no trust marketplace yet"),
    # 20. built-in toolsets
    Requirement("FST-1", "files in a root jail that nothing escapes, with journal and undo", deferred=LATER),
    Requirement("GIT-1", "git on the agent's own branches only; protected branches are refused", deferred=LATER),
    Requirement("BLD-1", "build, test, lint and typecheck with structured results", deferred=LATER),
    Requirement("SQL-1", "introspection and bounded, parsed, parameterised read queries", deferred=LATER),
    Requirement("SQL-2", "migrations are planned with up, down and dry run, never executed by themselves", deferred=LATER),
    Requirement("SQL-3", "data-quality rules", deferred=LATER),
    Requirement("WEB-1", "browser operations over accessibility-tree observations, under the egress policy", deferred=LATER),
    Requirement("DSK-1", "the same loop over a desktop session", deferred=LATER),
    Requirement("COM-1", "mail, chat, notification and ticket with draft, review, send and their policies", deferred=LATER),
    # 21. protocols
    Requirement("PRO-1", "MCP server and client in both eras; the official conformance suite passes"),
    Requirement("PRO-2", "JSON-RPC, REST and gRPC for applications; the core knows no protocol", partial="JSON-RPC and REST; gRPC comes later"),
    Requirement("PRO-3", "OpenAPI documents and gRPC reflection import as tools", deferred=LATER),
    Requirement("PRO-4", "an existing MCP client configuration is wrapped with one command that can undo itself"),
    # 22. test kit
    Requirement("TST-1", "holdfast test runs unit cases, behavioural contracts and chaos scenarios with a deploy-gate exit code", deferred=LATER),
    Requirement("TST-2", "contract inference: a tool watched in a sandbox gets a proposed contract with confidence", deferred=LATER),
    Requirement("TST-3", "a public effect-correctness kit that runs against any MCP gateway"),
    Requirement("TST-4", "each known failure mode and anti-pattern has one named test that proves its mitigation", deferred=LATER),
    # 23. people
    Requirement("PPL-1", "the CLI covers the work, shows progress, and every error says what to do next", partial="wrap, chain and test come with their milestones"),
    Requirement("PPL-2", "a web console for approvals, calls, catalog, chains, audit, policy and costs, tested in a browser", partial="the catalog shows no trust: nothing measures it yet"),
    Requirement("PPL-3", "docs: a first governed call in five minutes, generated reference, every example executed", partial="tutorial, how-tos, generated reference and explanation of what is built"),
    Requirement("PPL-4", "halt and resume, cancel, settle, hot reload, observe-only roll-out, key rotation", partial="settle, halt, resume and cancel only; reload, observe-only and rotation come later"),
    Requirement("PPL-5", "a restored store refuses writes until what happened since is settled; upgrade rules are tested"),
    Requirement("PPL-6", "several stdio processes and a server share one database; the answer prints the command to approve"),
    # 24. decisions already taken
    Requirement("DEC-1", "gates stage their writes; begin and finish of the ledger are one transaction each; a failed write is its gate's refusal"),
    Requirement("DEC-2", "one operation row per tenant, principal, tool and key, from the first hold on"),
    Requirement("DEC-3", "gates hold no upstream; what they read goes through one Reader as a system principal, read-only, depth 1"),
    Requirement("DEC-4", "tenant in every primary key, versioned migrations, secrets in a 0600 file in dev and from a provider in prod"),
    Requirement("DEC-5", "a preview never asks approval, limits or claim; the read cache is in execution; the claim compares policy versions"),
    Requirement("DEC-6", "unsampled spans cost nothing; at most about a hundred policies apply to one tool"),
    # 25. names that outsiders rely on
    Requirement("NAM-1", "the command, its subcommands, options and exit codes", partial="subcommands of later milestones are absent"),
    Requirement("NAM-2", "the configuration keys; an unknown one is refused with the nearest known one"),
    Requirement("NAM-3", "the HTTP routes, bodies, headers and statuses", partial="/mcp and the console come with their milestones"),
    Requirement("NAM-4", "the fields of the observation JSON"),
    Requirement("NAM-5", "tool names, _meta keys and errors over MCP"),
    Requirement("NAM-6", "the Python names: Gateway, tool, Effect, Undo, Principal, Observation, holdfast.testing"),
    # 26. figures
    Requirement("FIG-1", "one table of defaults in one file, each documented and tested"),
)
# fmt: on

REQUIREMENTS = {clause.id: clause for clause in CLAUSES}


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Mark a test as the proof of these clauses; an unknown id fails at import, in the file that wrote it."""
    for name in ids:
        if name not in REQUIREMENTS:
            raise LookupError(_unknown(name))
    return pytest.mark.requirement(*ids)


def _unknown(name: str) -> str:
    near = get_close_matches(name.upper(), REQUIREMENTS, n=1, cutoff=0)
    hint = f", did you mean '{near[0]}'" if near else ""
    return f"unknown requirement '{name}'{hint}; the clauses are in tests/requirements.py"
