"""Everything that can be plugged into the gateway: six short pages, and what the gates see of them.

`Ports` is the outside world as the gates see it: nothing here can reach an upstream except `reader`, which
makes a whole governed call of its own. What runs tools is `Upstream`; only `execution` is ever handed one.

Every port has an in-memory implementation in `holdfast.testing`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from holdfast.model import defaults
from holdfast.model.attendance import Attendance
from holdfast.model.call import Call, Decision
from holdfast.model.denials import Denials
from holdfast.model.holders import holders
from holdfast.model.limits import Budget, Rate
from holdfast.model.line import Line
from holdfast.model.stage import AnswerFor
from holdfast.model.strict_json import DEFAULT_LIMITS, Limits
from holdfast.model.verdict import Verdict
from holdfast.ports.calls import (
    Alarm,
    Begun,
    Bundles,
    Catalog,
    Clock,
    Conflicting,
    Denied,
    Ids,
    Ingress,
    Ledger,
    Listing,
    Outdated,
    Policy,
    Promoted,
    Promotion,
    Reader,
    Relabelled,
    Revoked,
    Secrets,
    Settlement,
    Taken,
    Telemetry,
    Unwatched,
)
from holdfast.ports.capabilities import Capabilities, Place
from holdfast.ports.chains import Journal, Runs
from holdfast.ports.jobs import Following, Jobs
from holdfast.ports.log import Audit
from holdfast.ports.people import (
    Access,
    Alerts,
    Approvals,
    Controls,
    HeldLabel,
    Labels,
    Outbox,
    People,
    Plans,
    Rules,
    Sessions,
    Signs,
    Views,
)
from holdfast.ports.running import Attempt, Credentials, Injected, SecretProvider, Upstream
from holdfast.ports.upstream_sessions import SessionEnding, UpstreamSessions, partner

__all__ = [
    "Access",
    "Alarm",
    "Alerts",
    "Approvals",
    "Attempt",
    "Audit",
    "Begun",
    "Bundles",
    "Capabilities",
    "Catalog",
    "Clock",
    "Conflicting",
    "Controls",
    "Credentials",
    "Denied",
    "Following",
    "Gate",
    "HeldLabel",
    "Ids",
    "Ingress",
    "Injected",
    "Jobs",
    "Journal",
    "Labels",
    "Ledger",
    "Listing",
    "Outbox",
    "Outdated",
    "People",
    "Place",
    "Plans",
    "Policy",
    "Ports",
    "Promoted",
    "Promotion",
    "Reader",
    "Relabelled",
    "Revoked",
    "Rules",
    "Runs",
    "SecretProvider",
    "Secrets",
    "SessionEnding",
    "Sessions",
    "Settlement",
    "Signs",
    "Taken",
    "Telemetry",
    "Unwatched",
    "Upstream",
    "UpstreamSessions",
    "Views",
    "partner",
]


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
    jobs: Following | None = None
    """What goes on without a call; None where nobody follows it."""
    promotion: Promotion | None = None
    """None where the policy does not come from promoted bundles."""
    upstream_sessions: UpstreamSessions | None = None
    """What upstreams keep open for callers; None where nobody remembers it, and such tools are refused."""
    session_ending: SessionEnding | None = None
    in_process: frozenset[str] = frozenset()
    """Upstreams that live in this process: what they keep open ends with it."""
    line: Line = field(default_factory=Line)
    """Who of this process waits to change the same."""
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
    review_cost: int = 0
    """What one decision of a person costs, in millionths."""
    base_url: str = ""
    capabilities: Mapping[str, AnswerFor] = field(default_factory=dict)
    """What each tool can do that others could do in its stead; EXE-4."""
    asked_at: str = "/v1/approvals"
    """Where people find a question, by its id."""

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
