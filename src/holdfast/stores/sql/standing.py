"""Approvals that cover more than one call: rules that stand, and plans. Nothing of it is kept in memory: a
claim looks at them in its own transaction, so what is revoked here is revoked everywhere.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import orjson

from holdfast.model.approval import Answer, Approval, Vote
from holdfast.model.errors import StoreError
from holdfast.model.standing import Plan, Rule, Step
from holdfast.ports import Clock, Secrets
from holdfast.records.body import act_body
from holdfast.stores.sql import questions
from holdfast.stores.sql.engine import Reader, Row, Transaction, Values, Writer

_RULES = (
    "SELECT r.tenant, r.id, r.tool, r.body, r.approval_id, r.made_by, r.note, r.at, r.expires_at, r.most,"
    " r.used, r.ended_at, r.ended_by, a.answer FROM standing_rule r"
    " JOIN approval a ON a.tenant = r.tenant AND a.id = r.approval_id"
)
_ONE_RULE = f"{_RULES} WHERE r.tenant = ? AND r.id = ?"
_ALL_RULES = f"{_RULES} WHERE r.tenant = ? ORDER BY r.at DESC, r.id"
_STANDING_RULES = (
    f"{_RULES} WHERE r.tenant = ? AND r.tool = ? AND r.ended_at IS NULL AND r.expires_at > ?"
    " AND (r.most IS NULL OR r.used < r.most) AND a.answer = 'APPROVED' ORDER BY r.at, r.id"
)
_ADD_RULE = (
    "INSERT INTO standing_rule"
    " (tenant, id, tool, body, approval_id, made_by, note, at, expires_at, most, used)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
)
_END = "UPDATE {} SET ended_at = ?, ended_by = ? WHERE tenant = ? AND id = ? AND ended_at IS NULL"
_END_RULE, _END_PLAN = _END.format("standing_rule"), _END.format("plan")
_PLANS = (
    "SELECT p.tenant, p.id, p.principal, p.approval_id, p.at, p.expires_at, p.ended_at, p.ended_by, a.answer,"
    " a.need FROM plan p JOIN approval a ON a.tenant = p.tenant AND a.id = p.approval_id"
)
_ONE_PLAN = f"{_PLANS} WHERE p.tenant = ? AND p.id = ?"
_ALL_PLANS = f"{_PLANS} WHERE p.tenant = ? ORDER BY p.at DESC, p.id"
_STANDING_PLANS = (
    f"{_PLANS} WHERE p.tenant = ? AND p.principal = ? AND p.ended_at IS NULL AND p.expires_at > ?"
    " AND a.answer = 'APPROVED' ORDER BY p.at, p.id"
)
_STEPS = (
    "SELECT number, tool, contract_digest, fingerprint, body, cost, used_nonce, call_id FROM plan_step"
    " WHERE tenant = ? AND plan = ? ORDER BY number"
)
_ADD_PLAN = "INSERT INTO plan (tenant, id, principal, approval_id, at, expires_at) VALUES (?, ?, ?, ?, ?, ?)"
_ADD_STEP = (
    "INSERT INTO plan_step (tenant, plan, number, tool, contract_digest, fingerprint, body, cost)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


class _Kept:
    """What rules and plans have in common: a question with votes, and what is sealed."""

    def __init__(self, writer: Writer, reader: Reader, secrets: Secrets, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._secrets = secrets
        self._clock = clock

    async def _votes(self, tenant: str, approval_id: str) -> tuple[Vote, ...]:
        rows = await self._reader.all(tenant, questions.VOTES, (tenant, approval_id))
        return questions.votes_of(rows)

    def _opened(self, tenant: str, sealed: bytes) -> Any:
        """None once the tenant's key is gone: then it covers nothing."""
        try:
            return orjson.loads(self._secrets.unseal(tenant, sealed))
        except StoreError:
            return None

    async def _revoke(self, statement: str, act: str, tenant: str, name: str, by: str, note: str) -> bool:
        now = self._clock.now()
        body = act_body(now, act, by, id=name, note=note)
        return await self._writer.submit(tenant, True, _end, statement, tenant, name, by, now, body)


class SqlRules(_Kept):
    async def add(self, rule: Rule) -> None:
        said = {
            "upstream": rule.upstream,
            "contract_digest": rule.contract_digest,
            "principals": rule.principals,
            "arguments": rule.arguments,
            "need": dict(rule.need),
        }
        await self._secrets.ready(rule.tenant)
        sealed = self._secrets.seal(rule.tenant, orjson.dumps(said))
        life = (rule.made_by, rule.note, rule.at, rule.expires_at, rule.most)
        row = (rule.tenant, rule.id, rule.tool, sealed, rule.approval_id, *life)
        body = act_body(
            rule.at, "propose_rule", rule.made_by, id=rule.id, tool=rule.tool, approval_id=rule.approval_id
        )
        await self._writer.submit(rule.tenant, True, _add, ((_ADD_RULE, row),), rule.tenant, rule.at, body)

    async def get(self, tenant: str, rule_id: str) -> Rule | None:
        return next(iter(await self._read(tenant, _ONE_RULE, (tenant, rule_id))), None)

    async def list(self, tenant: str) -> Sequence[Rule]:
        return await self._read(tenant, _ALL_RULES, (tenant,))

    async def standing(self, tenant: str, tool: str) -> Sequence[Rule]:
        return await self._read(tenant, _STANDING_RULES, (tenant, tool, self._clock.now()))

    async def revoke(self, tenant: str, rule_id: str, by: str, note: str) -> bool:
        return await self._revoke(_END_RULE, "revoke_rule", tenant, rule_id, by, note)

    async def history(self, tenant: str, since: float, most: int = 10**9) -> Sequence[Approval]:
        rows = await self._reader.slow(tenant, questions.ANSWERED, (tenant, tenant, since, most))
        votes: dict[str, list[Row]] = defaultdict(list)
        which = (tenant, tenant, since, most)
        for approval_id, *vote in await self._reader.slow(tenant, questions.ANSWERED_VOTES, which):
            votes[approval_id].append(tuple(vote))
        found = []
        for row in rows:
            packet = self._opened(tenant, row[questions.PACKET]) or {}
            found.append(questions.read(row, votes[row[1]], packet))
        return found

    async def _read(self, tenant: str, statement: str, values: Values) -> Sequence[Rule]:
        found = []
        for row in await self._reader.all(tenant, statement, values):
            said = self._opened(tenant, row[3])
            if said is not None:
                found.append(_rule(row, said, await self._votes(tenant, row[4])))
        return found


