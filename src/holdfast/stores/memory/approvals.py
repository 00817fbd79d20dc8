"""Questions to people, in memory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.model import defaults
from holdfast.model.access import ELEVATION
from holdfast.model.approval import Answer, Approval, Need, Vote
from holdfast.model.call import Call, Principal
from holdfast.model.errors import TooManyAsks
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.vocabulary import KeySource, State
from holdfast.ports import Clock
from holdfast.records.body import act_body
from holdfast.stores import question
from holdfast.stores.attendance import attendant
from holdfast.stores.memory.access import begin
from holdfast.stores.memory.shelf import Asked, Entry, Shelf
from holdfast.stores.payload import payload
from holdfast.stores.worker import Workers


class MemoryApprovals:
    def __init__(self, shelf: Shelf, clock: Clock, life_s: float, workers: Workers) -> None:
        self._shelf = shelf
        self._clock = clock
        self._life_s = life_s
        self._workers = workers

    async def ask(
        self, call: Call, need: Need, packet: Mapping[str, Any], release: str = "caller"
    ) -> Approval:
        now, ref = self._clock.now(), question.ref_of(call)
        entry = self._shelf.operations.get(ref)
        if entry is not None:
            found = entry.operation
            question.refuse_unless_holdable(call, found.state, found.fingerprint, found.contract_digest)
        standing = self._latest(ref)
        if standing is not None and question.still_good(standing.approval, call, need, now):
            self._hold(call, ref, entry, now)
            return self._seen(standing)
        self._refuse_flood(ref, question.task_of(call), standing, now)
        if standing is not None and standing.approval.answer in (Answer.PENDING, Answer.APPROVED):
            standing.approval = replace(standing.approval, answer=Answer.AUTO_DENIED)
        call_id = self._hold(call, ref, entry, now)
        asked = question.fresh(call, need, packet, call_id, now, self._life_s, release)
        self._shelf.approvals[ref.tenant, asked.id] = Asked(asked, task=question.task_of(call))
        body = act_body(now, "ask", call.principal.user, approval_id=asked.id, need=dict(need))
        self._shelf.record(ref.tenant, call_id, "ask", now, body)
        return asked

    async def find(self, ref: OperationRef) -> Approval | None:
        return self._expired(self._latest(ref))

    async def get(self, tenant: str, approval_id: str) -> Approval | None:
        return self._expired(self._shelf.approvals.get((tenant, approval_id)))

    async def open(self, tenant: str) -> Sequence[Approval]:
        waiting = [self._seen(asked) for asked in self._pending(tenant, self._clock.now())]
        return sorted(waiting, key=lambda approval: (approval.created_at, approval.id))

    async def mark(self, tenant: str) -> str:
        waiting = [asked.approval for asked in self._pending(tenant, self._clock.now())]
        return repr([(one.id, one.level, len(one.votes)) for one in waiting])

    async def tally(self, tenant: str, principal: str, tool: str, since: float) -> Mapping[Answer, int]:
        every = [self._expired(asked) for asked in self._shelf.approvals.values()]
        return Counter(
            one.answer
            for one in every
            if one is not None
            and (one.ref.tenant, one.ref.principal, one.ref.tool) == (tenant, principal, tool)
            and one.created_at >= since
            and one.answer is not Answer.PENDING
        )

    async def decide(
        self, approval: Approval, by: Principal, role: str, approve: bool, note: str, via: str = ""
    ) -> Approval:
        now, tenant = self._clock.now(), approval.ref.tenant
        asked = self._shelf.approvals.get((tenant, approval.id))
        found = question.refuse_unless_votable(
            None if asked is None else asked.approval, approval.id, by.user, now
        )
        vote = Vote(person=by.user, role=role, approve=approve, note=note, at=now, via=via)
        voted = replace(found, votes=(*found.votes, vote))
        voted = replace(voted, answer=question.answer_after(voted))
        self._shelf.approvals[tenant, approval.id].approval = voted
        if voted.ref.tool == ELEVATION and voted.answer is Answer.APPROVED:
            begin(self._shelf, voted, by.user, now)
        said = question.told_of_vote(approval.id, vote, voted.answer)
        self._shelf.record(tenant, voted.call_id, "vote", now, act_body(now, "vote", by.user, **said))
        return voted

    async def due(self, groups: int) -> Sequence[Approval]:
        now = self._clock.now()
        every = [asked.approval for asked in self._shelf.approvals.values()]
        found = [one for one in every if question.is_due(one, groups, now)]
        return [replace(a, packet={}, votes=()) for a in sorted(found, key=lambda a: a.expires_at)]

    async def expire(self, approval: Approval) -> bool:
        asked = self._shelf.approvals[approval.ref.tenant, approval.id]
        if asked.approval.answer is not Answer.PENDING:
            return False
        self._deny(asked, self._clock.now())
        return True

    async def escalate(self, approval: Approval, level: int, to: Sequence[str]) -> bool:
        now, asked = self._clock.now(), self._shelf.approvals[approval.ref.tenant, approval.id]
        if asked.approval.answer is not Answer.PENDING or asked.approval.level >= level:
            return False
        asked.approval = replace(asked.approval, level=level)
        said = {"approval_id": approval.id, "level": level, "to": list(to)}
        body = act_body(now, "escalate", "holdfast", **said)
        self._shelf.record(approval.ref.tenant, approval.call_id, "escalate", now, body)
        return True

    async def releasable(self) -> Sequence[Approval]:
        now = self._clock.now()
        return [
            replace(asked.approval, packet={})
            for asked in self._shelf.approvals.values()
            if self._is_releasable(asked)
            and asked.release_at <= now < asked.approval.expires_at
            and (held := self._shelf.operations.get(asked.approval.ref)) is not None
            and held.operation.state in (State.HELD, State.NO_EFFECT)
        ]

    async def releasing(self, approval: Approval, again_at: float) -> bool:
        asked = self._shelf.approvals[approval.ref.tenant, approval.id]
        if not self._is_releasable(asked) or asked.approval.tries != approval.tries:
            return False
        asked.approval, asked.release_at = replace(asked.approval, tries=approval.tries + 1), again_at
        return True

    async def keep_back(self, approval: Approval, said: str) -> None:
        asked = self._shelf.approvals[approval.ref.tenant, approval.id]
        asked.approval = replace(asked.approval, release="caller", said=said)

    async def alarm(self, tenant: str, by: str, text: str, approval: Approval | None = None) -> None:
        now, call_id = self._clock.now(), "" if approval is None else approval.call_id
        body = act_body(now, "alarm", by, **question.told_of_alarm(text, approval))
        self._shelf.record(tenant, call_id, "security", now, body)

    def _is_releasable(self, asked: Asked) -> bool:
        given = asked.approval
        return given.answer is Answer.APPROVED and given.release == "gateway" and asked.used_nonce is None

    def _refuse_flood(self, ref: OperationRef, task: str, standing: Asked | None, now: float) -> None:
        open_ = [a for a in self._pending(ref.tenant, now) if a.approval.ref.principal == ref.principal]
        open_ = [a for a in open_ if a is not standing]
        if len(open_) >= defaults.OPEN_ASKS:
            raise TooManyAsks(question.FLOOD.format(principal=ref.principal, count=len(open_)))
        of_task = [a for a in open_ if a.task == task]
        if task and len(of_task) >= defaults.OPEN_ASKS_TASK:
            raise TooManyAsks(question.TASK_FLOOD.format(task=task, count=len(of_task)))

    def _hold(self, call: Call, ref: OperationRef, entry: Entry | None, now: float) -> str:
        """The operation's row, from its first hold on; a read that needs consent has none."""
        if not call.writes:
            return call.id
        if entry is None:
            entry = Entry(self._held(call, ref, now), call.tool.contract.window_s)
            self._shelf.operations[ref] = entry
        elif entry.operation.state is State.NO_EFFECT:
            entry.operation = entry.operation._replace(state=State.HELD, updated_at=now)
            entry.finished = None
        return entry.operation.call_id

    def _held(self, call: Call, ref: OperationRef, now: float) -> Operation:
        contract = call.tool.contract
        return Operation(
            ref=ref,
            call_id=call.id,
            version=contract.version,
            contract_digest=contract.digest,
            fingerprint=call.fingerprint,
            state=State.HELD,
            epoch=0,
            nonce=call.nonce,
            owner="",
            key_source=call.key_source or KeySource.CALLER,
            trace_id=call.trace_id,
            created_at=now,
            updated_at=now,
            payload=payload(call),
            attendant=attendant(call, self._workers),
        )

    def _latest(self, ref: OperationRef) -> Asked | None:
        asked = [a for a in self._shelf.approvals.values() if a.approval.ref == ref]
        return asked[-1] if asked else None  # in the order they were asked

    def _pending(self, tenant: str, now: float) -> list[Asked]:
        return [
            asked
            for asked in self._shelf.approvals.values()
            if asked.approval.ref.tenant == tenant
            and asked.approval.answer is Answer.PENDING
            and asked.approval.expires_at > now
        ]

    def _expired(self, asked: Asked | None) -> Approval | None:
        if asked is None:
            return None
        approval, now = asked.approval, self._clock.now()
        if approval.answer is Answer.PENDING and approval.expires_at <= now:
            self._deny(asked, now)
        return self._seen(asked)

    def _deny(self, asked: Asked, now: float) -> None:
        approval = asked.approval
        asked.approval = replace(approval, answer=Answer.AUTO_DENIED)
        body = act_body(now, "expire", "holdfast", approval_id=approval.id, answer=Answer.AUTO_DENIED)
        self._shelf.record(approval.ref.tenant, approval.call_id, "vote", now, body)

    def _seen(self, asked: Asked) -> Approval:
        return replace(asked.approval, used=asked.used_nonce is not None)
