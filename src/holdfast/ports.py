"""Everything that can be plugged into the gateway, on one page.

`Ports` is the outside world as the gates see it: nothing here can reach an
upstream except `reader`, which makes a whole governed call of its own. What runs
tools is `Upstream`, and only `execution` is ever handed one.

Every port has an in-memory implementation in `holdfast.testing`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol

from holdfast.model import defaults
from holdfast.model.access import AccessGrant, AccessKey, Changes, Revocation
from holdfast.model.approval import Approval, Need
from holdfast.model.attendance import Attendance
from holdfast.model.call import Call, Decision, Principal
from holdfast.model.contract import Credential
from holdfast.model.denials import Denials
from holdfast.model.errors import Code
from holdfast.model.holders import Holders, holders
from holdfast.model.limits import Account, Amount, Budget, Rate
from holdfast.model.observation import Observation
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.peer import Peer
from holdfast.model.record import Entry, Use
from holdfast.model.secret import Secret
from holdfast.model.standing import Plan, Rule
from holdfast.model.strict_json import DEFAULT_LIMITS, Limits
from holdfast.model.tool import Tool
from holdfast.model.value import value
from holdfast.model.verdict import Verdict
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


class Approvals(Protocol):
    """Questions to people, and their answers."""

    async def ask(
        self, call: Call, need: Need, packet: Mapping[str, Any], release: str = "caller"
    ) -> Approval:
        """The open question about this operation, asked now if nobody asked before."""
        ...

    async def find(self, ref: OperationRef) -> Approval | None: ...
    async def get(self, tenant: str, approval_id: str) -> Approval | None: ...
    async def open(self, tenant: str) -> Sequence[Approval]: ...
    async def decide(
        self, approval: Approval, by: Principal, role: str, approve: bool, note: str, via: str = ""
    ) -> Approval:
        """Write a vote down; `via` is the role that stands in for `role`."""
        ...

    async def due(self, groups: int) -> Sequence[Approval]:
        """Unanswered questions of every tenant, without their packets: those past their time, and those that
        the next of so many groups should have been asked by now.
        """
        ...

    async def expire(self, approval: Approval) -> bool:
        """Deny what nobody answered in time."""
        ...

    async def escalate(self, approval: Approval, level: int, to: Sequence[str]) -> bool:
        """Widen who may answer; False when it was done already."""
        ...

    async def releasable(self) -> Sequence[Approval]:
        """Approved, unused calls that the gateway itself is to propose again now."""
        ...

    async def releasing(self, approval: Approval, again_at: float) -> bool:
        """Take the next try at a release; False when somebody else has."""
        ...

    async def keep_back(self, approval: Approval, said: str) -> None:
        """Leave the release to the caller, and say why."""
        ...

    async def alarm(self, tenant: str, by: str, text: str, approval: Approval | None = None) -> None:
        """Put a security event about an answer on record."""
        ...


class Rules(Protocol):
    """Approvals that stand for a while; each rests on a question of its own."""

    async def add(self, rule: Rule) -> None: ...
    async def get(self, tenant: str, rule_id: str) -> Rule | None: ...
    async def list(self, tenant: str) -> Sequence[Rule]:
        """All there were, newest first."""
        ...

    async def standing(self, tenant: str, tool: str) -> Sequence[Rule]:
        """Those that are accepted, not over and not used up."""
        ...

    async def revoke(self, tenant: str, rule_id: str, by: str, note: str) -> bool:
        """End it at once: no claim of any process counts on it any more. False when it has ended."""
        ...

    async def history(self, tenant: str, since: float) -> Sequence[Approval]:
        """Questions that were answered since a time, oldest first."""
        ...


class Plans(Protocol):
    """Calls approved as a whole; each step is used once."""

    async def add(self, plan: Plan) -> None: ...
    async def get(self, tenant: str, plan_id: str) -> Plan | None: ...
    async def list(self, tenant: str) -> Sequence[Plan]:
        """All there were, newest first."""
        ...

    async def standing(self, tenant: str, principal: str) -> Sequence[Plan]:
        """The principal's plans that are approved and not over, oldest first."""
        ...

    async def revoke(self, tenant: str, plan_id: str, by: str, note: str) -> bool:
        """End it at once; what its steps have done is done. False when it has ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLabel:
    """What somebody has seen, and since when."""

    tenant: str
    holder: str
    label: str
    principal: str
    """Who brought it."""
    call_id: str
    at: float
    seen_at: float
    lifted_at: float | None = None
    lifted_by: str | None = None
    note: str = ""


class Labels(Protocol):
    """What sessions have seen; `ledger.finish` adds to it in the transaction of the outcome. OBS-6."""

    async def of(self, holders: Holders) -> frozenset[str]:
        """As it stands in the store now, with what each label stands for."""
        ...

    async def list(self, tenant: str) -> Sequence[HeldLabel]:
        """All that is kept, lifted ones too; by holder, label and time."""
        ...

    async def lift(self, tenant: str, holder: str, label: str, by: str, note: str) -> int:
        """Let go of a label: how many held it under this name. What is read after that counts anew."""
        ...

    async def forget(self, before: float) -> int:
        """Drop what was last brought, or was lifted, before a time."""
        ...


class Controls(Protocol):
    """The brakes: halts reach every process, a cancellation reaches the process that runs the call."""

    async def halt(self, target: str, by: str, note: str) -> None: ...
    async def resume(self, target: str, by: str) -> bool: ...
    async def halts(self) -> Mapping[str, str]: ...
    async def request_cancel(self, tenant: str, call_id: str, by: str) -> None: ...
    async def cancellations(self) -> Sequence[str]: ...


class Access(Protocol):
    """Keys, grants and what was taken back: changed by people while gateways run, followed by all of them."""

    async def changed(self) -> int:
        """The number of the last change."""
        ...

    async def since(self, mark: int) -> Changes:
        """Whatever changed after `mark`; from 0 on, what holds now and what was taken back."""
        ...

    async def keys(self, tenant: str) -> Sequence[AccessKey]:
        """Newest first, ended ones too."""
        ...

    async def grants(self, tenant: str) -> Sequence[AccessGrant]: ...
    async def revocations(self, tenant: str) -> Sequence[Revocation]: ...

    async def add_key(self, key: AccessKey, *, first: bool = False) -> bool:
        """False when the id is taken, or (`first`) when there ever was a key."""
        ...

    async def add_grant(self, grant: AccessGrant) -> None: ...

    async def renew(self, grant: AccessGrant, until: float | None, why: str = "") -> bool:
        """Let a grant last on, or (None) not be renewed any more; False when it is not as it was read."""
        ...

    async def revoke(self, name: str, tenant: str, by: str, note: str, until: float = inf) -> bool:
        """Take something back, at once in every process; False when it was before."""
        ...

    async def forget(self) -> int:
        """Drop revocations of what would have ended anyway."""
        ...


class Audit(Protocol):
    """The records of all tenants as one Merkle tree; a tenant sees its own, and proves them to anybody."""

    async def sequence(self) -> int:
        """Append what is committed and not in the tree yet, durably; how many records that were."""
        ...

    async def head(self) -> tuple[int, bytes]:
        """The size of the tree and its root."""
        ...

    async def inclusion(self, leaf: int, size: int) -> Sequence[bytes]: ...
    async def consistency(self, first: int, second: int) -> Sequence[bytes]: ...
    async def find(self, tenant: str, writer: str, seq: int) -> Entry | None: ...

    async def of_call(self, tenant: str, call_id: str, after: int, limit: int) -> Sequence[Entry]:
        """A call's records after leaf `after`, in the order of the tree."""
        ...

    async def since(self, tenant: str, at: float, after: int, limit: int) -> Sequence[Entry]:
        """A tenant's records from a time and leaf on, in the order of their times."""
        ...

    async def checkpoint(self, leaf: int) -> str | None:
        """The newest signed note over a tree that has this leaf."""
        ...

    async def keep_checkpoint(self, size: int, note: str) -> None: ...

    async def note(self, tenant: str, act: str, by: str, *, about: str = "", **members: Any) -> None:
        """Record what somebody did to the gateway itself; found by `about` as a call's records by its id."""
        ...

    async def tenants(self) -> Sequence[str]:
        """Everybody who has records in the tree."""
        ...

    async def usage(self, since: float) -> Sequence[Use]:
        """Who ran which version of which tool since a time; from the records, so not for every call."""
        ...

    async def prune(self, tenant: str, before: float, anchored: int) -> int:
        """Drop the tenant's records older than `before` among the first `anchored`; their hashes stay."""
        ...

    async def erase(self, tenant: str, by: str) -> bool:
        """Drop the tenant's data key; False when there is none."""
        ...

    async def notice_erasures(self) -> None:
        """Forget keys that another process dropped."""
        ...


