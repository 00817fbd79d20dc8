"""What is kept for people: questions and answers, rules, brakes, keys, what they look at and are told?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

from holdfast.model.access import AccessGrant, AccessKey, Changes, Revocation
from holdfast.model.approval import Answer, Approval, Need
from holdfast.model.call import Call, Principal
from holdfast.model.holders import Holders
from holdfast.model.operation import OperationRef
from holdfast.model.people import Alert, Notice, SignedIn, Tally, Untold
from holdfast.model.signs import Costed, Exhausted, Latency, Repeat
from holdfast.model.standing import Plan, Rule
from holdfast.model.sums import Group, Sum
from holdfast.model.view import Answered, CallRow, Spent, Traffic, Wanted


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
    async def mark(self, tenant: str) -> str:
        """Another text whenever an open question of the tenant was asked, answered, escalated, or is over."""
        ...

    async def tally(self, tenant: str, principal: str, tool: str, since: float) -> Mapping[Answer, int]:
        """How questions of a principal about a tool were answered since a time."""
        ...

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

    async def history(self, tenant: str, since: float, most: int = 10**9) -> Sequence[Approval]:
        """Questions that were answered since a time, the newest of them, oldest first."""
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


class Views(Protocol):
    """Calls as people look at them: made from the records beside the calls, never on their way."""

    async def catch_up(self, most: int) -> int:
        """Take in up to so many records that were sequenced since; 0 when there is nothing more."""
        ...

    async def keep_up(self, most: int) -> int:
        """The same, left to one of several processes."""
        ...

    async def calls(self, tenant: str, wanted: Wanted) -> Sequence[CallRow]: ...
    async def call(self, tenant: str, call_id: str) -> CallRow | None: ...

    async def traffic(self, tenant: str, since: float, until: float) -> Sequence[Traffic]:
        """Every answer once, by the minute and by tool; of every tenant for '*'."""
        ...

    async def by_step(
        self, tenant: str, since: float, until: float, step_s: int, caller: str | None = None
    ) -> Sequence[Answered]:
        """By stretches of time, each called by the second it begins with; of everybody, or of one caller."""
        ...

    async def by_tool(self, tenant: str, since: float, caller: str | None = None) -> Sequence[Answered]: ...

    async def spending(self, tenant: str, since: float, until: float) -> Sequence[Spent]: ...

    async def forget(self, tenant: str, before: float) -> int:
        """Drop what is older, as the records were."""
        ...


class Alerts(Protocol):
    """What is wrong now, and was."""

    async def open(self, tenant: str) -> Sequence[Alert]: ...
    async def list(self, tenant: str, since: float, limit: int) -> Sequence[Alert]:
        """Newest first."""
        ...

    async def raise_(self, alert: Alert) -> bool:
        """True when it is new; one that is open already is seen again."""
        ...

    async def end(self, alert: Alert) -> bool:
        """False when it is over already."""
        ...

    async def forget(self, before: float) -> int:
        """Drop those that were over by then."""
        ...


class Signs(Protocol):
    """What is counted in the view of the calls, for health and alerts."""

    async def latencies(self, tenant: str, since: float, until: float) -> Sequence[Latency]:
        """Of calls that went well."""
        ...

    async def repeats(self, tenant: str, since: float, least: int) -> Sequence[Repeat]:
        """At least so many calls within a minute since then; of those that were done, for one task."""
        ...

    async def exhausted(self, tenant: str, since: float) -> Sequence[Exhausted]:
        """What failed since then after more than one attempt."""
        ...

    async def costs(self, tenant: str, since: float) -> Sequence[Costed]:
        """What every tool cost on every day since then, and every task until now."""
        ...

    async def sums(
        self, tenant: str, group: Group, since: float, until: float, caller: str | None, most: int
    ) -> Sequence[Sum]:
        """What was spent, of everybody or of one caller; the dearest first."""
        ...


class Outbox(Protocol):
    """Notices on their way out. Nothing in it is lost with a process, and nothing is sent by two at once."""

    async def put(self, notice: Notice) -> bool:
        """False when it is there already."""
        ...

    async def take(self, limit: int, until: float) -> Sequence[Notice]:
        """What is due now; nobody else takes it before `until`."""
        ...

    async def sent(self, notice: Notice) -> None: ...
    async def again(self, notice: Notice, due_at: float | None, said: str) -> None:
        """It did not go out; None: it is given up."""
        ...

    async def list(self, tenant: str, limit: int) -> Sequence[Notice]:
        """Newest first."""
        ...

    async def forget(self, before: float) -> int: ...

    async def next_due(self) -> float | None:
        """When the next one is to be tried; None while nothing waits."""
        ...

    async def gather(self, notice: Notice, until: float) -> Sequence[Notice]:
        """Take whatever else waits for the same recipient, due or not."""
        ...

    async def told_to(self, notices: Sequence[Notice], since: float) -> Sequence[float]:
        """When their one recipient was sent something else by their channel; what is under way: now."""
        ...

    async def told_with(self, notices: Sequence[Notice], said: str) -> None:
        """They need no message of their own any more."""
        ...

    async def tally(self, tenant: str) -> Sequence[Tally]: ...

    async def untold(self, limit: int) -> Sequence[Untold]:
        """Questions of any tenant that were asked, escalated or answered since people were told."""
        ...

    async def told(self, tenant: str, approval_id: str, level: int, ended: bool) -> None:
        """What it takes to tell people of this is in here."""
        ...


class Sessions(Protocol):
    """Who is signed in to the console."""

    async def add(self, session: SignedIn) -> None: ...
    async def find(self, hash: str) -> SignedIn | None:
        """One that is not over."""
        ...

    async def seen(self, hash: str, at: float, expires_at: float) -> None: ...
    async def end(self, hash: str) -> bool: ...
    async def forget(self) -> int:
        """Drop those that are over."""
        ...


class People(Protocol):
    """Who could answer an approval."""

    def holders(self, tenant: str, role: str) -> frozenset[str]: ...

    def operated(self, tenant: str) -> bool:
        """Whether there are operators, also where none of them has come yet."""
        ...
