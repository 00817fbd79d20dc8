"""The effect ledger: what was claimed, what came of it, what is still open.

Writes are jobs for the writer; everything costly (sealing, records) is made before they are queued. Reads
wait for no writer.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from holdfast.model import defaults
from holdfast.model.attendance import Attendance
from holdfast.model.call import Call
from holdfast.model.errors import Code, StoreError
from holdfast.model.limits import Account, Amount
from holdfast.model.observation import Observation
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.sequel import Sequel, SessionMoved
from holdfast.model.stage import RESTS_ON, Lock, approval_of
from holdfast.model.vocabulary import KeySource, State
from holdfast.ports import Begun, Clock, Denied, Secrets, Settlement, Taken
from holdfast.records.body import act_body, intent_body, kind_of_unrun, outcome_body, settle_body
from holdfast.stores.attendance import attendant, is_adoptable
from holdfast.stores.boot import Boot
from holdfast.stores.halted import EVERYWHERE, targets
from holdfast.stores.labels import Gain, Known, gains, settled
from holdfast.stores.payload import payload
from holdfast.stores.rate import wait_ms
from holdfast.stores.spending import Outcome, measured, reserves
from holdfast.stores.sql import attendance, budgets, locks, outcome
from holdfast.stores.sql.budgets import Holder
from holdfast.stores.sql.claim import READ_RATE, Claim, Lost, Won, claim
from holdfast.stores.sql.engine import AmbiguousCommit, Reader, Row, Values, Writer
from holdfast.stores.sql.outcome import End, Moment, Told
from holdfast.stores.sql.rows import (
    FIND,
    FIND_CALL,
    FIND_RUNNING,
    FIND_UNKNOWN,
    NEXT_OWNED_BOOT,
    NEXT_OWNER,
    Rows,
)
from holdfast.stores.watch import Watch
from holdfast.stores.worker import Workers

log = logging.getLogger(__name__)

START = (-1.0, "")
_BEGUN = Begun(None)
_UNKNOWN, _DISPATCHED, _CALLER = State.UNKNOWN, State.DISPATCHED, KeySource.CALLER
_NOT_GIVEN_UP = "a claim could not be given up; it will be found unknown when its lease is over: %s"


class SqlLedger:
    def __init__(
        self,
        writer: Writer,
        reader: Reader,
        secrets: Secrets,
        clock: Clock,
        boot: Boot,
        workers: Workers,
        watch: Watch,
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._secrets = secrets
        self._clock = clock
        self._boot = boot
        self._workers = workers
        self._rows = Rows(secrets, boot, workers)
        self._watch = watch
        self._after = START
        self._labels = Known()

    # -- looking -----------------------------------------------------------------

    async def find(self, ref: OperationRef) -> Operation | None:
        return await self._first(ref.tenant, FIND, ref)

    async def find_call(self, tenant: str, call_id: str) -> Operation | None:
        return await self._first(tenant, FIND_CALL, (tenant, call_id))

    async def wait(self, operation: Operation, seconds: float) -> Operation:
        return await self._watch.until_still(operation, seconds, self.find)

    async def overdue(self, limit: int) -> Sequence[Operation]:
        """Orphans first, then a page of the unknown ones; the next call goes on where this one ended.

        Without turning pages, a few old operations that nobody can settle would hide all later ones.
        """
        if not self._workers.leads():
            return ()
        rows = await self._orphans(limit)
        page = await self._reader.all(EVERYWHERE, FIND_UNKNOWN, (*self._after, limit - len(rows)))
        found = [self._rows.operation(row) for row in (*rows, *page)]
        ended = len(found) < limit or not page
        self._after = START if ended else (found[-1].updated_at, found[-1].call_id)
        return found

    async def _orphans(self, limit: int) -> list[Row]:
        """Owner by owner, for there are few of them: what is running and well is never read."""
        found: list[Row] = []
        owner: Row = ("", "")
        while len(found) < limit and (next_one := await self._next_owner(owner)):
            [owner] = next_one
            which = (*owner, self._rows.lost_before(*owner), limit - len(found))
            found += await self._reader.all(EVERYWHERE, FIND_RUNNING, which)
        return found

    async def _next_owner(self, owner: Row) -> list[Row]:
        """Of the same boot, or else the first of the next."""
        found = await self._reader.all(EVERYWHERE, NEXT_OWNER, owner)
        return found or await self._reader.all(EVERYWHERE, NEXT_OWNED_BOOT, owner[:1])

    async def alike(self, call: Call, here: Attendance) -> Operation | None:
        who = (call.principal.tenant, call.principal.id, call.tool.contract.tool, call.fingerprint)
        now = (self._boot.id, self._boot.now(), self._clock.now())
        for row in await self._reader.all(who[0], attendance.ALIKE, (*who, *now)):
            found = self._rows.operation(row)
            if is_adoptable(found, here, self._workers, row[-1]):
                return found
        return None

    async def peek_rate(
        self, call: Call, bucket: str, calls: float, per_s: float, *, shared: bool = False
    ) -> int | None:
        rows = await self._reader.all(
            call.principal.tenant, READ_RATE, (EVERYWHERE if shared else call.principal.tenant, bucket)
        )
        return wait_ms(rows[0][0], self._clock.now(), calls, per_s) if rows else None

    async def peek_budgets(
        self, tenant: str, buckets: Sequence[str], but: str | None = None
    ) -> Mapping[str, Amount]:
        found = {}
        for bucket in buckets:
            for row in await self._reader.all(tenant, budgets.ONE_ACCOUNT, (tenant, bucket)):
                found[bucket] = budgets.account(row).taken
        held = await self._reader.all(tenant, budgets.HELD, (tenant, but)) if but else ()
        for bucket, *amount, is_open in held:
            if is_open and bucket in found:
                found[bucket] = found[bucket].minus(Amount(*amount))
        return found

    async def budgets(self, tenant: str) -> Sequence[Account]:
        return [budgets.account(row) for row in await self._reader.all(tenant, budgets.ACCOUNTS, (tenant,))]

    # -- writing -----------------------------------------------------------------

    async def begin(self, call: Call) -> Begun | Taken | Denied:
        wish = self._wish(call)
        claiming = self._writer.submit(wish.tenant, call.writes, claim, wish)
        try:
            # Whoever writes in order keeps what is given up behind what is claimed, heard of or not.
            answer = await (claiming if self._writer.in_order else asyncio.shield(claiming))
        except AmbiguousCommit:
            try:
                answer = await self._claim_again(wish)
            except StoreError:
                self._left(wish, call)  # should it stand after all: nothing was sent, so nothing is unknown
                raise
        except asyncio.CancelledError:
            if self._writer.in_order:
                self._left(wish, call)
            else:  # only once it is over can it be given up: other jobs may overtake it
                claiming.add_done_callback(lambda _: self._left(wish, call))
            raise
        if answer is None:
            return _BEGUN
        if isinstance(answer, Won):
            return Begun(self._claimed(call, wish, answer))
        return Taken(self._rows.operation(answer.row)) if isinstance(answer, Lost) else answer

    async def finish(self, call: Call, observation: Observation, state: State | None) -> bool:
        at = self._moment()
        raw = observation.to_json()
        principal, operation = call.proposal.principal, call.operation
        tenant = principal.tenant
        commitment = self._secrets.commitment(tenant, raw)
        body = outcome_body(call, at.wall, observation, observation.code, commitment, state)
        gained = self._gained(call, observation) if call.tool.contract.labels else ()
        sequels = tuple([self._sealed(tenant, one) for one in call.sequels]) if call.sequels else ()
        told = Told(call.id, body, tuple(call.alarms), principal.user, gained, sequels, self._workers.id)
        budget = self._measured(call, observation, state) if reserves(call) else None
        since = self._clock.monotonic() if gained else 0.0
        if operation is None:
            durable = call.writes or bool(gained)  # who was told of it must not be forgotten
            await self._writer.submit(
                tenant, durable, outcome.note_outcome, tenant, "outcome", at.wall, told, budget
            )
            self._labels.add(gained, since)
            return True
        end = End(
            operation.ref,
            operation.call_id,
            operation.epoch,
            operation.nonce,
            state or _UNKNOWN,
            self._secrets.seal(tenant, raw),
            "",
            at,
            call.tool.contract.honours_key,
            call.work is None or call.work.done(),
            budget,
            call.tool.locks is not None,
        )
        try:
            taken, contradicts = await self._finish(end, told)
            self._labels.add(gained, since)
        finally:
            self._watch.wake(end.ref)
        if contradicts:
            log.error(
                "call '%s' ended '%s', but the ledger said otherwise: check its target", call.id, end.state
            )
        return taken

    async def _claim_again(self, wish: Claim) -> Won | Lost | Denied | None:
        """Nothing is dispatched on doubt: after a commit of which nobody knows whether it happened the same
        claim is made again. One that stands is found by its nonce; one still on its way is waited for.
        """
        if wish.row is None or wish.ref is None:
            raise AmbiguousCommit("the store may not have taken the intent; nothing ran")
        try:
            return await self._writer.submit(wish.tenant, True, claim, wish)
        except AmbiguousCommit:
            found = await self.find(wish.ref)
            if found is None or found.nonce != wish.nonce:
                raise
            return Won(found.epoch, found.call_id, found.created_at)

    async def _finish(self, end: End, told: Told) -> tuple[bool, bool]:
        tenant = end.ref.tenant
        try:
            return await self._writer.submit(tenant, True, outcome.finish, end, told)
        except AmbiguousCommit:
            pass
        try:
            return await self._writer.submit(tenant, True, outcome.finish_again, end, told)
        except AmbiguousCommit:
            found = await self.find(end.ref)
            if found is None or (found.state, found.epoch, found.nonce) != (end.state, end.epoch, end.nonce):
                raise
            return True, False

    async def refuse(self, call: Call, observation: Observation, code: Code | None) -> None:
        at = self._clock.now()
        kind, tenant = kind_of_unrun(observation), call.principal.tenant
        body = outcome_body(call, at, observation, code, None, secrets=self._secrets)
        gained = self._gained(call, observation)
        told = Told(call.id, body, tuple(call.alarms), call.principal.user, gained)
        await self._writer.submit(tenant, bool(gained), outcome.note_outcome, tenant, kind, at, told, None)

    async def settle(self, operation: Operation, settlement: Settlement) -> bool:
        at, tenant = self._moment(), operation.ref.tenant
        raw = settlement.observation
        end = End(
            ref=operation.ref,
            call_id=operation.call_id,
            epoch=operation.epoch,
            nonce=operation.nonce,
            state=settlement.state,
            outcome=None if raw is None else self._secrets.seal(tenant, raw),
            note=settlement.note,
            at=at,
        )
        gained = settled(operation, settlement.labels, at.wall)
        body = settle_body(at.wall, operation, settlement)
        told = Told(operation.call_id, body, gained=gained)
        ours = await self._writer.submit(tenant, True, outcome.settle, end, operation.state, told)
        self._watch.wake(end.ref)
        return ours

    async def changed(self, tenant: str, lock: Lock) -> str:
        return await locks.changed(partial(self._reader.all, tenant), tenant, lock)

    async def unlock(self, tenant: str, call_id: str, nonce: str) -> None:
        now = self._clock.now()
        await self._writer.submit(tenant, False, locks.release, tenant, call_id, nonce, now)

    async def attend(self, operation: Operation) -> bool:
        """Not durable: what a power cut takes back was nobody's, and is nobody's again."""
        name, seen = operation.ref, operation.attendant
        return await self._writer.submit(name.tenant, False, attendance.attend, name, seen, self._workers.id)

    async def leave(self, call: Call, *, told: bool, asked: bool = False) -> None:
        name, operation = (call.principal.tenant, call.id), call.operation
        if told:
            epoch = None if operation is None or asked else operation.epoch
            await self._writer.submit(name[0], False, attendance.tell, *name, epoch)
        else:
            await self._writer.submit(name[0], False, attendance.leave, *name, self._workers.id)

    async def tell(self, operation: Operation) -> None:
        name = (operation.ref.tenant, operation.call_id)
        await self._writer.submit(name[0], False, attendance.tell, *name, operation.epoch)

    async def forget(self) -> int:
        total = 0
        while forgotten := await self._writer.submit_long(EVERYWHERE, outcome.forget, self._moment()):
            total += forgotten
        return total

    async def try_write(self) -> None:
        await self._writer.submit(EVERYWHERE, False, outcome.trial, self._workers.id)

    async def count_lost_reads(self) -> int:
        here, now = self._boot.id, self._boot.now()
        held = await self._reader.all(EVERYWHERE, budgets.OF_READS)
        lost = sorted(
            {
                (tenant, call_id, owner)
                for tenant, call_id, owner, boot_id, lease in held
                if boot_id != here or lease < now or not self._workers.alive(owner)
            }
        )
        if not lost:
            return 0
        return await self._writer.submit(EVERYWHERE, True, budgets.count_lost, lost, self._clock.now())

    # -- parts -------------------------------------------------------------------

    def _sealed(self, tenant: str, sequel: Sequel) -> Sequel:
        if isinstance(sequel, SessionMoved):
            return sequel
        return replace(sequel, body=self._secrets.seal(tenant, sequel.body))

    def _measured(self, call: Call, observation: Observation, state: State | None) -> Outcome | None:
        return measured(call, observation, state, self._clock.monotonic() - call.started)

    def _gained(self, call: Call, observation: Observation) -> tuple[Gain, ...]:
        """Labels that the store may not have yet."""
        gained = gains(call, observation, self._clock.now())
        return self._labels.news(gained, self._clock.monotonic()) if gained else ()

    def _holder(self, call: Call, now: float) -> Holder:
        """A write's reservation is found by its operation, a read's by its worker."""
        left = max(call.deadline - self._clock.monotonic(), 0.0)
        owner = "" if call.writes else self._workers.id
        lease = self._boot.now() + defaults.lease(left)
        return Holder(call.principal.tenant, call.id, owner, self._boot.id, lease, now)

    def _wish(self, call: Call) -> Claim:
        now, ref = self._clock.now(), call.ref
        return Claim(
            targets(call),
            self._row(call, ref, now) if ref is not None and call.writes else None,
            call.rerun_unknown,
            call.staged,
            ref,
            call.proposal.principal.tenant,
            call.id,
            call.nonce,
            call.fingerprint,
            call.tool.contract.digest,
            now,
            intent_body(call, now, self._secrets),
            self._holder(call, now) if reserves(call) else None,
            bool(call.tool.contract.labels),
        )

    def _row(self, call: Call, ref: OperationRef, now: float) -> tuple[object, ...]:
        contract, boot = call.tool.contract, self._boot.now()
        left = max(call.deadline - self._clock.monotonic(), 0.0)
        return (
            *ref,
            call.id,
            contract.version,
            contract.digest,
            call.fingerprint,
            call.nonce,
            self._workers.id,
            (call.key_source or _CALLER)._value_,
            call.trace_id,
            now,
            self._boot.id,
            boot + left,
            boot + defaults.lease(left),
            contract.window_s,
            _grant(call),
            self._secrets.seal(ref.tenant, payload(call)),
            attendant(call, self._workers),
        )

    def _claimed(self, call: Call, wish: Claim, won: Won) -> Operation | None:
        return wish.ref and Operation(
            ref=wish.ref,
            call_id=won.call_id,
            version=call.tool.contract.version,
            contract_digest=wish.contract_digest,
            fingerprint=wish.fingerprint,
            state=_DISPATCHED,
            epoch=won.epoch,
            nonce=wish.nonce,
            owner=self._workers.id,
            key_source=call.key_source or _CALLER,
            trace_id=call.trace_id,
            created_at=won.created_at,
            updated_at=wish.now,
        )

    def _left(self, wish: Claim, call: Call) -> None:
        """The caller went away while its claim was on the way."""
        try:
            if wish.row is not None and wish.ref is not None:
                self._abandon(wish.ref, call)
            elif reserves(call):
                self._give_back(call)
        except StoreError as error:
            log.error(_NOT_GIVEN_UP, error)

    def _abandon(self, ref: OperationRef, call: Call) -> None:
        at = self._moment()
        body = act_body(at.wall, "abandon", call.principal.user, nonce=call.nonce, status="cancelled")
        job = self._writer.submit(ref.tenant, True, outcome.abandon, ref, call.nonce, at, body)
        job.add_done_callback(_log_failure)

    def _give_back(self, call: Call) -> None:
        """A read whose caller went away before it was sent has used nothing."""
        tenant, now = call.principal.tenant, self._clock.now()
        job = self._writer.submit(tenant, True, budgets.drop, tenant, call.id, Outcome(happened=False), now)
        job.add_done_callback(_log_failure)

    def _moment(self) -> Moment:
        return Moment(self._clock.now(), self._boot.id, self._boot.now())

    async def _first(self, tenant: str, statement: str, values: Values) -> Operation | None:
        rows = await self._reader.all(tenant, statement, values)
        return self._rows.operation(rows[0]) if rows else None


def _grant(call: Call) -> str | None:
    for _, stage in call.staged:
        if type(stage) in RESTS_ON:
            return approval_of(stage)
    return None


def _log_failure(job: "asyncio.Future[bool] | asyncio.Future[None]") -> None:
    if not job.cancelled() and (error := job.exception()) is not None:
        log.error(_NOT_GIVEN_UP, error)
