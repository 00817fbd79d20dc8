"""The effect ledger in memory: the same rules as on disk, in the fewest words."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.model import defaults
from holdfast.model.approval import Answer
from holdfast.model.attendance import Attendance
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.limits import Account, Amount
from holdfast.model.observation import Observation
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.sequel import NewJob
from holdfast.model.stage import (
    AnswerFor,
    Lock,
    PolicyVersion,
    ReserveBudget,
    SeenLabels,
    Stage,
    TakeRate,
    UseGrant,
    UseRule,
    UseStep,
    WorkIn,
    approval_of,
)
from holdfast.model.vocabulary import KeySource, State
from holdfast.ports import Begun, Clock, Denied, Secrets, Settlement, Taken
from holdfast.records.body import act_body, intent_body, kind_of_unrun, outcome_body, settle_body
from holdfast.stores.attendance import attendant, is_adoptable
from holdfast.stores.boot import Boot
from holdfast.stores.denial import grant_denied, outdated, rate_denied, why_unusable
from holdfast.stores.halted import EVERYWHERE, halted, targets
from holdfast.stores.labels import gains, settled
from holdfast.stores.memory import capabilities, labels, locks, sequels, standing, upstream_sessions
from holdfast.stores.memory.budgets import Reservation
from holdfast.stores.memory.shelf import Asked, Entry, Shelf
from holdfast.stores.payload import payload
from holdfast.stores.rate import arrival, wait_ms
from holdfast.stores.spending import Outcome, measured, outcome_of, reserves
from holdfast.stores.watch import Watch
from holdfast.stores.worker import Workers

log = logging.getLogger(__name__)

OPEN = frozenset({State.CLAIMED, State.DISPATCHED, State.UNKNOWN})
START = (-1.0, "")
CANCEL_KEPT_S = 3600.0


class MemoryLedger:
    def __init__(self, shelf: Shelf, secrets: Secrets, clock: Clock, boot: Boot, workers: Workers) -> None:
        self._shelf = shelf
        self._secrets = secrets
        self._clock = clock
        self._boot = boot
        self._workers = workers
        self._watch = Watch(clock)
        self._after = START

    # -- looking -----------------------------------------------------------------

    async def find(self, ref: OperationRef) -> Operation | None:
        entry = self._shelf.operations.get(ref)
        return None if entry is None else self._seen(entry)

    async def find_call(self, tenant: str, call_id: str) -> Operation | None:
        entry = self._entry(tenant, call_id)
        return None if entry is None else self._seen(entry)

    async def wait(self, operation: Operation, seconds: float) -> Operation:
        return await self._watch.until_still(operation, seconds, self.find)

    async def overdue(self, limit: int) -> Sequence[Operation]:
        seen = [(e, self._seen(e)) for e in self._shelf.operations.values() if e.operation.state in OPEN]
        lost = sorted((e for e, operation in seen if operation.orphaned), key=_owned)
        orphans = [self._seen(e) for e in lost[:limit]]
        unknown = [o for _, o in seen if o.state is State.UNKNOWN and _age(o) > self._after]
        page = sorted(unknown, key=_age)[: limit - len(orphans)]
        found = orphans + page
        self._after = START if len(found) < limit or not page else _age(page[-1])
        return found

    async def alike(self, call: Call, here: Attendance) -> Operation | None:
        who, now = (call.principal.tenant, call.principal.id, call.tool.contract.tool), self._clock.now()
        equal = [
            entry
            for ref, entry in self._shelf.operations.items()
            if ref[:3] == who
            and entry.operation.fingerprint == call.fingerprint
            and entry.operation.attendant is not None
            and not self._window_over(entry, now)
        ]
        for entry in sorted(equal, key=_newest, reverse=True):
            if is_adoptable(self._seen(entry), here, self._workers, self._since_end(entry)):
                return self._seen(entry)
        return None

    async def peek_rate(
        self, call: Call, bucket: str, calls: float, per_s: float, *, shared: bool = False
    ) -> int | None:
        tat = self._shelf.rates.get((EVERYWHERE if shared else call.principal.tenant, bucket))
        return wait_ms(tat, self._clock.now(), calls, per_s)

    async def peek_budgets(
        self, tenant: str, buckets: Sequence[str], but: str | None = None
    ) -> Mapping[str, Amount]:
        return {bucket: self._shelf.budgets.taken(tenant, bucket, but) for bucket in buckets}

    async def budgets(self, tenant: str) -> Sequence[Account]:
        found = [account for (owner, _), account in self._shelf.budgets.accounts.items() if owner == tenant]
        return sorted(found, key=_listed)

    # -- writing -----------------------------------------------------------------

    async def begin(self, call: Call) -> Begun | Taken | Denied:
        if denied := halted(self._barred(call), targets(call)):
            return denied
        if denied := outdated(call.staged, self._promoted()):
            return denied
        if denied := labels.moved(self._shelf, call.staged):
            return denied
        ref, now = call.ref if call.writes else None, self._clock.now()
        entry = None if ref is None else self._shelf.operations.get(ref)
        if entry is not None and not _claimable(entry.operation, call):
            return Taken(self._seen(entry))
        again = None if entry is None else entry.operation.call_id
        for gate, stage in call.staged:  # all are looked at before any is taken
            if denied := self._refusal(gate, stage, call, now, again):
                return denied
        claimed = None if ref is None else self._claim(call, ref, entry, now)
        call_id = call.id if claimed is None else claimed.call_id
        self._shelf.budgets.start_over(call.principal.tenant, call_id)
        for _, stage in call.staged:
            self._take(stage, call, now, call_id)
        body = intent_body(call, now, self._secrets)
        self._shelf.record(call.principal.tenant, call_id, "intent", now, body)
        return Begun(claimed)

    async def finish(self, call: Call, observation: Observation, state: State | None) -> bool:
        now, mine, raw = self._clock.now(), call.operation, observation.to_json()
        commitment = self._secrets.commitment(call.principal.tenant, raw)
        body = outcome_body(call, now, observation, observation.code, commitment, state)
        if call.tool.contract.labels:
            labels.gain(self._shelf, gains(call, observation, now))
        elapsed = self._clock.monotonic() - call.started
        budget = measured(call, observation, state, elapsed) if reserves(call) else None
        if mine is None:
            self._shelf.record(call.principal.tenant, call.id, "outcome", now, body)
            self._alarm(call, now)
            if budget is not None:
                self._shelf.budgets.drop(call.principal.tenant, call.id, budget, now)
            return True
        entry, end = self._shelf.operations[mine.ref], state or State.UNKNOWN
        theirs = entry.operation
        same = (theirs.epoch, theirs.nonce) == (mine.epoch, mine.nonce)
        in_time = same and theirs.state in OPEN
        corrects = same and theirs.state is State.NO_EFFECT and end is State.COMMITTED
        if in_time or corrects:
            self._end(entry, end, raw, "", now)
        for sequel in call.sequels if in_time else ():
            sequels.write(self._shelf, sequel, mine.ref, mine.call_id, self._workers.id, now)
        if budget is not None and (in_time or corrects):
            counts = budget if in_time else Outcome(happened=True)
            self._shelf.budgets.settle(mine.ref.tenant, mine.call_id, counts, now)
        if in_time and end is State.UNKNOWN and (call.work is None or call.work.done()):
            entry.operation = entry.operation._replace(owner="")  # the attempt is over: nobody can act on it
        if call.tool.locks is not None and not _goes_on(call, end):
            locks.release(self._shelf.locks, mine.ref.tenant, mine.call_id, mine.nonce)
        kind = "outcome" if in_time else "late"
        says_otherwise = not call.tool.contract.honours_key and _contradicts(theirs, same, end)
        if corrects or (says_otherwise and not in_time):
            kind = "contradiction"
            log.error("call '%s' ended '%s', but the ledger said otherwise: check its target", call.id, end)
        self._shelf.record(mine.ref.tenant, call.id, kind, now, body)
        self._alarm(call, now)
        self._watch.wake(mine.ref)
        return in_time or corrects

    async def refuse(self, call: Call, observation: Observation, code: Code | None) -> None:
        now = self._clock.now()
        body = outcome_body(call, now, observation, code, None, secrets=self._secrets)
        labels.gain(self._shelf, gains(call, observation, now))
        self._shelf.record(call.principal.tenant, call.id, kind_of_unrun(observation), now, body)
        self._alarm(call, now)

    async def settle(self, operation: Operation, settlement: Settlement) -> bool:
        now, entry = self._clock.now(), self._shelf.operations.get(operation.ref)
        if entry is None or _identity(entry.operation) != _identity(operation):
            return False
        if operation.state is State.HELD:
            self._void_questions(operation.ref)
        self._end(entry, settlement.state, settlement.observation, settlement.note, now)
        counts = outcome_of(settlement.state)
        if counts is not None and operation.state is not State.HELD:
            self._shelf.budgets.settle(operation.ref.tenant, operation.call_id, counts, now)
        locks.release(self._shelf.locks, operation.ref.tenant, operation.call_id, operation.nonce)
        labels.gain(self._shelf, settled(operation, settlement.labels, now))
        body = settle_body(now, operation, settlement)
        self._shelf.record(operation.ref.tenant, operation.call_id, "settle", now, body)
        self._watch.wake(operation.ref)
        return True

    async def changed(self, tenant: str, lock: Lock) -> str:
        return locks.changed(self._shelf.locks, tenant, lock)

    async def unlock(self, tenant: str, call_id: str, nonce: str) -> None:
        locks.release(self._shelf.locks, tenant, call_id, nonce)

    async def attend(self, operation: Operation) -> bool:
        entry = self._shelf.operations[operation.ref]
        if entry.operation.attendant != operation.attendant:
            return False
        entry.operation = entry.operation._replace(attendant=self._workers.id)
        return True

    async def leave(self, call: Call, *, told: bool, asked: bool = False) -> None:
        entry, mine = self._entry(call.principal.tenant, call.id), call.operation
        if entry is None or entry.operation.attendant is None:
            return
        theirs = entry.operation
        if not told and theirs.attendant != self._workers.id:
            return  # another worker's client waits for it by now
        last = asked or mine is None or (mine.epoch == theirs.epoch and theirs.state is not State.NO_EFFECT)
        entry.operation = theirs._replace(attendant=None if told and last else "")

    async def tell(self, operation: Operation) -> None:
        entry = self._entry(operation.ref.tenant, operation.call_id)
        if entry is None or entry.operation.attendant is None:
            return
        now = entry.operation
        last = now.epoch == operation.epoch and now.state is not State.NO_EFFECT
        entry.operation = now._replace(attendant=None if last else "")

    async def try_write(self) -> None:
        """Memory takes everything."""

    async def forget(self) -> int:
        now = self._clock.now()
        over = [entry for entry in self._shelf.operations.values() if self._is_over(entry, now)]
        for entry in over:
            entry.operation = entry.operation._replace(payload=None, observation=None, attendant=None)
        kept = {name: at for name, at in self._shelf.cancels.items() if at > now - CANCEL_KEPT_S}
        self._shelf.cancels = kept
        self._shelf.budgets.forget(now)
        return len(over)

    async def count_lost_reads(self) -> int:
        now, lost = self._clock.now(), []
        for name, held in self._shelf.budgets.reservations.items():
            if any(one.owner and self._is_lost(one) for one in held):
                lost.append(name)
        for tenant, call_id in lost:
            self._shelf.budgets.drop(tenant, call_id, Outcome(happened=True), now)
            body = act_body(now, "count_lost_read", "sweep", status="unknown")
            self._shelf.record(tenant, call_id, "settle", now, body)
        return len(lost)

    # -- parts -------------------------------------------------------------------

    def _entry(self, tenant: str, call_id: str) -> Entry | None:
        for ref, entry in self._shelf.operations.items():
            if ref.tenant == tenant and entry.operation.call_id == call_id:
                return entry
        return None

    def _is_lost(self, held: Reservation) -> bool:
        here = held.boot_id == self._boot.id
        return not here or held.lease_boot < self._boot.now() or not self._workers.alive(held.owner)

    def _alarm(self, call: Call, now: float) -> None:
        for alarm in call.alarms:
            body = act_body(now, "alarm", call.principal.user, alarm=alarm)
            self._shelf.record(call.principal.tenant, call.id, "security", now, body)

    def _reservation(self, stage: ReserveBudget, call: Call, now: float) -> Reservation:
        left = max(call.deadline - self._clock.monotonic(), 0.0)
        owner = "" if call.writes else self._workers.id
        lease = self._boot.now() + defaults.lease(left)
        return Reservation(stage.bucket, stage.ask, True, now, owner, self._boot.id, lease)

    def _claim(self, call: Call, ref: OperationRef, entry: Entry | None, now: float) -> Operation:
        contract, boot = call.tool.contract, self._boot.now()
        left = max(call.deadline - self._clock.monotonic(), 0.0)
        earlier = None if entry is None else entry.operation
        waits = attendant(call, self._workers)
        claimed = Operation(
            ref=ref,
            call_id=call.id if earlier is None else earlier.call_id,
            version=contract.version,
            contract_digest=contract.digest,
            fingerprint=call.fingerprint,
            state=State.DISPATCHED,
            epoch=1 if earlier is None else earlier.epoch + 1,
            nonce=call.nonce,
            owner=self._workers.id,
            key_source=call.key_source or KeySource.CALLER,
            trace_id=call.trace_id,
            created_at=now if earlier is None else earlier.created_at,
            updated_at=now,
        )
        self._shelf.operations[ref] = Entry(
            claimed._replace(
                payload=payload(call),
                attendant=waits if waits or earlier is None else earlier.attendant,
            ),
            contract.window_s,
            self._boot.id,
            boot + left,
            boot + defaults.lease(left),
            next((name for _, stage in call.staged if (name := approval_of(stage)) is not None), None),
        )
        return claimed

    def _refusal(self, gate: str, stage: Stage, call: Call, now: float, again: str | None) -> Denied | None:
        match stage:
            case TakeRate(bucket, calls, per_s, shared):
                name = (EVERYWHERE if shared else call.principal.tenant, bucket)
                wait = wait_ms(self._shelf.rates.get(name), now, calls, per_s)
                return None if wait is None else rate_denied(gate, stage, wait)
            case ReserveBudget():
                return self._shelf.budgets.refusal(gate, stage, call.principal.tenant, again)
            case UseGrant(approval_id):
                asked = self._shelf.approvals.get((call.principal.tenant, approval_id))
                why = _unusable(asked, call, now)
                return None if why is None else grant_denied(gate, stage, why)
            case UseRule() | UseStep():
                return standing.refusal(self._shelf, gate, stage, call.principal.tenant, now)
            case AnswerFor():
                return capabilities.refusal(self._shelf, gate, stage, call.ref)
            case Lock():
                return locks.refusal(self._shelf.locks, gate, stage, call.principal.tenant, again)
            case WorkIn():
                tenant, own = call.principal.tenant, again or call.id
                return upstream_sessions.refusal(self._shelf, gate, stage, tenant, own, now)
            case PolicyVersion() | SeenLabels():
                return None  # looked at before anything else

    def _barred(self, call: Call) -> Mapping[str, tuple[str, str]]:
        """What is halted, and what of the call's was revoked."""
        revoked = self._shelf.access.revoked
        if not revoked:
            return self._shelf.halts
        found = {name: revoked[name][1] for name in call.principal.revocable if name in revoked}
        return {**self._shelf.halts, **{name: (one.by, one.note) for name, one in found.items()}}

    def _promoted(self) -> str | None:
        active = self._shelf.promoted
        return None if active is None else active.version

    def _take(self, stage: Stage, call: Call, now: float, call_id: str) -> None:
        tenant = call.principal.tenant
        match stage:
            case TakeRate(bucket, calls, per_s, shared):
                name = (EVERYWHERE if shared else tenant, bucket)
                tat = self._shelf.rates.get(name, now)
                self._shelf.rates[name] = arrival(tat, now, calls, per_s)
            case ReserveBudget():
                held = self._reservation(stage, call, now)
                self._shelf.budgets.reserve(stage, tenant, call_id, held)
            case UseGrant(approval_id):
                self._shelf.approvals[tenant, approval_id].used_nonce = call.nonce
            case AnswerFor():
                capabilities.take(self._shelf, stage, call.ref)
            case Lock():
                locks.take(self._shelf.locks, stage, tenant, call_id, call.nonce)
            case WorkIn():
                upstream_sessions.use(self._shelf, stage, tenant, call_id, now)
            case UseRule() | UseStep():
                standing.use(self._shelf, stage, tenant, call.nonce, call_id)

    def _end(self, entry: Entry, state: State, raw: bytes | None, note: str, now: float) -> None:
        was = entry.operation.state
        entry.operation = entry.operation._replace(state=state, observation=raw, note=note, updated_at=now)
        final = state.settled or state is State.NO_EFFECT
        entry.finished = (now, self._boot.id, self._boot.now()) if final else None
        if was is not State.HELD:
            standing.ended(self._shelf, entry, state)
        asked = self._shelf.approvals.get((entry.operation.ref.tenant, entry.approval_id or ""))
        nonce = entry.operation.nonce
        if asked is None:
            return
        if state is State.NO_EFFECT and asked.used_nonce == nonce:
            asked.used_nonce = None
        elif state is State.COMMITTED and asked.used_nonce is None:
            asked.used_nonce = nonce

    def _void_questions(self, ref: OperationRef) -> None:
        for asked in self._shelf.approvals.values():
            if asked.approval.ref == ref and asked.approval.answer is Answer.PENDING:
                asked.approval = replace(asked.approval, answer=Answer.AUTO_DENIED)

    def _is_over(self, entry: Entry, now: float) -> bool:
        return entry.operation.payload is not None and self._window_over(entry, now)

    def _window_over(self, entry: Entry, now: float) -> bool:
        if entry.finished is None:
            return False
        wall, boot_id, boot = entry.finished
        elapsed = self._boot.now() - boot if boot_id == self._boot.id else now - wall
        return elapsed >= entry.window_s

    def _since_end(self, entry: Entry) -> float | None:
        if entry.finished is None or entry.finished[1] != self._boot.id:
            return None
        return self._boot.now() - entry.finished[2]

    def _seen(self, entry: Entry) -> Operation:
        here = entry.boot_id == self._boot.id
        since = self._since(entry, entry.deadline_boot)
        open_ = entry.operation.state in OPEN
        return entry.operation._replace(
            deadline_passed=since > 0,
            since_deadline_s=max(since, 0.0),
            lease_passed=self._since(entry, entry.lease_boot) > 0,
            owner_alive=not open_ or (here and self._workers.alive(entry.operation.owner)),
        )

    def _since(self, entry: Entry, moment: float | None) -> float:
        if moment is None:
            return 0.0
        return self._boot.now() - moment if entry.boot_id == self._boot.id else math.inf


