"""What happened to one call, gate by gate, and what proves it?"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from holdfast import settlement
from holdfast.approvals import answers
from holdfast.approvals.tend import escalated
from holdfast.gateway import storied
from holdfast.gateway.auditing import ALL_TENANTS, CALL_RECORDS, Auditing
from holdfast.gateway.auditors import audits, need_auditor
from holdfast.gateway.operators import operates
from holdfast.gateway.passages import Told
from holdfast.gateway.proving import verified
from holdfast.gateway.storied import Seen, Whose
from holdfast.identity.delegation import in_person
from holdfast.model.approval import Answer, Approval, stand_ins
from holdfast.model.bounds import UNBOUND
from holdfast.model.call import Principal
from holdfast.model.errors import NotFound
from holdfast.model.observation import Observation
from holdfast.model.operation import Operation
from holdfast.model.story import (
    Awaited,
    GatePassed,
    Ledger,
    Line,
    Moment,
    Passage,
    Said,
    Settled,
    Story,
    Verified,
)
from holdfast.model.vocabulary import State
from holdfast.policy import CedarPolicy
from holdfast.policy.served import Served
from holdfast.ports import Ports

__all__ = [
    "Awaited",
    "GatePassed",
    "Ledger",
    "Line",
    "Moment",
    "Passage",
    "Said",
    "Settled",
    "Story",
    "Timeline",
    "Verified",
]

Observe = Callable[[Operation], Awaitable[Observation]]
Theirs = Callable[[Principal, str, str], bool]


class Timeline:
    """Hung on the gateway as `timeline`."""

    def __init__(self, ports: Ports, auditing: Auditing, observe: Observe, theirs: Theirs) -> None:
        """`observe`, `theirs`: what somebody is told of a call, and whether it is theirs to look at."""
        self._ports = ports
        self._approvals = ports.approvals
        self._auditing = auditing
        self._observe = observe
        self._theirs = theirs

    async def of(self, by: Principal, call_id: str) -> Story:
        """Everything of a call that `by` may see; raises NotFound when it is unknown or not theirs."""
        operation = await self._ports.ledger.find_call(by.tenant, call_id)
        asked = None if operation is None else await self._question(await self._approvals.find(operation.ref))
        entries = await self._auditing.of_call(by.tenant, call_id, -1, CALL_RECORDS)
        told = [Told.read(entry) for entry in entries]
        whose = storied.whose(operation, told)
        if whose is None or not self._may_see(by, whose):
            raise NotFound(f"there is no call {call_id!r} of yours here")
        if asked is None and (named := storied.last(told, "approval_id")):
            asked = await self._question(await self._approvals.get(by.tenant, named))
        audited = audits(by, self._ports.people)
        seen = Seen(
            whose=whose,
            told=told if audited else storied.veiled(told),
            operation=operation,
            observation=None if operation is None else await self._observed(by, operation),
            approval=None if asked is None else answers.view(asked, by, self._ports.chain),
            audited=audited,
        )
        story = storied.story(call_id, seen)
        if audited:
            story = replace(story, policies=self._reasons(story.policies))
        return story if asked is None else replace(story, awaited=self._awaited(asked, by, audited))

    async def proven(self, by: Principal, record_id: str) -> Verified:
        """Whether a record is in the log, verified now; raises NotFound, and Forbidden for those who may not
        read the log.
        """
        need_auditor(by, self._ports.people)
        try:
            claimed = await self._auditing.claimed(by.tenant, record_id)
        except NotFound:
            if not operates(by, self._ports.people):
                raise
            claimed = await self._auditing.claimed(ALL_TENANTS, record_id)
        return verified(claimed, self._auditing.verifier)

    # --- who may see what -----------------------------------------------------------------

    def _may_see(self, by: Principal, whose: Whose) -> bool:
        """As for the call itself; and people see what their agents did in their name."""
        themselves = by.user == whose.user and by.bounds is UNBOUND and in_person(by)
        return themselves or self._theirs(by, whose.principal, whose.tool)

    async def _observed(self, by: Principal, operation: Operation) -> Observation | None:
        """Of the very state that the story tells of: a second look may find it gone on."""
        if self._theirs(by, operation.ref.principal, operation.ref.tool):
            return await self._observe(operation)
        return None if operation.state is State.HELD else settlement.current(operation)

    # --- approvals ------------------------------------------------------------------------

    async def _question(self, found: Approval | None) -> Approval | None:
        """As it stands now: what is put to more people by now has a record of that first."""
        return None if found is None else await escalated(found, self._ports)

    def _awaited(self, asked: Approval, by: Principal, audited: bool) -> Awaited | None:
        if asked.answer is not Answer.PENDING or asked.expires_at <= self._ports.clock.now():
            return None
        also = {other for role in asked.missing for other in stand_ins(role, self._ports.chain, asked.level)}
        you = asked.role_of(by, self._ports.chain) is not None
        return Awaited(
            missing=asked.missing,
            also=tuple(sorted(also)),
            people=self._people(asked, also) if audited or you else (),
            until=asked.expires_at,
            you=you and all(vote.person != by.user for vote in asked.votes),
        )

    def _people(self, asked: Approval, also: set[str]) -> tuple[str, ...]:
        """Who could answer now: nobody twice, and nobody for themselves but for their own consent."""
        tenant, done = asked.ref.tenant, {vote.person for vote in asked.votes}
        others = {role for role in (*asked.missing, *also) if role != "user"}
        found = {name for role in others for name in self._ports.people.holders(tenant, role)}
        found.discard(asked.requester)
        if "user" in asked.missing:
            found.add(asked.requester)
        return tuple(sorted(found - done))

    # --- policies -------------------------------------------------------------------------

    def _reasons(self, ids: Sequence[str]) -> tuple[str, ...]:
        served = self._ports.policy
        policy = served.current if isinstance(served, Served) else served
        known = {one.id: one.reason for one in policy.policies} if isinstance(policy, CedarPolicy) else {}
        return tuple(f"{id}: {known[id]}" if known.get(id, id) != id else id for id in ids)
