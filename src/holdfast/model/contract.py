"""What does one tool version promise?

A contract is complete, versioned, hashed and immutable. Its first part is the
affordance, which a model may see; everything else is the system face and never
leaves the gateway. What can be derived (mutation class, approval mode, S4's
transaction semantics) is not declared: see `derive`.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from holdfast.model import defaults, secret
from holdfast.model.canonical import digest
from holdfast.model.errors import Code
from holdfast.model.labels import LABEL, carried
from holdfast.model.vocabulary import (
    DataClass,
    Effect,
    Egress,
    Floor,
    Operation,
    Reach,
    Severity,
    TimeoutClass,
    ToolStatus,
    Undo,
)

SCHEMA_VERSION = "1"
"""Version of the contract document itself; its JSON Schema is published in docs/reference."""

NAMESPACE = re.compile(r"[a-z0-9-]{1,32}")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

CHAINS = "chains"
"""The namespace of chains: no upstream answers to it."""

JsonObject = dict[str, Any]
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=4096)]
Cel = Annotated[str, StringConstraints(min_length=1, max_length=2048)]
"""A predicate or value in the Common Expression Language."""
ToolName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,32}\.[a-zA-Z0-9_-]{1,64}$")]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Checked anew, and without what was computed from the old values."""
        fields = {name: getattr(self, name) for name in type(self).model_fields} | dict(update or {})
        return type(self).model_validate(deepcopy(fields) if deep else fields)


class Migration(Part):
    """How a call of this version is made one of another, once this version is past its end; REG-6."""

    to: str
    """The version that takes over."""
    arguments: JsonObject | None = None
    """Its arguments; strings that start with `=` are CEL over `args`. The same as before when left out."""


class Identity(Part):
    namespace: Annotated[str, StringConstraints(pattern=f"^{NAMESPACE.pattern}$")]
    name: Annotated[str, StringConstraints(pattern=f"^{NAME.pattern}$")]
    version: str
    """Semantic version of this contract."""
    owner: Annotated[str, StringConstraints(min_length=1, max_length=128)] = "unowned"
    status: ToolStatus = ToolStatus.ACTIVE
    deprecated_on: str | None = None
    sunset_on: str | None = None
    successor: str | None = None
    migration_guide: str | None = None
    migration: Migration | None = None
    upstream_name: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None
    """What the upstream itself calls the tool, where that is another name."""
    tags: tuple[str, ...] = ()
    """Capability tags: tools that share one can stand in for each other."""


class Example(Part):
    description: Text
    arguments: JsonObject


class Affordance(Part):
    """The part a model may see. Advisory: nothing here is relied on."""

    description: Text
    input_schema: JsonObject
    output_schema: JsonObject = Field(default_factory=dict)
    use_when: tuple[Text, ...] = ()
    do_not_use_when: tuple[Text, ...] = ()
    preconditions: tuple[Text, ...] = ()
    side_effects: Text = ""
    repair_hints: tuple[Text, ...] = ()
    examples: tuple[Example, ...] = ()


class RateLimit(Part):
    calls: int = Field(ge=1)
    per_s: float = Field(gt=0)


CostPart = Literal["compute", "external_api", "storage_io", "network", "token", "human_review"]


class Cost(Part):
    currency: str = "USD"
    per_call: float = Field(default=0.0, ge=0)
    """The sum of `parts`, where there are any and nothing else is said."""
    unit: Literal["call", "token", "second", "transaction", "custom"] = "call"
    categories: tuple[str, ...] = ()
    parts: dict[CostPart, Annotated[float, Field(ge=0)]] = {}
    """What one call costs, by what for; without it `per_call` counts as `external_api`."""

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        total = round(sum(self.parts.values()), 9)
        if self.parts and not self.per_call:
            self.__dict__["per_call"] = total  # frozen for others
        elif self.parts and abs(total - self.per_call) > 1e-6:
            raise ValueError(
                f"the parts of the cost add up to {total:g}, not to 'per_call' {self.per_call:g}"
            )
        return self


class Sla(Part):
    p99_ms: int | None = Field(default=None, ge=1)
    availability: float | None = Field(default=None, gt=0, le=1)


class Reading(Part):
    """A call to a READ_ONLY tool. Argument strings that start with `=` are CEL."""

    tool: ToolName
    arguments: JsonObject = Field(default_factory=dict)


class Compensation(Part):
    tool: ToolName
    arguments: JsonObject = Field(default_factory=dict)
    """Strings that start with `=` are CEL over `args` and `result`."""