class Reader(Protocol):
    """A governed, read-only call made by the gateway itself for a gate; DEC-3."""

    async def read(self, call_tenant: str, tool: str, arguments: Mapping[str, Any]) -> Observation: ...


class People(Protocol):
    """Who could answer an approval."""

    def holders(self, tenant: str, role: str) -> frozenset[str]: ...

    def operated(self, tenant: str) -> bool:
        """Whether there are operators, also where none of them has come yet."""
        ...


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


class Unwatched:
    """Telemetry that looks away."""

    def begun(self, call: Call) -> None: ...
    def ended(self, call: Call, observation: Observation) -> None: ...
    def turned_away(self, observation: Observation, tenant: str, why: str) -> None: ...
    def settled(self, operation: Operation, settlement: Settlement) -> None: ...
    def decided(self, approval: Approval) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The outside world as the gates see it."""

    catalog: Catalog
    policy: Policy
    ledger: Ledger
    approvals: Approvals
    controls: Controls
    reader: Reader
    secrets: Secrets
    people: People
    ingress: Ingress
    clock: Clock
    ids: Ids
    rules: Rules | None = None
    """Approvals that stand; None where every call is asked about."""
    plans: Plans | None = None
    labels: Labels | None = None
    """What sessions have seen; None where nobody remembers it, and policies that ask deny."""
    promotion: Promotion | None = None
    """None where the policy does not come from promoted bundles."""
    attendance: Attendance = field(default_factory=Attendance)
    """Whose clients wait for this process."""
    telemetry: Telemetry = field(default_factory=Unwatched)
    limits: Limits = DEFAULT_LIMITS
    denials: Denials = field(default_factory=Denials)
    """Who was told no how often; when that is a security event."""
    approval_s: float = defaults.APPROVAL_S
    release: str = "caller"
    """Who proposes an approved call again, where the proposal does not say."""
    chain: tuple[tuple[str, ...], ...] = ()
    """Roles that may answer, group after group, while nobody does."""
    budgets: tuple[Budget, ...] = ()
    rates: tuple[Rate, ...] = ()
    base_url: str = ""

    def labels_of(self, tool: str) -> tuple[str, ...]:
        """What whoever is shown its results has seen."""
        listing = self.catalog.find(tool, None)
        return () if listing is None else listing.tool.contract.labels

    async def judged(self, call: Call) -> Decision:
        """What policy says, told what the caller has seen so far where it asks for that."""
        decision = self.policy.decide(call)
        if decision.wants_labels and self.labels is not None:
            call.labels = await self.labels.of(holders(call.proposal))
            decision = self.policy.decide(call)
        return decision


Gate = Callable[[Call, Ports], Awaitable[Verdict]]
"""A check every call passes before its tool runs."""


class SecretProvider(Protocol):
    """Where one secret is kept."""

    async def read(self) -> Secret:
        """As it is there now. Raises `SecretError`, which never quotes it."""
        ...

    async def close(self) -> None: ...


class Credentials(Protocol):
    """The gateway's own secrets, by the names the configuration gives them; AUT-3."""

    def tenant(self, name: str) -> str | None:
        """Whose it is alone; None where every tenant's calls may use it."""
        ...

    async def take(self, name: str, tenant: str) -> Secret:
        """One that has not ended; raises `NoEffect` where this tenant cannot have it now."""
        ...

    async def renew(self, name: str, refused: Secret) -> Secret | None:
        """Somebody refused it: another one, if reading it anew gives another one."""
        ...

    async def close(self) -> None: ...