def _claimable(operation: Operation, call: Call) -> bool:
    free = operation.state in (State.NO_EFFECT, State.HELD)
    again = call.rerun_unknown and operation.state is State.UNKNOWN
    digest = call.tool.contract.digest
    same = (operation.fingerprint, operation.contract_digest) == (call.fingerprint, digest)
    return same and (free or again)


def _goes_on(call: Call, end: State) -> bool:
    """Whether something of it may still change what it locked: a function past its deadline, or a job."""
    working = end is State.UNKNOWN and call.work is not None and not call.work.done()
    return working or any(isinstance(sequel, NewJob) for sequel in call.sequels)


def _contradicts(theirs: Operation, same: bool, end: State) -> bool:
    """Whether an end that came too late says something else than the ledger."""
    committed = same and theirs.state is State.COMMITTED
    if end is State.COMMITTED:
        return not committed
    return committed and end in (State.NO_EFFECT, State.FAILED_FINAL)


def _unusable(asked: Asked | None, call: Call, now: float) -> str | None:
    if asked is None:
        return "there is no such approval"
    given = asked.approval
    bound = (given.ref, given.fingerprint, given.contract_digest)
    fits = bound == (call.ref, call.fingerprint, call.tool.contract.digest)
    fresh = given.answer is Answer.APPROVED and asked.used_nonce is None and given.expires_at > now
    if fits and fresh:
        return None
    return why_unusable(given.answer, asked.used_nonce is not None, given.expires_at <= now)


def _identity(operation: Operation) -> tuple[int, str, State]:
    return operation.epoch, operation.nonce, operation.state


def _listed(account: Account) -> tuple[str, str, str, float]:
    bucket = account.bucket
    return bucket.per, bucket.kind, bucket.subject, bucket.starts_at


def _newest(entry: Entry) -> tuple[float, str]:
    return entry.operation.created_at, entry.operation.call_id


def _owned(entry: Entry) -> tuple[str, str, float, str]:
    return entry.boot_id, entry.operation.owner, entry.lease_boot or 0.0, entry.operation.call_id


def _age(operation: Operation) -> tuple[float, str]:
    return operation.updated_at, operation.call_id
