"""What was asked for, and what has the gateway made of it so far?

A proposal is untrusted: a model wrote it. A call is one logical operation on its
way through the gates.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from holdfast.model.bounds import UNBOUND, Bounds
from holdfast.model.fallback import Standing
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.peer import Peer
from holdfast.model.sequel import Sequel
from holdfast.model.stage import Stage
from holdfast.model.trail import Origin, Parent, Trail
from holdfast.model.upstream_session import UpstreamSession
from holdfast.model.vocabulary import Environment, Floor, KeySource, SafetyMode, ToolStatus

_DRY_RUN = SafetyMode.DRY_RUN  # on the path of every call, where an enum's own attribute is slow before 3.12
_MADE = frozenset({KeySource.REQUEST, KeySource.ADOPTED})

if TYPE_CHECKING:
    from holdfast.model.observation import Observation
    from holdfast.model.tool import Tool
    from holdfast.model.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Principal:
    """Who is calling: a chain user -> agent, in one tenant."""

    tenant: str = "default"
    user: str
    agent: str = "cli"
    roles: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    trust: int = 0
    system: bool = False
    """The gateway itself, reading on behalf of a gate."""
    bounds: Bounds = UNBOUND
    """How far what it was delegated reaches, beside its scopes."""
    act: tuple[str, ...] = ()
    """Who acts for the user, the one who calls first; where somebody delegated further, more than one."""
    rests_on: tuple[str, ...] = ()
    """What can be taken back from it: `key:ID`, `grant:ID`, `token:JTI`. Claims look at each."""

    @cached_property
    def revocable(self) -> tuple[str, ...]:
        """What it rests on, as it is looked up: no tenant takes back what another one gave."""
        return tuple([f"{self.tenant}/{name}" for name in self.rests_on])

    @property
    def handed_on(self) -> bool:
        """Whether the chain of those who act says more than the agent's name."""
        act = self.act
        return bool(act) and (len(act) > 1 or act[0] != self.agent)

    @cached_property
    def id(self) -> str:
        """User and agent, never a token or a session; unambiguous whatever they contain."""
        return f"{quote(self.user, safe='@.-')}/{quote(self.agent, safe='@.-')}"


class Proposal(NamedTuple):
    """What somebody asks for. A tuple: as frozen as a dataclass, and made in a quarter of the time."""

    tool: str
    arguments: Mapping[str, Any] | str | bytes
    principal: Principal
    version: str | None = None
    key: str | None = None
    task: str | None = None
    step: str | None = None
    session: str | None = None
    deadline_ms: int | None = None
    if_match: str | None = None
    approval_token: str | None = None
    plan_token: str | None = None
    """What a preview promised: the call runs only while that still holds (APR-6)."""
    plan: str | None = None
    """An approved plan this call is a step of (APR-8); one that fits is found without."""
    release: str | None = None
    """Who proposes the call again once it is approved, `caller` or `gateway`; None: as configured."""
    preview: bool = False
    trace_id: str | None = None
    parent: Parent | None = None
    """The span this was proposed in, where the caller told one."""
    environment: Environment = Environment.DEV
    safety_mode: SafetyMode = SafetyMode.NORMAL
    request_key: str | None = None
    """A key the protocol made for a client that knows none; IDM-1."""
    peer: Peer | None = None
    """The client that waits, where its protocol lets a running tool ask it something."""
    depth: int = 0
    """1 for the gateway's own readings, which may not read further."""
    fallback: Standing | None = None
    """Which tool of its capability this is, and what was tried before; said by the gateway alone (EXE-4)."""
    part_of: str = ""
    """The call that this is a step of."""
    after: tuple[str, ...] = ()
    """Steps of the same run, by their calls, without whose answers it would be another call, or none."""


NOBODY: Mapping[str, int] = {}


class Decision(NamedTuple):
    """What policy says about one call, with its reasons."""

    id: str
    allow: bool
    reasons: tuple[str, ...] = ()
    floor: Floor = Floor.NONE
    """The least approval policy asks for; the contract's own floor may ask for more."""
    need: Mapping[str, int] = NOBODY
    """How many people of which role policy asks for beside the floor; joined with it by union."""
    risk: str = "low"
    version: str = "none"
    policies: tuple[str, ...] = ()
    """The ids of the policies that decided."""
    facts: Mapping[str, Any] | None = None
    """What was judged, as JSON data: enough to judge the same call again, and no marked field (CON-6)."""
    redact: tuple[str, ...] = ()
    """Parts of the result that nobody is shown, as JSON Pointers."""
    verify: tuple[str, ...] = ()
    """How the effect must be shown to have happened: `postconditions`, `probe`."""
    wants_labels: bool = False
    """A policy looks at what the caller has seen, and `call.labels` is not set: read them, and ask again."""
    alert: tuple[str, ...] = ()
    """Security events that policy wants told of this call."""


