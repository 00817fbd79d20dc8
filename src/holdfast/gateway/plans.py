"""How are calls approved as a whole before the first of them is made? APR-8.

Every step is judged as a preview is: what is refused is told at once, for all of them, and nobody is asked.
What they need together is one question. Each step's call then uses its slice of the answer.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any

from holdfast.approvals.about import about
from holdfast.gates.approval import evidence, lacking, unasked
from holdfast.gates.arguments import arguments
from holdfast.gates.authorize import authorize
from holdfast.gates.policy import policy
from holdfast.gates.resolve import resolve
from holdfast.gates.semantics import semantics
from holdfast.gateway.operators import operates
from holdfast.gateway.plan_packet import packet_of
from holdfast.gateway.rules import UNSEEN
from holdfast.lifecycle import admit, receive
from holdfast.model import defaults, placeholder
from holdfast.model.approval import Need, joined, needed
from holdfast.model.call import Call, Principal, Proposal
from holdfast.model.constraint import Constraint, reveals
from holdfast.model.errors import Code, HoldfastError, NotFound, TooManyAsks
from holdfast.model.fields import FieldError
from holdfast.model.observation import ApprovalRef
from holdfast.model.standing import PLAN, Plan, Step, why_not
from holdfast.model.verdict import Refusal
from holdfast.model.vocabulary import Environment
from holdfast.ports import Gate, Plans, Ports

JUDGES: tuple[Gate, ...] = (resolve, authorize, arguments, semantics, policy)
"""What can be said of a call before the world is as it will be then."""

LookFor = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One call an agent wants to make."""

    tool: str
    arguments: Mapping[str, Any]
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What is said of one step."""

    number: int
    tool: str
    need: Mapping[str, int]
    """Whom to ask about it; nobody where a rule stands for it."""
    rule: str | None = None
    code: Code | None = None
    message: str | None = None
    field_errors: tuple[FieldError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What came of a plan that was proposed."""

    status: str
    """`asked`, `refused`, or `unneeded` where no step needs anybody's approval."""
    message: str
    steps: tuple[Judged, ...]
    plan: Plan | None = None
    approval: ApprovalRef | None = None


