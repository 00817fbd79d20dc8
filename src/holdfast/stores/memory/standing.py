"""Approvals that cover more than one call, in memory."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.model.approval import Answer, Approval
from holdfast.model.stage import UseRule, UseStep
from holdfast.model.standing import Plan, Rule, Step
from holdfast.model.vocabulary import State
from holdfast.ports import Clock, Denied
from holdfast.records.body import act_body
from holdfast.stores.denial import standing_denied, why_rule_ended, why_step_gone
from holdfast.stores.memory.shelf import Entry, Shelf


class MemoryRules:
    def __init__(self, shelf: Shelf, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock

    async def add(self, rule: Rule) -> None:
        self._shelf.rules[rule.tenant, rule.id] = rule
        body = act_body(
            rule.at, "propose_rule", rule.made_by, id=rule.id, tool=rule.tool, approval_id=rule.approval_id
        )
        self._shelf.record(rule.tenant, "", "control", rule.at, body)

    async def get(self, tenant: str, rule_id: str) -> Rule | None:
        found = self._shelf.rules.get((tenant, rule_id))
        return None if found is None else self._seen(found)

    async def list(self, tenant: str) -> Sequence[Rule]:
        found = [self._seen(rule) for rule in self._shelf.rules.values() if rule.tenant == tenant]
        return sorted(found, key=lambda rule: (-rule.at, rule.id))

    async def standing(self, tenant: str, tool: str) -> Sequence[Rule]:
        now = self._clock.now()
        live = [rule for rule in await self.list(tenant) if rule.tool == tool and rule.state(now) == "live"]
        return sorted(live, key=lambda rule: (rule.at, rule.id))

    async def revoke(self, tenant: str, rule_id: str, by: str, note: str) -> bool:
        found, now = self._shelf.rules.get((tenant, rule_id)), self._clock.now()
        if found is None or found.ended_at is not None:
            return False
        self._shelf.rules[tenant, rule_id] = replace(found, ended_at=now, ended_by=by)
        body = act_body(now, "revoke_rule", by, id=rule_id, note=note)
        self._shelf.record(tenant, "", "control", now, body)
        return True

    async def history(self, tenant: str, since: float, most: int = 10**9) -> Sequence[Approval]:
        every = [asked.approval for (owner, _), asked in self._shelf.approvals.items() if owner == tenant]
        found = [one for one in every if one.created_at >= since and one.answer is not Answer.PENDING]
        return sorted(found, key=lambda one: (one.created_at, one.id))[-most:]

    def _seen(self, rule: Rule) -> Rule:
        asked = self._shelf.approvals[rule.tenant, rule.approval_id].approval
        return replace(rule, answer=asked.answer, votes=asked.votes)


class MemoryPlans:
    def __init__(self, shelf: Shelf, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock

    async def add(self, plan: Plan) -> None:
        self._shelf.plans[plan.tenant, plan.id] = plan
        user = plan.principal.partition("/")[0]
        body = act_body(
            plan.at, "propose_plan", user, id=plan.id, steps=len(plan.steps), approval_id=plan.approval_id
        )
        self._shelf.record(plan.tenant, "", "control", plan.at, body)

    async def get(self, tenant: str, plan_id: str) -> Plan | None:
        found = self._shelf.plans.get((tenant, plan_id))
        return None if found is None else self._seen(found)

    async def list(self, tenant: str) -> Sequence[Plan]:
        found = [self._seen(plan) for plan in self._shelf.plans.values() if plan.tenant == tenant]
        return sorted(found, key=lambda plan: (-plan.at, plan.id))

    async def standing(self, tenant: str, principal: str) -> Sequence[Plan]:
        now = self._clock.now()
        mine = [plan for plan in await self.list(tenant) if plan.principal == principal]
        live = [plan for plan in mine if plan.state(now) in ("live", "used up")]
        return sorted(live, key=lambda plan: (plan.at, plan.id))

    async def revoke(self, tenant: str, plan_id: str, by: str, note: str) -> bool:
        found, now = self._shelf.plans.get((tenant, plan_id)), self._clock.now()
        if found is None or found.ended_at is not None:
            return False
        self._shelf.plans[tenant, plan_id] = replace(found, ended_at=now, ended_by=by)
        body = act_body(now, "revoke_plan", by, id=plan_id, note=note)
        self._shelf.record(tenant, "", "control", now, body)
        return True

    def _seen(self, plan: Plan) -> Plan:
        asked = self._shelf.approvals[plan.tenant, plan.approval_id].approval
        return replace(plan, answer=asked.answer, votes=asked.votes, need=asked.need)


# --- what a claim uses, and gets back -----------------------------------------------------


def refusal(shelf: Shelf, gate: str, stage: UseRule | UseStep, tenant: str, now: float) -> Denied | None:
    if isinstance(stage, UseRule):
        rule = shelf.rules[tenant, stage.rule_id]
        left = rule.most is None or rule.used < rule.most
        if rule.ended_by is None and rule.expires_at > now and left:
            return None
        why = why_rule_ended(rule.ended_by, rule.expires_at <= now)
        return standing_denied(gate, f"rule '{rule.id}'", why)
    plan = shelf.plans[tenant, stage.plan_id]
    free = _step(plan, stage.number).used_nonce is None
    if plan.ended_by is None and plan.expires_at > now and free:
        return None
    return standing_denied(gate, f"plan '{plan.id}'", why_step_gone(plan.ended_by, plan.expires_at <= now))


def use(shelf: Shelf, stage: UseRule | UseStep, tenant: str, nonce: str, call_id: str) -> None:
    if isinstance(stage, UseRule):
        _count(shelf, tenant, stage.rule_id, 1)
    else:
        _mark(shelf, tenant, stage.plan_id, stage.number, nonce, call_id)


def ended(shelf: Shelf, entry: Entry, state: State) -> None:
    """Give back what an attempt without effect rests on; take it again where it had one after all."""
    name, _, number = (entry.approval_id or "").partition("#")
    tenant, nonce = entry.operation.ref.tenant, entry.operation.nonce
    if (tenant, name) in shelf.rules:
        given_back = entry.given_back
        if state is State.NO_EFFECT and not given_back:
            _count(shelf, tenant, name, -1)
        elif state is State.COMMITTED and given_back:
            _count(shelf, tenant, name, 1)
        entry.given_back = state is State.NO_EFFECT
    elif (tenant, name) in shelf.plans:
        used = _step(shelf.plans[tenant, name], int(number)).used_nonce
        if state is State.NO_EFFECT and used == nonce:
            _mark(shelf, tenant, name, int(number), None, None)
        elif state is State.COMMITTED and used is None:
            _mark(shelf, tenant, name, int(number), nonce, entry.operation.call_id)


def _count(shelf: Shelf, tenant: str, rule_id: str, by: int) -> None:
    rule = shelf.rules[tenant, rule_id]
    shelf.rules[tenant, rule_id] = replace(rule, used=max(rule.used + by, 0))


def _step(plan: Plan, number: int) -> Step:
    return next(step for step in plan.steps if step.number == number)


def _mark(
    shelf: Shelf, tenant: str, plan_id: str, number: int, nonce: str | None, call_id: str | None
) -> None:
    plan = shelf.plans[tenant, plan_id]
    steps = tuple(
        replace(step, used_nonce=nonce, call_id=call_id) if step.number == number else step
        for step in plan.steps
    )
    shelf.plans[tenant, plan_id] = replace(plan, steps=steps)