@dataclass(slots=True, kw_only=True)
class Call:
    """One tool call on its way through the gates.

    Fields below the line are unset until the gate named beside them has passed, so
    reading one too early is an AttributeError and not a silent None.
    """

    proposal: Proposal
    id: str
    trace_id: str
    nonce: str
    queued_at: float  # wall clock
    started: float  # monotonic
    deadline: float  # monotonic; narrowed by resolve
    verdicts: list[tuple[str, "Verdict"]] = field(default_factory=list)
    marks: list[float] = field(default_factory=list)
    """When each gate was over, then Execute, then Verify; on the clock of `started`."""
    staged: list[tuple[str, Stage]] = field(default_factory=list)
    sequels: tuple[Sequel, ...] = ()
    """What is written with its outcome, beside it."""
    warnings: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    """Security events this call raised; they go into its record."""
    cancelled: bool = False
    rerun_unknown: bool = False
    """The upstream honours the key, so an unknown outcome may be tried again."""
    version_problem: str | None = None  # resolve: told only after authorize
    asked_as: "Tool | None" = None  # resolve: the version asked for, where another one took over
    dispatched_at: float | None = None
    attempts: int = 0
    misfit: bool = False  # verify: the answer did not fit its contract
    shows: tuple[str, ...] = ()
    """Labels of what was read for its preview, or to judge its target, and is shown to its caller."""
    waited_for: bool = False
    """Its client knows no key and has not left."""
    recorded: bool = False
    """Its record is written: what happened can be looked up."""
    trail: Trail | None = None
    """Its own span and its attempts; only of a sampled call."""
    upstream_key: str | None = None  # claim: what the upstream knows the operation by
    sent: dict[str, Any] | None = field(default=None, repr=False)
    """What goes upstream, where that is not `arguments` alone."""
    callback: str | None = field(default=None, repr=False)  # execute: the word its job may be asked for with
    seat: UpstreamSession | None = None  # state: the session at the upstream that it works in
    so_far: "Observation | None" = None
    """What whoever waits for the end of its job is told, should there be no time for that."""
    work: Any = None
    """The attempt under way, so that a read can be cancelled."""
    injected: tuple[str, ...] = field(default=(), repr=False)
    """Secrets of the gateway's own that went with it: they may come back in nothing that is shown."""
    earlier: Operation | None = None  # resolve: what the ledger already knows of this key
    operation: Operation | None = None  # claim: what this call owns
    key: str | None = None  # resolve
    key_source: KeySource | None = None  # resolve
    named: OperationRef | None = None  # the last answer of `ref`
    commitment: str | None = None  # arguments
    before: Any = None  # state: the target as it was read, where the contract says how
    changed: str | None = None  # state: who had changed it last before it was read, where that is known
    labels: frozenset[str] | None = None  # policy: what its session has seen; None where nobody asked
    grant: dict[str, Any] | None = None  # approval: the rule or plan that covers it
    retries: int | None = None  # limits: no more than a budget has left; None: as the contract says
    reported: Mapping[str, int] | None = None  # attempt: what the tool says it cost, in millionths by part
    reviewed: int = 0  # approval: what the time of people who approved it costs, in millionths
    # ----------------------------------------------------------------------
    tool: "Tool" = field(init=False, repr=False)  # resolve
    status: ToolStatus = field(init=False, repr=False)  # resolve
    upstream: str = field(init=False, repr=False)  # resolve
    arguments: dict[str, Any] = field(init=False, repr=False)  # arguments
    fingerprint: str = field(init=False, repr=False)  # arguments
    decision: Decision = field(init=False, repr=False)  # policy

    @property
    def principal(self) -> Principal:
        return self.proposal.principal

    @property
    def ref(self) -> OperationRef | None:
        """The operation's name, once it has a key."""
        key = self.key
        if key is None:
            return None
        tool, known = self.tool.contract.tool, self.named
        if known is None or known.key != key or known.tool != tool:
            principal = self.proposal.principal
            known = self.named = OperationRef(principal.tenant, principal.id, tool, key)
        return known

    @property
    def writes(self) -> bool:
        return self.tool.writes

    @property
    def origin(self) -> Origin:
        """Where what is done for it belongs: into its trace, sampled with it, inside its own span."""
        trail, outer = self.trail, self.proposal.parent
        own, state = None if trail is None else trail.span_id, None if outer is None else outer.state
        return Origin(self.trace_id, Parent(own, trail is not None, state, remote=False))

    @property
    def unnamed(self) -> bool:
        """Its protocol made the key: a client that comes back has nothing to find its operation by."""
        return self.proposal.request_key is not None and self.key_source in _MADE

    @property
    def attended(self) -> bool:
        return self.waited_for and self.unnamed

    @property
    def previewing(self) -> bool:
        """Asked for, or forced on every write by the safety mode."""
        proposal = self.proposal
        return proposal.preview or (proposal.safety_mode is _DRY_RUN and self.tool.writes)

    def stage(self, gate: str, write: Stage) -> None:
        self.staged.append((gate, write))