class PlanDesk:
    def __init__(
        self, plans: Plans, ports: Ports, environment: Environment, look_for: LookFor | None = None
    ) -> None:
        self._plans = plans
        self._ports = ports
        self._environment = environment
        self._look_for = look_for

    async def propose(
        self, by: Principal, steps: Sequence[Wish], task: str | None = None, cost: float | None = None
    ) -> Planned:
        """Judge every step, and ask people once about all of them."""
        if not 0 < len(steps) <= defaults.MOST_STEPS:
            return _refused((), f"a plan has 1 to {defaults.MOST_STEPS} steps, and this one {len(steps)}")
        wait_ms = self._ports.ingress.admit(by)
        if wait_ms is not None:
            return _refused((), f"too many proposals at once; wait {wait_ms} ms")
        calls, judged = await self._judged(by, steps, task)
        if any(one.code is not None for one in judged):
            return _refused(judged, "steps of this plan would be refused; nobody was asked")
        need = joined(*(one.need for one in judged))
        if not need:
            return Planned(status="unneeded", message="no step needs approval; just call them", steps=judged)
        costs = sum(call.tool.contract.runtime.cost.per_call for call in calls)
        if cost is not None and costs > cost:
            return _refused(judged, f"the steps cost {costs:g}, which is more than the {cost:g} you allow")
        return await self._ask(by, tuple(zip(calls, steps, strict=True)), judged, need, task)

    async def get(self, by: Principal, plan_id: str) -> Plan:
        found = await self._plans.get(by.tenant, plan_id)
        if found is None or not self._may_see(by, found):
            raise NotFound(f"no plan {plan_id!r} is yours to see")
        return found

    async def list(self, by: Principal) -> Sequence[Plan]:
        return [plan for plan in await self._plans.list(by.tenant) if self._may_see(by, plan)]

    async def revoke(self, by: Principal, plan_id: str, note: str = "") -> Plan:
        """End a plan at once; what its steps have done is done."""
        found = await self.get(by, plan_id)
        if not await self._plans.revoke(by.tenant, plan_id, by.user, note):
            raise HoldfastError(f"plan {plan_id!r} has ended already")
        return replace(found, ended_at=self._ports.clock.now(), ended_by=by.user)

    def _may_see(self, by: Principal, plan: Plan) -> bool:
        return plan.principal == by.id or operates(by, self._ports.people)

    # --- judging --------------------------------------------------------------------------

    async def _judged(
        self, by: Principal, steps: Sequence[Wish], task: str | None
    ) -> tuple[Sequence[Call], tuple[Judged, ...]]:
        found = [await self._judge(by, number, wish, task) for number, wish in enumerate(steps, 1)]
        return [call for call, _ in found if call is not None], tuple(said for _, said in found)

    async def _judge(
        self, by: Principal, number: int, wish: Wish, task: str | None
    ) -> tuple[Call | None, Judged]:
        read = placeholder.read(wish.arguments)
        if read.faults:
            text = "; ".join(fault.message for fault in read.faults)
            fault = Refusal(Code.STRUCTURAL_VIOLATION, text, read.faults)
            return None, _told(number, wish, fault)
        if self._look_for is not None:
            await self._look_for(wish.tool)
        proposal = Proposal(
            tool=wish.tool,
            arguments=read.example,
            principal=by,
            version=wish.version,
            task=task,
            preview=True,
            environment=self._environment,
        )
        call = receive(proposal, self._ports)
        verdict = await admit(call, self._ports, JUDGES)
        if not isinstance(verdict, Refusal):
            verdict = _reveals(call, read.open) or verdict
        if isinstance(verdict, Refusal):
            return None, _told(number, wish, verdict)
        need = needed(call.tool.contract.security.approval_floor, call.decision)
        rule = None if read.open or not need else await self._ruled(call, need)
        named = call.tool.contract.tool
        return call, Judged(number=number, tool=named, need={} if rule else need, rule=rule)

    async def _ruled(self, call: Call, need: Need) -> str | None:
        """The rule that stands for a step whose arguments are known."""
        if self._ports.rules is None:
            return None
        for rule in await self._ports.rules.standing(call.principal.tenant, call.tool.contract.tool):
            if not why_not(rule, call, need, self._ports.people):
                return rule.id
        return None

    # --- asking ---------------------------------------------------------------------------

    async def _ask(
        self,
        by: Principal,
        steps: Sequence[tuple[Call, Wish]],
        judged: tuple[Judged, ...],
        need: dict[str, int],
        task: str | None,
    ) -> Planned:
        ports, plan_id = self._ports, f"pln_{token_hex(8)}"
        bound = tuple(_step(number, call, wish) for number, (call, wish) in enumerate(steps, 1))
        said = [[one.tool, one.contract_digest, one.fingerprint, one.arguments] for one in bound]
        question = about(PLAN, plan_id, by, said, ports, task)
        missing = lacking(question, need, ports) or await unasked(ports)
        if missing is not None:
            return _refused(judged, missing.message)
        now, life_s = ports.clock.now(), ports.approval_s + defaults.PLAN_GRANT_S
        seen = [await evidence(call, ports) for call, _ in steps]
        packet = packet_of(question, steps, seen, [one.need for one in judged], need, now, life_s, ports)
        try:
            asked = await ports.approvals.ask(question, need, packet)
        except TooManyAsks as error:
            return _refused(judged, str(error))
        plan = Plan(
            tenant=by.tenant,
            id=plan_id,
            principal=by.id,
            at=now,
            expires_at=now + life_s,
            approval_id=asked.id,
            steps=bound,
            need=need,
        )
        await self._plans.add(plan)
        who = ", ".join(f"{count} x {role}" for role, count in need.items())
        text = f"waiting for {who} to approve {asked.id!r}; then call each step once, naming plan {plan_id!r}"
        shown = asked.shown(ports.asked_at)
        return Planned(status="asked", message=text, steps=judged, plan=plan, approval=shown)


def _reveals(call: Call, left_open: Mapping[str, Constraint]) -> Refusal | None:
    """A constraint is shown to people; what of a secret could be in it may not be."""
    for name, constraint in left_open.items():
        if reveals(constraint) and call.tool.input.sensitivity.label((name,)) in UNSEEN:
            text = f"argument '{name}' is shown to nobody; only 'any' or 'longest' may stand there"
            return Refusal(Code.STRUCTURAL_VIOLATION, text)
    return None


def _step(number: int, call: Call, wish: Wish) -> Step:
    left_open = placeholder.read(wish.arguments).open
    bound = None
    if left_open:
        known = {name: {"equals": value} for name, value in call.arguments.items()}
        bound = known | left_open
    return Step(
        number=number,
        tool=call.tool.contract.tool,
        contract_digest=call.tool.contract.digest,
        fingerprint="" if left_open else call.fingerprint,
        arguments=bound,
        cost=call.tool.contract.runtime.cost.per_call or None,
    )


def _told(number: int, wish: Wish, refusal: Refusal) -> Judged:
    return Judged(
        number=number,
        tool=wish.tool.partition("@")[0],
        need={},
        code=refusal.code,
        message=refusal.message,
        field_errors=refusal.field_errors,
    )


def _refused(steps: tuple[Judged, ...], message: str) -> Planned:
    return Planned(status="refused", message=message, steps=steps)
