"""What a store in memory holds. Nothing awaits while it changes, so every change is a transaction."""

from dataclasses import dataclass, field

from holdfast.model.access import AccessGrant, AccessKey, Revocation
from holdfast.model.approval import Approval
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.standing import Plan, Rule
from holdfast.ports import HeldLabel, Promoted
from holdfast.records.chain import Chain, Record
from holdfast.stores.memory.budgets import Budgets


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
    budgets: Budgets = field(default_factory=Budgets)
    rules: dict[tuple[str, str], Rule] = field(default_factory=dict)
    plans: dict[tuple[str, str], Plan] = field(default_factory=dict)
    halts: dict[str, tuple[str, str]] = field(default_factory=dict)
    cancels: dict[tuple[str, str], float] = field(default_factory=dict)
    access: Given = field(default_factory=Given)
    promotions: list[Promoted] = field(default_factory=list)
    labels: list[HeldLabel] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    @property
    def promoted(self) -> Promoted | None:
        """The bundle in force."""
        return next((p for p in reversed(self.promotions) if p.ended_by is None), None)

    def record(self, tenant: str, call_id: str, kind: str, at: float, body: str) -> None:
        self.records.append(self.chain.append(tenant, call_id, kind, at, body))