class SqlPlans(_Kept):
    async def add(self, plan: Plan) -> None:
        await self._secrets.ready(plan.tenant)
        whole = (plan.tenant, plan.id, plan.principal, plan.approval_id, plan.at, plan.expires_at)
        steps = ((_ADD_STEP, self._step_row(plan, step)) for step in plan.steps)
        user = plan.principal.partition("/")[0]
        body = act_body(
            plan.at, "propose_plan", user, id=plan.id, steps=len(plan.steps), approval_id=plan.approval_id
        )
        rows = ((_ADD_PLAN, whole), *steps)
        await self._writer.submit(plan.tenant, True, _add, rows, plan.tenant, plan.at, body)

    async def get(self, tenant: str, plan_id: str) -> Plan | None:
        return next(iter(await self._read(tenant, _ONE_PLAN, (tenant, plan_id))), None)

    async def list(self, tenant: str) -> Sequence[Plan]:
        return await self._read(tenant, _ALL_PLANS, (tenant,))

    async def standing(self, tenant: str, principal: str) -> Sequence[Plan]:
        return await self._read(tenant, _STANDING_PLANS, (tenant, principal, self._clock.now()))

    async def revoke(self, tenant: str, plan_id: str, by: str, note: str) -> bool:
        return await self._revoke(_END_PLAN, "revoke_plan", tenant, plan_id, by, note)

    def _step_row(self, plan: Plan, step: Step) -> tuple[object, ...]:
        sealed = None
        if step.arguments is not None:
            sealed = self._secrets.seal(plan.tenant, orjson.dumps(step.arguments))
        bound = (step.tool, step.contract_digest, step.fingerprint)
        return (plan.tenant, plan.id, step.number, *bound, sealed, step.cost)

    async def _read(self, tenant: str, statement: str, values: Values) -> Sequence[Plan]:
        found = []
        for row in await self._reader.all(tenant, statement, values):
            steps = await self._reader.all(tenant, _STEPS, (tenant, row[1]))
            kept = tuple(step for one in steps if (step := self._step(tenant, one)) is not None)
            found.append(_plan(row, kept, await self._votes(tenant, row[3])))
        return found

    def _step(self, tenant: str, row: Row) -> Step | None:
        number, tool, contract_digest, fingerprint, sealed, cost, used_nonce, call_id = row
        arguments = None if sealed is None else self._opened(tenant, sealed)
        if sealed is not None and arguments is None:
            return None
        return Step(
            number=number,
            tool=tool,
            contract_digest=contract_digest,
            fingerprint=fingerprint,
            arguments=arguments,
            cost=cost,
            used_nonce=used_nonce,
            call_id=call_id,
        )


async def _add(
    transaction: Transaction, rows: Sequence[tuple[str, Values]], tenant: str, at: float, body: str
) -> None:
    for statement, values in rows:
        await transaction.run(statement, values)
    transaction.record(tenant, "", "control", at, body)


async def _end(
    transaction: Transaction, statement: str, tenant: str, name: str, by: str, now: float, body: str
) -> bool:
    if await transaction.run(statement, (now, by, tenant, name)) == 0:
        return False
    transaction.record(tenant, "", "control", now, body)
    return True


def _rule(row: Row, said: dict[str, Any], votes: tuple[Vote, ...]) -> Rule:
    tenant, rule_id, tool, _, approval_id, made_by, note, at, expires_at, most, used = row[:11]
    ended_at, ended_by, answer = row[11:]
    return Rule(
        tenant=tenant,
        id=rule_id,
        tool=tool,
        **said,
        made_by=made_by,
        note=note,
        at=at,
        expires_at=expires_at,
        approval_id=approval_id,
        most=most,
        used=used,
        ended_at=ended_at,
        ended_by=ended_by,
        answer=Answer(answer),
        votes=votes,
    )


def _plan(row: Row, steps: tuple[Step, ...], votes: tuple[Vote, ...]) -> Plan:
    tenant, plan_id, principal, approval_id, at, expires_at, ended_at, ended_by, answer, need = row
    return Plan(
        tenant=tenant,
        id=plan_id,
        principal=principal,
        at=at,
        expires_at=expires_at,
        approval_id=approval_id,
        steps=steps,
        need=orjson.loads(need),
        ended_at=ended_at,
        ended_by=ended_by,
        answer=Answer(answer),
        votes=votes,
    )