class Job(Part):
    """The tool only submits: what its answer names goes on without the call, and is asked after; EXE-6."""

    id: Cel
    """Over `args` and `result`: what the upstream calls the job."""
    poll: Reading
    """How it is asked after; CEL over `args`, `key` and `job`. What it answers is `state` below."""
    done: Cel
    """Over `state`: whether it has ended well."""
    failed: Cel | None = None
    """Over `state`: why it failed, or an empty text while it has not."""
    result: Cel | None = None
    """Over `state`: what the tool answers then; without it, all of `state`."""
    progress: Cel | None = None
    """Over `state`: how far it is, from 0 to 1."""
    ends_in_s: Cel | None = None
    """Over `state`: in how many seconds it is expected to end."""
    cancel: Compensation | None = None
    """What stops it; CEL over `args`, `key` and `job`."""
    callback: str | None = None
    """The argument of the tool that takes an address to call when there is news."""
    every_s: float = Field(default=defaults.POLL_S, gt=0)
    """Before the first look; doubled each time."""
    slowest_s: float = Field(default=defaults.POLL_CAP_S, gt=0)
    max_wait_s: float = Field(default=defaults.JOB_WAIT_S, gt=0)
    """Then it is cancelled."""


class Runtime(Part):
    timeout_class: TimeoutClass = TimeoutClass.STANDARD
    timeout_ms: int | None = Field(default=None, ge=1)
    """Narrows the class; never widens it."""
    reach: Reach = Reach.LOCAL
    max_retries: int = Field(default=defaults.RETRIES, ge=0, le=10)
    cache_ttl_s: float | None = Field(default=None, gt=0)
    """Only for READ_ONLY tools."""
    rate_limit: RateLimit | None = None
    cost: Cost = Cost()
    sla: Sla | None = None
    sandbox_tier: Annotated[int, Field(ge=0, le=3)] | None = None
    job: Job | None = None
    """What is submitted, where the answer is not yet the outcome."""

    @cached_property
    def timeout_s(self) -> float:
        limit = defaults.TIMEOUT_S[self.timeout_class]
        if self.job is not None:  # the call only submits: what goes on has `max_wait_s`
            limit = min(limit, defaults.JOB_CALLER_S)
        return limit if self.timeout_ms is None else min(limit, self.timeout_ms / 1000)


class Credential(Part):
    """A secret of the gateway's own that goes with every call of a tool; no caller gives or sees it."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    secret: Annotated[str, StringConstraints(pattern=f"^{secret.NAME}$")]
    """Its name under `secrets` in the configuration."""
    place: Literal["header", "env", "argument"] = Field(alias="as")
    """Where it goes: a header of the request, the environment of the program, an argument."""
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,127}$")]
    """The header, variable or argument that carries it."""
    prefix: Annotated[str, StringConstraints(max_length=64, pattern=r"^[ -~]*$")] = ""
    """Goes before it, such as `Bearer ` with the space."""


class Security(Part):
    required_scopes: tuple[str, ...] = ()
    tenant_scoped: bool = True
    tenant_argument: str | None = None
    """An argument that names a tenant; it must be the caller's own."""
    secrets: Literal["gateway_injected", "execution_sandbox", "none"] = "none"
    data_class: DataClass = DataClass.INTERNAL
    labels: tuple[Annotated[str, StringConstraints(pattern=f"^{LABEL.pattern}$")], ...] = ()
    """What else its results are, such as `customer-list`: policies see which session has seen it."""
    egress: Egress = Egress.NONE
    approval_floor: Floor = Floor.NONE
    credentials: tuple[Credential, ...] = ()
    """What the gateway adds to each call. Of several for one place, the one of the caller's tenant."""

    @model_validator(mode="after")
    def _with_approval(self) -> Self:
        """Whoever may reach anything "with approval" is asked about every call; POL-6."""
        if self.egress is Egress.WITH_APPROVAL and self.approval_floor is Floor.NONE:
            self.__dict__["approval_floor"] = Floor.USER  # frozen for others
        return self


class EffectEntry(Part):
    """One line of the effect manifest."""

    resource: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    operation: Operation
    scope: Annotated[str, StringConstraints(min_length=1, max_length=256)]


class Rule(Part):
    """A predicate that must hold, and what to tell the caller when it does not."""

    holds: Cel
    message: Text
    path: str = ""


class Sanity(Rule):
    severity: Severity = Severity.WARNING
    kind: Literal["temporal", "range", "referential", "cardinality", "self_consistency"] = "range"


class StateCheck(Part):
    """How to look at the target before touching it; VAL-5."""

    read: Reading
    version: Cel | None = None
    """Gives the version or ETag that `if_match` is compared with."""
    rules: tuple[Rule, ...] = ()
    """The target exists, is unlocked and in a valid state; over `args` and `state`."""


class Postcondition(Part):
    read: Reading
    holds: Cel
    """Over `args`, `result` and `state`."""
    message: Text = "the target is not in the expected state"
    delay_s: float = Field(default=0.0, ge=0, le=60)
    on_failure: Literal["escalate", "compensate"] = "escalate"


class Probe(Part):
    """A read that can tell afterwards whether the effect happened."""

    read: Reading
    committed: Cel
    """True over `args`, `key` (as the upstream got it) and `state` when the effect happened."""
    result: Cel | None = None
    """Rebuilds the tool's answer from `state`, `args` and `key`."""
    settle_after_s: float = Field(default=defaults.SETTLE_AFTER_S, ge=0)
    """A negative answer counts only this long after the attempt's deadline."""


