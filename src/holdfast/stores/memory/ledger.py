"""The effect ledger in memory: the same rules as on disk, in the fewest words."""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace

from holdfast.model import defaults
from holdfast.model.approval import Answer
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.observation import Observation
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.stage import Stage, TakeRate, UseGrant
from holdfast.model.vocabulary import KeySource, State
from holdfast.ports import Begun, Clock, Denied, Secrets, Settlement, Taken
from holdfast.records.body import act_body, intent_body, kind_of_unrun, outcome_body
from holdfast.stores.boot import Boot
from holdfast.stores.denial import grant_denied, rate_denied, why_unusable
from holdfast.stores.halted import halted, targets
from holdfast.stores.memory.shelf import Asked, Entry, Shelf
from holdfast.stores.payload import payload
from holdfast.stores.rate import arrival, wait_ms
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
        for ref, entry in self._shelf.operations.items():
            if ref.tenant == tenant and entry.operation.call_id == call_id:
                return self._seen(entry)
        return None

    async def wait(self, operation: Operation, seconds: float) -> Operation:
        return await self._watch.until_still(operation, seconds, self.find)

    async def overdue(self, limit: int) -> Sequence[Operation]:
        seen = [self._seen(e) for e in self._shelf.operations.values() if e.operation.state in OPEN]
        seen.sort(key=_age)
        orphans = [operation for operation in seen if operation.orphaned][:limit]
        unknown = [o for o in seen if o.state is State.UNKNOWN and _age(o) > self._after]
        page = unknown[: limit - len(orphans)]
        found = orphans + page
        self._after = START if len(found) < limit or not page else _age(page[-1])
        return found

    async def peek_rate(self, call: Call, bucket: str, calls: float, per_s: float) -> int | None:
        tat = self._shelf.rates.get((call.principal.tenant, bucket))
        return wait_ms(tat, self._clock.now(), calls, per_s)

    # -- writing -----------------------------------------------------------------

    async def begin(self, call: Call) -> Begun | Taken | Denied:
        if denied := halted(self._shelf.halts, targets(call)):
            return denied
        ref, now = call.ref if call.writes else None, self._clock.now()
        entry = None if ref is None else self._shelf.operations.get(ref)
        if entry is not None and not _claimable(entry.operation, call):
            return Taken(self._seen(entry))
        for gate, stage in call.staged:  # all are looked at before any is taken
            if denied := self._refusal(gate, stage, call, now):
                return denied
        for _, stage in call.staged:
            self._take(stage, call, now)
        claimed = None if ref is None else self._claim(call, ref, entry, now)
        call_id = call.id if claimed is None else claimed.call_id
        self._shelf.record(call.principal.tenant, call_id, "intent", now, intent_body(call, now))
        return Begun(claimed)

    async def finish(self, call: Call, observation: Observation, state: State | None) -> bool:
        now, mine, raw = self._clock.now(), call.operation, observation.to_json()
        commitment = self._secrets.commitment(call.principal.tenant, raw)
        body = outcome_body(call, now, observation, observation.code, commitment, state)
        if mine is None:
            self._shelf.record(call.principal.tenant, call.id, "outcome", now, body)
            return True
        entry, end = self._shelf.operations[mine.ref], state or State.UNKNOWN
        theirs = entry.operation
        same = (theirs.epoch, theirs.nonce) == (mine.epoch, mine.nonce)
        in_time = same and theirs.state in OPEN
        corrects = same and theirs.state is State.NO_EFFECT and end is State.COMMITTED
        if in_time or corrects:
            self._end(entry, end, raw, "", now)
        if in_time and end is State.UNKNOWN and (call.work is None or call.work.done()):
            entry.operation = replace(entry.operation, owner="")  # the attempt is over: nobody can act on it
        kind = "outcome" if in_time else "late"
        says_otherwise = not call.tool.contract.honours_key and _contradicts(theirs, same, end)
        if corrects or (says_otherwise and not in_time):
            kind = "contradiction"
            log.error("call '%s' ended '%s', but the ledger said otherwise: check its target", call.id, end)
        self._shelf.record(mine.ref.tenant, call.id, kind, now, body)
        self._watch.wake(mine.ref)
        return in_time or corrects

    async def refuse(self, call: Call, observation: Observation, code: Code | None) -> None:
        now = self._clock.now()
        body = outcome_body(call, now, observation, code, None)
        self._shelf.record(call.principal.tenant, call.id, kind_of_unrun(observation), now, body)

    async def settle(self, operation: Operation, settlement: Settlement) -> bool:
        now, entry = self._clock.now(), self._shelf.operations.get(operation.ref)
        if entry is None or _identity(entry.operation) != _identity(operation):
            return False
        if operation.state is State.HELD:
            self._void_questions(operation.ref)
        self._end(entry, settlement.state, settlement.observation, settlement.note, now)
        members = {"from": operation.state, "to": settlement.state, "note": settlement.note}
        body = act_body(now, "settle", settlement.by, **members, nonce=operation.nonce)
        self._shelf.record(operation.ref.tenant, operation.call_id, "settle", now, body)
        self._watch.wake(operation.ref)
        return True

    async def forget(self) -> int:
        now = self._clock.now()
        over = [entry for entry in self._shelf.operations.values() if self._is_over(entry, now)]
        for entry in over:
            entry.operation = replace(entry.operation, payload=None, observation=None)
        kept = {name: at for name, at in self._shelf.cancels.items() if at > now - CANCEL_KEPT_S}
        self._shelf.cancels = kept
        return len(over)

    # -- parts -------------------------------------------------------------------

    def _claim(self, call: Call, ref: OperationRef, entry: Entry | None, now: float) -> Operation:
        contract, boot = call.tool.contract, self._boot.now()
        left = max(call.deadline - self._clock.monotonic(), 0.0)
        earlier = None if entry is None else entry.operation
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
            replace(claimed, payload=payload(call)),
            contract.window_s,
            self._boot.id,
            boot + left,
            boot + defaults.lease(left),
            next((stage.approval_id for _, stage in call.staged if isinstance(stage, UseGrant)), None),
        )
        return claimed

    def _refusal(self, gate: str, stage: Stage, call: Call, now: float) -> Denied | None:
        match stage:
            case TakeRate(bucket, calls, per_s):
                wait = wait_ms(self._shelf.rates.get((call.principal.tenant, bucket)), now, calls, per_s)
                return None if wait is None else rate_denied(gate, stage, wait)
            case UseGrant(approval_id):
                asked = self._shelf.approvals.get((call.principal.tenant, approval_id))
                why = _unusable(asked, call, now)
                return None if why is None else grant_denied(gate, stage, why)

    def _take(self, stage: Stage, call: Call, now: float) -> None:
        tenant = call.principal.tenant
        match stage:
            case TakeRate(bucket, calls, per_s):
                tat = self._shelf.rates.get((tenant, bucket), now)
                self._shelf.rates[tenant, bucket] = arrival(tat, now, calls, per_s)
            case UseGrant(approval_id):
                self._shelf.approvals[tenant, approval_id].used_nonce = call.nonce

    def _end(self, entry: Entry, state: State, raw: bytes | None, note: str, now: float) -> None:
        entry.operation = replace(entry.operation, state=state, observation=raw, note=note, updated_at=now)
        final = state.settled or state is State.NO_EFFECT
        entry.finished = (now, self._boot.id, self._boot.now()) if final else None
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
        if entry.finished is None or entry.operation.payload is None:
            return False
        wall, boot_id, boot = entry.finished
        elapsed = self._boot.now() - boot if boot_id == self._boot.id else now - wall
        return elapsed >= entry.window_s

    def _seen(self, entry: Entry) -> Operation:
        here = entry.boot_id == self._boot.id
        since = self._since(entry, entry.deadline_boot)
        open_ = entry.operation.state in OPEN
        return replace(
            entry.operation,
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


def _age(operation: Operation) -> tuple[float, str]:
    return operation.updated_at, operation.call_id
