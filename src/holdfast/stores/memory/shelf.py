"""What a store in memory holds. Nothing awaits while it changes, so every change is a transaction."""

from dataclasses import dataclass, field

from holdfast.model.access import AccessGrant, AccessKey, Revocation
from holdfast.model.approval import Approval
from holdfast.model.job import Submitted
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.standing import Plan, Rule
from holdfast.model.upstream_session import SessionLine, UpstreamSession
from holdfast.ports import HeldLabel, Place, Promoted
from holdfast.records.chain import Chain, Record
from holdfast.stores.memory.budgets import Budgets
from holdfast.stores.memory.locks import Held


@dataclass(slots=True)
class Entry:
    """An operation and what only the store knows about it."""

    operation: Operation
    window_s: float
    boot_id: str = ""
    deadline_boot: float | None = None
    lease_boot: float | None = None
    approval_id: str | None = None
    given_back: bool = False
    """Whether the use of a rule was given back, since that is but a count."""
    finished: tuple[float, str, float] | None = None
    """Wall clock, boot and boot time."""


@dataclass(slots=True)
class Asked:
    approval: Approval
    used_nonce: str | None = None
    task: str = ""
    release_at: float = 0.0


@dataclass(slots=True)
class Kept:
    """A session at an upstream, whose process it ends with ('': none), and what was done in it."""

    session: UpstreamSession
    worker: str
    lines: list[SessionLine] = field(default_factory=list)


@dataclass(slots=True)
class Given:
    """Keys, grants and revocations, each with the number of its last change."""

    mark: int = 0
    keys: dict[str, tuple[int, AccessKey]] = field(default_factory=dict)
    grants: dict[tuple[str, str], tuple[int, AccessGrant]] = field(default_factory=dict)
    revoked: dict[str, tuple[int, Revocation]] = field(default_factory=dict)

    def next(self) -> int:
        self.mark += 1
        return self.mark


@dataclass(slots=True)
class Shelf:
    chain: Chain
    operations: dict[OperationRef, Entry] = field(default_factory=dict)
    approvals: dict[tuple[str, str], Asked] = field(default_factory=dict)
    rates: dict[tuple[str, str], float] = field(default_factory=dict)
    capabilities: dict[Place, str] = field(default_factory=dict)
    """The tool that answers for a key."""
    budgets: Budgets = field(default_factory=Budgets)
    rules: dict[tuple[str, str], Rule] = field(default_factory=dict)
    plans: dict[tuple[str, str], Plan] = field(default_factory=dict)
    locks: Held = field(default_factory=Held)
    halts: dict[str, tuple[str, str]] = field(default_factory=dict)
    cancels: dict[tuple[str, str], float] = field(default_factory=dict)
    access: Given = field(default_factory=Given)
    promotions: list[Promoted] = field(default_factory=list)
    labels: list[HeldLabel] = field(default_factory=list)
    jobs: dict[tuple[str, str], tuple[Submitted, str]] = field(default_factory=dict)
    """Each with the digest of the word that its upstream calls back with."""
    upstream_sessions: dict[tuple[str, str], Kept] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)

    @property
    def promoted(self) -> Promoted | None:
        """The bundle in force."""
        return next((p for p in reversed(self.promotions) if p.ended_by is None), None)

    def record(self, tenant: str, call_id: str, kind: str, at: float, body: str) -> None:
        self.records.append(self.chain.append(tenant, call_id, kind, at, body))