class Preview(Part):
    """What would happen. Without `read` it can only show the arguments, and says so."""

    read: Reading | None = None


class Verification(Part):
    """What the caller should check later, where the gateway cannot."""

    target: Text
    expected: JsonObject = Field(default_factory=dict)
    delay_s: int = Field(default=0, ge=0)


class Session(Part):
    """Its part in a session that the upstream keeps open: what is done there counts once committed; EXE-8."""

    name: Annotated[str, StringConstraints(pattern=f"^{NAME.pattern}$")]
    """Tools of one namespace that say the same name belong together."""
    role: Literal["begin", "step", "commit", "rollback"]
    handle: Cel
    """Of `begin`: CEL over `result`, what the upstream calls the session. Else the argument that takes it."""
    idle_s: float = Field(default=defaults.SESSION_IDLE_S, gt=0)
    """Of `begin`: one that nobody works in for so long is rolled back."""


class Transactional(Part):
    effect: Effect
    undo: Undo = Undo.NONE
    manifest: tuple[EffectEntry, ...] = ()
    compensation: Compensation | None = None
    rollback_plan: Text = ""
    preview: Preview | None = None
    probe: Probe | None = None
    postconditions: tuple[Postcondition, ...] = ()
    verification: Verification | None = None
    session: Session | None = None
    composed: bool = False
    """It does nothing but call other tools, and people are asked about each of those; only for chains."""


class Idempotency(Part):
    """How the caller's key is mapped onto what the upstream offers; IDM-7."""

    upstream: Literal["none", "argument", "header", "meta", "transaction"] = "none"
    """`none`: the upstream knows no keys. Else where the key goes, and the upstream honours it."""
    name: str | None = None
    """The argument or header that carries the key."""
    window_s: float | None = Field(default=None, gt=0)

    @property
    def honoured(self) -> bool:
        return self.upstream != "none"


class Observability(Part):
    trace_attributes: tuple[str, ...] = ()
    audit_required: bool = True


class ErrorRule(Part):
    """Turns an upstream's own error into a code."""

    match: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    """An exception's class name, or a value found by `in_band`."""
    code: Code
    effect: Literal["none", "final", "unknown"] = "unknown"
    """What the error proves: nothing happened, it failed for good, or nobody knows."""


class ErrorContract(Part):
    error_schema: JsonObject = Field(default_factory=dict)
    in_band: Cel | None = None
    """Over `result`: the name of the error inside a successful answer, or an empty string."""
    rules: tuple[ErrorRule, ...] = ()


_LATER = (
    ("security", "credentials"),
    ("security", "labels"),
    ("transactional", "composed"),
    ("transactional", "session"),
    ("runtime", "job"),
)
"""Words that digests are older than: who does not say them has the digest of before."""
_LIFE = {"status", "deprecated_on", "sunset_on", "successor", "migration_guide", "migration"}


class Contract(Part):
    """The complete promise of one tool version."""

    identity: Identity
    affordance: Affordance
    runtime: Runtime = Runtime()
    security: Security = Security()
    transactional: Transactional
    idempotency: Idempotency | None = None
    observability: Observability = Observability()
    error_contract: ErrorContract = ErrorContract()
    semantics: tuple[Rule, ...] = ()
    """Cross-field rules over `args`."""
    lookups: dict[str, Reading] = Field(default_factory=dict)
    """State that `semantics` may use under these names."""
    state: StateCheck | None = None
    sanity: tuple[Sanity, ...] = ()
    """Predicates over `args` and `result`."""

    @cached_property
    def tool(self) -> str:
        return f"{self.identity.namespace}.{self.identity.name}"

    @property
    def version(self) -> str:
        return self.identity.version

    @property
    def leaves_something(self) -> bool:
        """Whether there is anything to take back: to begin a session or to end it changes nothing else."""
        session = self.transactional.session
        return self.effect.writes and (session is None or session.role == "step")

    @property
    def effect(self) -> Effect:
        return self.transactional.effect

    @cached_property
    def digest(self) -> str:
        """Names exactly this promise; approvals, claims and policies bind to it.

        Where the version stands in its life is not part of the promise: deprecating a
        tool must not turn the replay of an old key into a mismatch.
        """
        said = self.model_dump(mode="json", exclude={"identity": _LIFE})
        if not self.runtime.cost.parts:
            del said["runtime"]["cost"]["parts"]
        for section, word in _LATER:
            if not said[section][word]:
                del said[section][word]
        return digest(said)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What its results carry; OBS-6."""
        return carried(self.security.data_class, self.security.labels)

    @cached_property
    def window_s(self) -> float:
        """How long a key of this tool is remembered at least; IDM-6."""
        declared = self.idempotency.window_s if self.idempotency else None
        return max(declared or 0.0, defaults.dedup_window(self.runtime.timeout_class))

    @property
    def honours_key(self) -> bool:
        return self.idempotency is not None and self.idempotency.honoured
