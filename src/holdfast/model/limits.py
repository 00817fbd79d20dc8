"""How much may be done, by whom, and in what time?

A budget bounds one kind of effect for one owner; a rate bounds how fast calls follow each other. Amounts are
whole numbers (a cost in millionths, time in milliseconds), so that sums are exact however often something is
reserved, given back and settled.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from holdfast.model.contract import Contract
from holdfast.model.vocabulary import Effect, Word

if TYPE_CHECKING:
    from holdfast.model.call import Call, Principal

MILLIONTHS = 1_000_000
LONGEST_SUBJECT = 160
"""A longer name is kept as its hash: an agent chooses the names of its tasks."""


class Kind(Word):
    """S4's five kinds of budget; `all` bounds them together."""

    READ = "read"
    WRITE = "write"
    EXTERNAL = "external"
    FINANCIAL = "financial"
    CRITICAL = "critical"
    ALL = "all"


class Per(Word):
    """Who owns a budget or a rate."""

    TASK = "task"
    SESSION = "session"
    PRINCIPAL = "principal"
    TENANT = "tenant"
    TOOL = "tool"
    CREDENTIAL = "credential"


_OF_EFFECT: dict[Effect, Kind] = {
    Effect.READ_ONLY: Kind.READ,
    Effect.EPHEMERAL_WRITE: Kind.WRITE,
    Effect.LOW_RISK_INTERNAL: Kind.WRITE,
    Effect.MEDIUM_RISK_WRITE: Kind.WRITE,
    Effect.HIGH_RISK_EXTERNAL: Kind.EXTERNAL,
    Effect.CRITICAL_MUTATION: Kind.CRITICAL,
}


def kinds(contract: Contract) -> frozenset[Kind]:
    """Which budgets a call of this tool draws on; what costs money draws on `financial` too."""
    paid = {Kind.FINANCIAL} if contract.runtime.cost.per_call > 0 else set()
    return frozenset({_OF_EFFECT[contract.effect], Kind.ALL, *paid})


class Amount(NamedTuple):
    calls: int = 0
    cost: int = 0
    wall_ms: int = 0
    retries: int = 0

    def plus(self, other: "Amount") -> "Amount":
        return Amount(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def minus(self, other: "Amount") -> "Amount":
        return Amount(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


NOTHING = Amount()


class Limit(NamedTuple):
    """At most so much of each; None bounds nothing."""

    calls: int | None = None
    cost: int | None = None
    wall_ms: int | None = None
    retries: int | None = None

    def holds(self, amount: Amount) -> bool:
        return all(limit is None or value <= limit for limit, value in zip(self, amount, strict=True))

    def first_broken(self, amount: Amount) -> str:
        """The name of the first bound that `amount` goes beyond."""
        for name, limit, value in zip(self._fields, self, amount, strict=True):
            if limit is not None and value > limit:
                return name
        return ""

    def met(self, other: "Limit") -> "Limit":
        """Both at once."""
        return Limit(
            *(
                theirs if mine is None else mine if theirs is None else min(mine, theirs)
                for mine, theirs in zip(self, other, strict=True)
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    per: Per
    kind: Kind
    limit: Limit
    window_s: float | None = None
    """Starts anew every so often; None: never."""
    currency: str = "USD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    per: Per
    match: str
    """Which tools: `shop.refund`, `shop.*`, `*`; of a rate per credential, which secrets."""
    calls: float
    per_s: float
    held: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The secrets that go with every request to an upstream, by its name; for a rate per credential."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """The tenants of the secrets that are one tenant's alone."""

    def covers(self, tool: str) -> bool:
        return fnmatchcase(tool, self.match)

    def secrets(self, contract: Contract, upstream: str, tenant: str) -> Iterable[str]:
        """Whose use counts when this tool is called for a tenant."""
        named = [one.secret for one in contract.security.credentials if self._may(one.secret, tenant)]
        return dict.fromkeys(name for name in (*named, *self.held.get(upstream, ())) if self.covers(name))

    def _may(self, secret: str, tenant: str) -> bool:
        return self.owners.get(secret, tenant) == tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """One owner's account for one kind of effect, in one window."""

    per: Per
    kind: Kind
    subject: str
    window_s: float | None = None
    starts_at: float = 0.0

    @property
    def name(self) -> str:
        span = "ever" if self.window_s is None else f"{self.window_s:g}@{self.starts_at:.0f}"
        return f"{self.per}:{self.kind}:{span}:{self.subject}"

    @property
    def ends_at(self) -> float | None:
        return None if self.window_s is None else self.starts_at + self.window_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A bucket and what was taken from it."""

    bucket: Bucket
    used: Amount = NOTHING
    reserved: Amount = NOTHING

    @property
    def taken(self) -> Amount:
        return self.used.plus(self.reserved)


def buckets(call: "Call", budgets: Iterable[Budget], now: float) -> Iterator[tuple[Bucket, Limit]]:
    """What this call draws on, each bucket once with everything that bounds it."""
    drawn = kinds(call.tool.contract)
    limits: dict[Bucket, Limit] = {}
    for budget in budgets:
        if budget.kind in drawn:
            bucket = bucket_of(budget, _subject(budget.per, call), now)
            limits[bucket] = limits.get(bucket, Limit()).met(budget.limit)
    yield from limits.items()


def bucket_of(budget: Budget, subject: str, now: float) -> Bucket:
    window = budget.window_s
    start = 0.0 if window is None else now // window * window
    return Bucket(per=budget.per, kind=budget.kind, subject=subject, window_s=window, starts_at=start)


def _subject(per: Per, call: "Call") -> str:
    """Who pays. A task or session is its person's own: naming somebody else's spends nothing of theirs.

    Calls without a task share one account, so leaving it out gains nothing.
    """
    principal, proposal = call.principal, call.proposal
    match per:
        case Per.TASK:
            return owned(principal, proposal.task)
        case Per.SESSION:
            return owned(principal, proposal.session)
        case Per.PRINCIPAL:
            return short(principal.id)
        case Per.TOOL | Per.CREDENTIAL:
            return call.tool.contract.tool
        case Per.TENANT:
            return principal.tenant


def owned(principal: "Principal", name: str | None) -> str:
    return short(f"{quote(principal.user, safe='@.-')}/{quote(name or '', safe='@.-')}")


def short(subject: str) -> str:
    if len(subject) <= LONGEST_SUBJECT:
        return subject
    return f"{subject[:32]}~{hashlib.sha256(subject.encode()).hexdigest()}"


def micros(amount: float) -> int:
    """Money as a whole number of millionths."""
    return round(amount * MILLIONTHS)


_UNITS: dict[str, tuple[float, str]] = {
    "calls": (1, "calls"),
    "cost": (MILLIONTHS, "cost"),
    "wall_ms": (1000, "s of running time"),
    "retries": (1, "retries"),
}


def exhausted(bucket: Bucket, limit: Limit, ask: Amount, taken: Amount) -> str:
    """What to tell a caller whose budget does not reach, and what can be done about it."""
    name = limit.first_broken(taken.plus(ask)) or "calls"
    size, unit = _UNITS[name]
    bound, gone = (getattr(limit, name) or 0) / size, getattr(taken, name) / size
    window = "" if bucket.window_s is None else f" in {bucket.window_s:g} s"
    what = f"{bound:g} {unit} of kind {bucket.kind.value!r} per {bucket.per.value}{window}"
    return (
        f"the budget of {what} does not reach: {gone:g} are used or reserved; "
        "an operator can raise 'limits.budgets'"
    )
