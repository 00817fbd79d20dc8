"""Questions to people. Asking holds the operation in the same transaction; DEC-2."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from holdfast.model.access import ELEVATION
from holdfast.model.approval import Answer, Approval, Need, Vote, escalation_shares
from holdfast.model.call import Call, Principal
from holdfast.model.errors import StoreError
from holdfast.model.operation import OperationRef
from holdfast.ports import Clock, Secrets
from holdfast.records.body import act_body
from holdfast.stores import question
from holdfast.stores.attendance import attendant
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.payload import payload
from holdfast.stores.sql import questions
from holdfast.stores.sql.engine import Reader, Row, Values, Writer
from holdfast.stores.sql.questions import Held
from holdfast.stores.worker import Workers


class SqlApprovals:
    def __init__(
        self,
        writer: Writer,
        reader: Reader,
        secrets: Secrets,
        clock: Clock,
        life_s: float,
        workers: Workers,
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._secrets = secrets
        self._clock = clock
        self._life_s = life_s
        self._workers = workers

    async def ask(
        self, call: Call, need: Need, packet: Mapping[str, Any], release: str = "caller"
    ) -> Approval:
        now, tenant = self._clock.now(), call.principal.tenant
        wanted = question.fresh(call, need, packet, call.id, now, self._life_s, release)
        sealed = self._secrets.seal(tenant, orjson.dumps(packet))
        held = Held(question.ref_of(call), self._held_row(call, now)) if call.writes else None
        body = act_body(now, "ask", call.principal.user, approval_id=wanted.id, need=dict(need))
        row, votes = await self._writer.submit(tenant, True, questions.ask, call, wanted, sealed, held, body)
        return self._approval(row, votes)

    async def find(self, ref: OperationRef) -> Approval | None:
        return await self._one(ref.tenant, questions.FIND, ref)

    async def get(self, tenant: str, approval_id: str) -> Approval | None:
        return await self._one(tenant, questions.GET, (tenant, approval_id))

    async def open(self, tenant: str) -> Sequence[Approval]:
        rows = await self._reader.all(tenant, questions.OPEN, (tenant, self._clock.now()))
        return [self._approval(row, await self._votes(row)) for row in rows]

    async def mark(self, tenant: str) -> str:
        [row] = await self._reader.all(tenant, questions.MARK, (tenant, self._clock.now()))
        return " ".join(map(str, row))

    async def tally(self, tenant: str, principal: str, tool: str, since: float) -> Mapping[Answer, int]:
        rows = await self._reader.all(tenant, questions.TALLY, (tenant, principal, tool, since))
        return {Answer(answer): int(count) for answer, count in rows}

    async def decide(
        self, approval: Approval, by: Principal, role: str, approve: bool, note: str, via: str = ""
    ) -> Approval:
        now = self._clock.now()
        vote = Vote(person=by.user, role=role, approve=approve, note=note, at=now, via=via)
        tenant = approval.ref.tenant
        # What an elevation gives is numbered over all tenants.
        whose, elevates = (EVERYWHERE, True) if approval.ref.tool == ELEVATION else (tenant, False)
        row, votes = await self._writer.submit(
            whose, True, questions.decide, tenant, approval.id, vote, elevates
        )
        return self._approval(row, votes)

    async def due(self, groups: int) -> Sequence[Approval]:
        now = self._clock.now()
        rows = await self._reader.all(EVERYWHERE, questions.PAST, (now,))
        if groups > 1:
            which = (now, groups - 1, *escalation_shares(groups), now + question.EARLY_S)
            rows = [*rows, *await self._reader.all(EVERYWHERE, questions.SLOW, which)]
        return [questions.read(row, (), {}) for row in rows]

    async def expire(self, approval: Approval) -> bool:
        name, now = (approval.ref.tenant, approval.id), self._clock.now()
        return await self._writer.submit(name[0], True, questions.expire, *name, approval.call_id, now)

    async def escalate(self, approval: Approval, level: int, to: Sequence[str]) -> bool:
        name, now = (approval.ref.tenant, approval.id), self._clock.now()
        said = {"approval_id": approval.id, "level": level, "to": list(to)}
        body = act_body(now, "escalate", "holdfast", **said)
        return await self._writer.submit(
            name[0], True, questions.escalate, *name, approval.call_id, level, now, body
        )

    async def releasable(self) -> Sequence[Approval]:
        now = self._clock.now()
        rows = await self._reader.all(EVERYWHERE, questions.RELEASABLE, (now, now))
        return [questions.read(row, await self._votes(row), {}) for row in rows]

    async def releasing(self, approval: Approval, again_at: float) -> bool:
        name = (approval.ref.tenant, approval.id)
        return await self._writer.submit(name[0], True, questions.releasing, *name, approval.tries, again_at)

    async def keep_back(self, approval: Approval, said: str) -> None:
        await self._writer.submit(
            approval.ref.tenant, True, questions.keep_back, approval.ref.tenant, approval.id, said
        )

    async def alarm(self, tenant: str, by: str, text: str, approval: Approval | None = None) -> None:
        now, call_id = self._clock.now(), "" if approval is None else approval.call_id
        body = act_body(now, "alarm", by, **question.told_of_alarm(text, approval))
        await self._writer.submit(tenant, True, questions.alarm, tenant, call_id, now, body)

    def _held_row(self, call: Call, now: float) -> tuple[object, ...]:
        contract = call.tool.contract
        return (
            call.id,
            contract.version,
            contract.digest,
            call.fingerprint,
            call.nonce,
            call.key_source,
            call.trace_id,
            now,
            contract.window_s,
            self._secrets.seal(call.principal.tenant, payload(call)),
            attendant(call, self._workers),
        )

    async def _one(self, tenant: str, statement: str, values: Values) -> Approval | None:
        rows = await self._reader.all(tenant, statement, values)
        if not rows:
            return None
        found, now = self._approval(rows[0], await self._votes(rows[0])), self._clock.now()
        if found.answer is Answer.PENDING and found.expires_at <= now:
            # Written down, so that a clock set back cannot open the question again.
            await self._writer.submit(
                found.ref.tenant, True, questions.expire, found.ref.tenant, found.id, found.call_id, now
            )
            return replace(found, answer=Answer.AUTO_DENIED)
        return found

    async def _votes(self, row: Row) -> list[Row]:
        return await self._reader.all(row[0], questions.VOTES, row[:2])

    def _approval(self, row: Row, votes: Sequence[Row]) -> Approval:
        return questions.read(row, votes, self._packet(row))

    def _packet(self, row: Row) -> Mapping[str, Any]:
        try:
            packet: dict[str, Any] = orjson.loads(self._secrets.unseal(row[0], row[questions.PACKET]))
        except StoreError:  # erased with its tenant's key: the answer stands, what was shown is gone
            return {}
        return packet