@value(kw_only=True)
class Injected:
    """A secret that goes with an attempt, and where."""

    credential: Credential
    secret: Secret
    renew: Callable[[Secret], Awaitable[Secret | None]] = field(repr=False)
    """Another one in place of one that was refused, if there is any."""

    @property
    def text(self) -> str:
        return self.credential.prefix + self.secret.text


@value(kw_only=True)
class Attempt:
    """One try at an upstream."""

    tool: Tool
    arguments: Mapping[str, Any]
    key: str | None
    tenant: str
    call_id: str
    trace_id: str
    deadline_s: float
    number: int
    traceparent: str | None = None
    """W3C trace context for the upstream; `tracestate` goes with it."""
    tracestate: str | None = None
    principal: str = ""
    """Whose call it is, for upstreams that are reached in somebody's name."""
    peer: Peer | None = None
    """The client that waits. Time it takes to answer is not counted against the deadline."""
    credentials: tuple[Injected, ...] = ()
    """What the contract says goes with it. Nothing of it may come back in an answer or an error."""


class Upstream(Protocol):
    """Where a tool really runs.

    `invoke` returns the tool's answer as JSON data, or as an `Answer` where there is more to say. It raises
    `NoEffect` when it can prove that nothing happened, and anything else when it cannot. It keeps no clock of
    its own: at the deadline it is cancelled.

    One that says `taskless = True` needs no task of its own: it ends as soon as it is cancelled, or does not
    mind to be finished in another task than it was begun in.
    """

    concurrency: int
    personal: bool
    """Whether it answers each principal differently: then nothing it said to one is shown to another."""

    async def invoke(self, attempt: Attempt) -> Any: ...
    async def close(self) -> None: ...
