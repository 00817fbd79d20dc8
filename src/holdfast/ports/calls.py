"""What does a call meet on its way: time, names, contracts, policy, secrets and the ledger?"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.model.approval import Approval
from holdfast.model.attendance import Attendance
from holdfast.model.call import Call, Decision, Principal
from holdfast.model.errors import Code
from holdfast.model.limits import Account, Amount
from holdfast.model.observation import Observation
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.stage import Lock
from holdfast.model.tool import Tool
from holdfast.model.vocabulary import State, ToolStatus


class Alarm(Protocol):
    """A clock will call back, unless it is cancelled first."""

    def cancel(self) -> object: ...


class Clock(Protocol):
    """Time. `now` may jump; `monotonic` never does."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...

    async def until(self, work: "asyncio.Future[Any]", seconds: float | None = None) -> bool:
        """Wait for `work` to end, however it ends; False when the time is up first."""
        ...

    def alarm(self, seconds: float, ring: Callable[[], object]) -> Alarm:
        """Call `ring` when the time is up."""
        ...


class Ids(Protocol):
    """Fresh names. `call` sorts by time; the others are random."""

    def call(self) -> str: ...
    def nonce(self) -> str: ...
    def trace(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Listing:
    """One tool version as the catalog holds it."""

    tool: Tool
    status: ToolStatus
    upstream: str
    native: Mapping[str, Any] | None = None
    """Its descriptor in the upstream's own form, for clients that speak the same protocol."""


class Catalog(Protocol):
    """All contracts known here."""

    def find(self, name: str, spec: str | None) -> Listing | None:
        """The version that answers `spec`, or None; ValueError for a spec that cannot be read.

        Without a spec every known tool has an answer.
        """
        ...

    def exact(self, name: str, version: str) -> Listing | None: ...
    def list(self) -> Sequence[Listing]: ...


class Policy(Protocol):
    """Permit, forbid, or ask for approval. An implementation that raises has forbidden."""

    @property
    def version(self) -> str: ...
    def decide(self, call: Call) -> Decision: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """A bundle of policies as the store keeps it, and who put it in force."""

    number: int
    version: str
    content: str
    by: str
    note: str
    at: float
    ended_by: str | None = None
    """Who took it back."""


class Bundles(Protocol):
    """Promoted policies, newest first; the newest that nobody took back is in force."""

    async def active(self) -> Promoted | None: ...
    async def active_version(self) -> str | None: ...

    async def promote(self, version: str, content: str, by: str, note: str, *, first: bool = False) -> bool:
        """Put a bundle in force; False when it is already, or (`first`) when any was promoted before."""
        ...

    async def rollback(self, by: str, note: str) -> Promoted | None:
        """Take back what is in force; what is now, or None when nothing was promoted before it."""
        ...

    async def list(self) -> Sequence[Promoted]: ...


class Promotion(Protocol):
    """What this process believes to be promoted, and how it catches up."""

    @property
    def seen(self) -> str | None: ...
    async def follow(self) -> bool: ...


class Secrets(Protocol):
    """Keyed one-way functions and payload encryption, per tenant; CON-6."""

    async def ready(self, tenant: str) -> None:
        """Have the tenant's key at hand, made if there is none; raises StoreError."""
        ...

    def derive_key(self, tenant: str, parts: Sequence[str]) -> str: ...
    def commitment(self, tenant: str, data: bytes) -> str: ...
    def seal(self, tenant: str, data: bytes) -> bytes: ...
    def unseal(self, tenant: str, sealed: bytes) -> bytes: ...

    def sign(self, tenant: str, purpose: str, data: bytes) -> str:
        """A keyed seal over `data`; nobody without the key can make one, for this purpose or another."""
        ...


@dataclass(frozen=True, slots=True)
class Begun:
    """The claim is durable and ours."""

    operation: Operation | None  # None for a read, which claims nothing


@dataclass(frozen=True, slots=True)
class Taken:
    """Somebody else holds this key; this is what the ledger knows."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class Denied:
    """A staged write failed: the refusal belongs to the gate that staged it."""

    gate: str
    code: Code
    message: str
    retry_after_ms: int | None = None


class Revoked(Denied):
    """What the call rests on was taken back since its caller was let in."""


class Outdated(Denied):
    """Another bundle was promoted since the call was judged: judge it again."""


class Relabelled(Outdated):
    """The caller has seen more since, or a label was lifted: judge it again with what is held now."""


@dataclass(frozen=True, slots=True)
class Conflicting(Denied):
    """Another call is changing the same: wait for it, and look again (EXE-7)."""

    call_id: str = ""
    nonce: str = ""
    """Of the attempt that has the lock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """How an operation's outcome became known after the fact."""

    state: State
    observation: bytes | None
    by: str
    note: str = ""
    labels: tuple[str, ...] = ()
    """What its caller has seen once the observation is told."""


class Ledger(Protocol):
    """The durable memory of effects. Every write is one transaction and conditional on the epoch."""

    async def find(self, ref: OperationRef) -> Operation | None: ...
    async def find_call(self, tenant: str, call_id: str) -> Operation | None: ...

    async def begin(self, call: Call) -> Begun | Taken | Denied:
        """Claim, staged writes and intent, durable before this returns."""
        ...

    async def finish(self, call: Call, observation: Observation, state: State | None) -> bool:
        """Outcome, settlement and record; False when the operation is no longer this call's.

        An unknown outcome of an attempt that is over leaves the operation without an owner.
        """
        ...

    async def refuse(self, call: Call, observation: Observation, code: Code | None) -> None:
        """Record a refusal, a hold or a replay; `code` is what the record keeps."""
        ...

    async def settle(self, operation: Operation, settlement: Settlement) -> bool:
        """Conditional on the operation being as it was when it was read."""
        ...

    async def wait(self, operation: Operation, seconds: float) -> Operation:
        """The operation once it is no longer running, or as it is when time is up."""
        ...

    async def changed(self, tenant: str, lock: Lock) -> str:
        """Who has changed any of this last; another answer each time somebody has."""
        ...

    async def unlock(self, tenant: str, call_id: str, nonce: str) -> None:
        """Let go of what an attempt that is over has locked, where its end did not."""
        ...

    async def overdue(self, limit: int) -> Sequence[Operation]:
        """Operations whose worker died or went silent, and those whose outcome is unknown."""
        ...

    async def forget(self) -> int:
        """Drop outcomes whose window is over; the keys stay taken."""
        ...

    async def alike(self, call: Call, here: Attendance) -> Operation | None:
        """The newest equal operation of this principal that a call without a key of its own may take over.

        Held or unknown, or nobody waits for it who has not got its answer; `here` knows who waits for us.
        """
        ...

    async def attend(self, operation: Operation) -> bool:
        """A client of this worker waits for it now; False when somebody else was faster."""
        ...

    async def leave(self, call: Call, *, told: bool, asked: bool = False) -> None:
        """The client of an attended call has gone, with the last word or without; or it was asked something,
        and comes back with the operation's name.
        """
        ...

    async def tell(self, operation: Operation) -> None:
        """A client has the last word on this operation as it stands, without having waited for it."""
        ...

    async def peek_rate(
        self, call: Call, bucket: str, calls: float, per_s: float, *, shared: bool = False
    ) -> int | None:
        """Milliseconds until the bucket has room, or None when it has some now."""
        ...

    async def peek_budgets(
        self, tenant: str, buckets: Sequence[str], but: str | None = None
    ) -> Mapping[str, Amount]:
        """What is used or reserved of each bucket, but for what call `but` holds itself."""
        ...

    async def budgets(self, tenant: str) -> Sequence[Account]:
        """Everything drawn on so far."""
        ...

    async def count_lost_reads(self) -> int:
        """Count as used what the reads of dead or silent workers had reserved; how many there were."""
        ...

    async def try_write(self) -> None:
        """Write something and take it back; raises StoreError while nothing can be written."""
        ...


class Reader(Protocol):
    """A governed, read-only call made by the gateway itself for a gate; DEC-3."""

    async def read(self, call_tenant: str, tool: str, arguments: Mapping[str, Any]) -> Observation: ...


class Ingress(Protocol):
    """A cheap in-memory limit per principal that stands before everything else."""

    def admit(self, principal: Principal) -> int | None:
        """Milliseconds to wait, or None to come in."""
        ...


class Telemetry(Protocol):
    """Watches what happens and decides nothing. Not sampled means not built: `begun` alone gives a trail."""

    def begun(self, call: Call) -> None: ...
    def ended(self, call: Call, observation: Observation) -> None: ...

    def turned_away(self, observation: Observation, tenant: str, why: str) -> None:
        """A proposal that reached no gate: `ingress` or `parse`."""
        ...

    def settled(self, operation: Operation, settlement: Settlement) -> None: ...
    def decided(self, approval: Approval) -> None: ...

    def answered_at(self, tenant: str, capability: str, level: int) -> None:
        """Which level of a capability had the last word on a call of its first tool."""
        ...


class Unwatched:
    """Telemetry that looks away."""

    def begun(self, call: Call) -> None: ...
    def ended(self, call: Call, observation: Observation) -> None: ...
    def turned_away(self, observation: Observation, tenant: str, why: str) -> None: ...
    def settled(self, operation: Operation, settlement: Settlement) -> None: ...
    def decided(self, approval: Approval) -> None: ...
    def answered_at(self, tenant: str, capability: str, level: int) -> None: ...
