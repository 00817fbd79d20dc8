"""What is there to tell about one call, from its proposal to whatever became of it?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.model.approval import Approval
from holdfast.model.observation import Observation, Outcome
from holdfast.model.vocabulary import Word


class Said(Word):
    """What came of one step."""

    PASSED = "passed"
    REFUSED = "refused"
    HELD = "held"
    REPLAYED = "replayed"
    UNASKED = "not asked"
    """Another gate had decided, or a preview does not ask this one."""
    RAN = "ran"
    RUNNING = "running"
    UNTOLD = "not known"
    """Its record was written before records said so, or is no longer kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePassed:
    """One step of a call's way: a gate, or one of `execute` and `verify`."""

    name: str
    phase: str
    question: str
    verdict: Said
    micros: int | None = None
    """How long it took; None where it is not known or was not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One way through the gates. A call that was held is proposed again from the top, so it has several."""

    at: float
    """When it began, as far as is known."""
    ended_at: float
    kind: str
    """How it ended: `outcome`, `refusal`, `hold`, `replay`, `preview`; `intent` while it is running."""
    gates: tuple[GatePassed, ...]
    """Every step in its order, unasked ones too."""
    decided_by: str | None = None
    """The gate that did not let it pass; None where it ran, or nobody knows."""
    status: str
    code: str = ""
    latency_ms: float | None = None
    attempts: int = 0
    record: str | None = None
    """The id of that record, for those who may read the log."""

    @property
    def micros(self) -> int | None:
        """All that is told, together; None where nothing is."""
        known = [gate.micros for gate in self.gates if gate.micros is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Something that happened, in plain words."""

    at: float
    what: str
    kind: str
    """`proposed`, `gate`, `approval`, `vote`, `claim`, `outcome`, `settle`, `control` or `security`."""
    by: str = ""
    gate: str | None = None
    verdict: Said | None = None
    micros: int | None = None
    record: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A record of the call, with its place in the log."""

    id: str
    leaf: int
    kind: str
    at: float
    by: str
    what: str
    body: Mapping[str, Any]
    """Without what is sealed."""
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """How an outcome became known after the fact."""

    at: float
    by: str
    was: str
    became: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What the effect ledger knows of the operation; only calls with a key have one."""

    state: str
    key: str
    key_source: str
    epoch: int
    """How often it was claimed."""
    created_at: float
    updated_at: float
    held_at: float | None = None
    claimed_at: float | None = None
    """Nothing is dispatched before."""
    ended_at: float | None = None
    settled: tuple[Settled, ...] = ()
    note: str = ""
    orphaned: bool = False
    """It was running, and nobody is running it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """Whose answer is waited for, and how long."""

    missing: Mapping[str, int]
    """How many more people of which role must say yes."""
    also: tuple[str, ...]
    """Roles it was escalated to."""
    people: tuple[str, ...]
    """Who could answer; told to those who may answer or read the log."""
    until: float
    you: bool
    """Whether the reader could answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Everything of one call that its reader may see."""

    call_id: str
    at: float
    tool: str
    version: str
    caller: str
    agent: str
    act: tuple[str, ...] = ()
    """Those who acted for the caller, where somebody delegated further."""
    delegation: str = ""
    """The token by which they did."""
    task: str = ""
    part_of: str = ""
    """The call that it is a step of."""
    after: tuple[str, ...] = ()
    """The calls of the steps upon whose answers it rests."""
    trace_id: str = ""
    effect: str = ""
    """The kind of change, as its records say it: `read_only`, `write_reversible` and so on."""
    status: str
    """As for an observation; `running` while there is an intent and no outcome."""
    code: str = ""
    latency_ms: float | None = None
    attempts: int = 0
    replayed: bool = False
    observation: Observation | None = None
    """As the ledger knows it now; None where it has no operation: reads, calls refused before."""
    outcome: Outcome | None = None
    """How much is known about the effect, and how firmly the key is bound to it."""
    passages: tuple[Passage, ...] = ()
    decided: Passage | None = None
    """The passage that counts: the one that ran, else the last."""
    why: str = ""
    """Why it did not run, or how it stands, in a sentence."""
    policies: tuple[str, ...] = ()
    """The policies that decided, by name, with their reasons where they are still in force."""
    decision_id: str = ""
    approval: Approval | None = None
    """As far as the reader may see it."""
    awaited: Awaited | None = None
    """While a person is waited for."""
    rests_on: str = ""
    """The approval, rule or step of a plan that it used up."""
    ledger: Ledger | None = None
    alarms: tuple[str, ...] = ()
    moments: tuple[Moment, ...] = ()
    records: tuple[Line, ...] = ()
    """In the order of the log; none for those who may not read it."""
    audited: bool = False
    """Whether the reader may read the log."""

    @property
    def gates(self) -> tuple[GatePassed, ...]:
        return () if self.decided is None else self.decided.gates

    @property
    def decided_by(self) -> str | None:
        """The gate that decided, where it did not run."""
        return None if self.decided is None else self.decided.decided_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Whether a record is in the log, worked out here and now and not taken from anywhere."""

    record: str
    call_id: str
    kind: str
    at: float
    leaf: int
    hash: str
    """Of the record, as its chain holds it."""
    size: int
    """Of the tree that it was looked for in."""
    root: str
    path: tuple[str, ...]
    """The hashes from the leaf to the root."""
    checkpoint: str | None
    """The signed note of that root; None while the record is not behind a checkpoint."""
    signed_at: str | None
    intact: bool
    """The record hashes to what its chain holds."""
    included: bool
    """The path leads from the record to the root."""
    signed: bool
    """The checkpoint names this root and carries this gateway's signature."""

    @property
    def verified(self) -> bool:
        """Nothing speaks against it; a record that is not behind a checkpoint yet is not signed either."""
        return self.intact and self.included and (self.signed or self.checkpoint is None)

    @property
    def why(self) -> str:
        if not self.intact:
            return "the record is not what was written: it does not hash to what its chain holds"
        if not self.included:
            return "the record does not lead to the root of the log; run 'holdfast audit verify'"
        if self.checkpoint is None:
            return f"it is leaf {self.leaf} of a tree of {self.size}; no checkpoint is over it yet"
        if not self.signed:
            return "the checkpoint over it does not carry this gateway's signature"
        return f"it is leaf {self.leaf} of a tree of {self.size}, signed at {self.signed_at}"
