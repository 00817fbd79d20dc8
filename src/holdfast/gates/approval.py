"""Has a person said yes, where one must?

An approved call is not resumed: it is proposed again and lives its whole life anew,
so policy and state are judged as they are now. The grant is consumed with the claim.
Whatever does not fit what was approved is refused and is a security event (APR-4).
"""

from typing import Any

from holdfast.model import grant
from holdfast.model.approval import ESCALATED, Answer, Approval, Chain, Need, joined, needed, stand_ins
from holdfast.model.call import Call
from holdfast.model.derive import join
from holdfast.model.errors import Code, TooManyAsks
from holdfast.model.observation import Status
from holdfast.model.packet import SEEN_BY_APPROVERS, packet
from holdfast.model.restored import REFUSED, RESTORED
from holdfast.model.stage import UseGrant, UseRule, UseStep
from holdfast.model.standing import Plan, granted, step_for, unmet, why_not
from holdfast.model.verdict import PASS, Hold, Refusal, Verdict
from holdfast.model.vocabulary import State
from holdfast.ports import Ports


async def approval(call: Call, ports: Ports) -> Verdict:
    if call.principal.system:
        return PASS
    if call.proposal.approval_token is not None:
        forged = _token(call, call.proposal.approval_token, ports)
        if forged is not None:
            return forged
    need = needed(call.tool.contract.security.approval_floor, call.decision)
    if call.proposal.fallback is not None or call.earlier is not None:
        need = await _escalated(call, need, ports)
    if not need:
        return PASS
    if call.ref is None:
        return Refusal(
            Code.KEY_REQUIRED, "a call that needs approval needs a key, so that the answer finds it"
        )
    found = await ports.approvals.find(call.ref)
    if found is not None:
        return _judge(call, found, need, ports)
    if await _planned(call, need, ports) or await _ruled(call, need, ports):
        return await unasked(ports) or PASS
    missing = lacking(call, need, ports) or await unasked(ports)
    return missing or await _ask(call, need, ports)


async def _escalated(call: Call, need: dict[str, int], ports: Ports) -> dict[str, int]:
    """Where no tool could answer a person is asked, and then has the word, by whatever way the call comes
    back; EXE-4. Who needs approval anyway finds that question by itself.
    """
    at, earlier = call.proposal.fallback, call.earlier
    if at is not None and at.escalated:
        return joined(need, ESCALATED)
    if need or earlier is None:
        return need
    if earlier.state is not State.HELD and (at is None or earlier.state is not State.NO_EFFECT):
        return need
    found = await ports.approvals.find(earlier.ref)
    if found is None or "escalation" not in found.packet:
        return need
    answered = found.answer is Answer.APPROVED and found.expires_at > ports.clock.now()
    return joined(need, ESCALATED) if earlier.state is State.HELD or answered else need


async def unasked(ports: Ports) -> Refusal | None:
    """A store that was put back may have been asked this before, and does not know."""
    if RESTORED in await ports.controls.halts():
        return Refusal(Code.TOOL_UNAVAILABLE, REFUSED)
    return None


async def _ask(call: Call, need: Need, ports: Ports) -> Verdict:
    floor = join(call.tool.contract.security.approval_floor, call.decision.floor)
    seen = await evidence(call, ports)
    shown = packet(call, need, floor, seen, ports.clock.now(), ports.approval_s)
    try:
        asked = await ports.approvals.ask(call, need, shown, call.proposal.release or ports.release)
    except TooManyAsks as error:
        return Refusal(Code.RATE_LIMITED, str(error), retry_after_ms=60_000)
    return _hold(asked, ports)


# --- an answer that is there --------------------------------------------------------------


def _judge(call: Call, found: Approval, need: Need, ports: Ports) -> Verdict:
    if found.answer in (Answer.DENIED, Answer.AUTO_DENIED):
        why = "nobody answered in time" if found.answer is Answer.AUTO_DENIED else "a person said no"
        return Refusal(
            Code.APPROVAL_DENIED, f"approval {found.id!r} was denied: {why}; this key stays denied"
        )
    if found.fingerprint != call.fingerprint or found.contract_digest != call.tool.contract.digest:
        call.alarms.append(f"approval {found.id} is for another call")
        return Refusal(Code.KEY_MISMATCH, f"approval {found.id!r} is for other arguments or another contract")
    if any(found.need.get(role, 0) < count for role, count in need.items()):
        call.alarms.append(f"the need for approval rose after approval {found.id} was asked for")
        return Refusal(
            Code.APPROVAL_DENIED,
            f"more approval is needed now than {found.id!r} asked for; use a new key",
        )
    if found.answer is Answer.PENDING:
        return _hold(found, ports)
    return _usable(call, found, ports)


def _usable(call: Call, found: Approval, ports: Ports) -> Verdict:
    if found.expires_at <= ports.clock.now():
        call.alarms.append(f"approval {found.id} was used after it had expired")
        return Refusal(Code.APPROVAL_DENIED, f"approval {found.id!r} has expired; ask again with a new key")
    gone = [v for v in found.votes if v.approve and not _still_holds(call, v.person, v.held, ports)]
    if gone:
        who = ", ".join(f"{vote.person!r} no longer holds {vote.held!r}" for vote in gone)
        call.alarms.append(f"approval {found.id}: {who}")
        return Refusal(
            Code.APPROVAL_DENIED, f"approval {found.id!r} no longer stands: {who}; ask again with a new key"
        )
    call.stage("approval", UseGrant(found.id))
    call.reviewed = ports.review_cost * len(found.votes)
    return PASS


def _still_holds(call: Call, person: str, role: str, ports: Ports) -> bool:
    """A person's own consent needs no role but being that person; identity saw to it."""
    if role == "user":
        return person == call.principal.user
    return person in ports.people.holders(call.principal.tenant, role)


def _token(call: Call, presented: str, ports: Ports) -> Refusal | None:
    """A presented token proves nothing by itself, but one that is wrong is somebody trying."""
    why = grant.wrong(ports.secrets, call, presented, ports.clock.now())
    if why is None:
        return None
    call.alarms.append(f"an approval token was refused: {why}")
    return Refusal(Code.APPROVAL_DENIED, f"the approval token cannot be used: {why}")


# --- an answer that covers more than this call ----------------------------------------------


async def _planned(call: Call, need: Need, ports: Ports) -> bool:
    """Whether it is an unused step of a plan that people approved; APR-8."""
    if ports.plans is None:
        return False
    name, principal = call.proposal.plan, call.principal
    plans = await ports.plans.standing(principal.tenant, principal.id)
    for plan in plans:
        if name in (None, plan.id) and _is_step(call, plan, need, ports):
            return True
    if name is not None and all(plan.id != name for plan in plans):
        call.warnings.append(f"no plan {name!r} of yours stands: not approved, ended or not known")
    return False


def _is_step(call: Call, plan: Plan, need: Need, ports: Ports) -> bool:
    """Drift is asked about alone: what does not fit takes nothing from the rest of the plan."""
    step = step_for(plan, call)
    why = ["no unused step of it is this call"] if step is None else [*unmet(plan, call, need, ports.people)]
    if step is not None and not why:
        call.stage("approval", UseStep(plan.id, step.number))
        call.grant = granted(f"plan:{plan.id}#{step.number}", plan)
        return True
    if call.proposal.plan == plan.id:
        call.warnings.append(f"plan {plan.id!r} does not cover this call: {'; '.join(why)}")
    return False


async def _ruled(call: Call, need: Need, ports: Ports) -> bool:
    """Whether a rule that stands covers it; APR-9."""
    if ports.rules is None:
        return False
    for rule in await ports.rules.standing(call.principal.tenant, call.tool.contract.tool):
        if not why_not(rule, call, need, ports.people):
            call.stage("approval", UseRule(rule.id))
            call.grant = granted(f"rule:{rule.id}", rule)
            return True
    return False


# --- a question that is to be asked -------------------------------------------------------


def lacking(call: Call, need: Need, ports: Ports) -> Refusal | None:
    """Better a clear no than a question nobody here could answer."""
    for role, count in need.items():
        holders = _holders(call, role, ports.chain, ports)
        if len(holders) < count:
            return Refusal(
                Code.APPROVAL_DENIED,
                f"this call needs {count} x {role!r} and only {len(holders)} other people here hold it; "
                "add them under 'auth.people' in the configuration",
                next_action="ask_operator_to_configure_people",
            )
    return None


def _holders(call: Call, role: str, chain: Chain, ports: Ports) -> frozenset[str]:
    """Who could answer, at once or after every escalation."""
    roles = (role, *stand_ins(role, chain, len(chain)))
    holders = frozenset(n for one in roles for n in ports.people.holders(call.principal.tenant, one))
    return holders if role == "user" else holders - {call.principal.user}


async def evidence(call: Call, ports: Ports) -> dict[str, Any]:
    """The target before, and as it would be after: read now, and frozen."""
    state, look = call.tool.state, call.tool.preview
    before = None
    if state is not None:
        before = _seen(state.read.tool, call.before, ports)
    if look is None:
        return {"before": before, "after": None, "evidence": "the tool cannot predict its effect"}
    arguments = look.arguments.fill({"args": call.arguments})
    seen = await ports.reader.read(call.principal.tenant, look.tool, arguments)
    if seen.status is not Status.DONE:
        return {"before": before, "after": None, "evidence": f"{look.tool!r} could not be read"}
    return {"before": before, "after": _seen(look.tool, seen.data, ports), "evidence": "read when asked"}


def _seen(tool: str, data: Any, ports: Ports) -> dict[str, Any]:
    """What a tool answered, without what no approver may see; CON-6."""
    listing = ports.catalog.find(tool, None)
    output = None if listing is None else listing.tool.output
    shown = data if output is None else output.sensitivity.redact(data, SEEN_BY_APPROVERS)
    return {"source": tool, "state": shown}


def _hold(asked: Approval, ports: Ports) -> Hold:
    shown = asked.shown(ports.asked_at)
    who = ", ".join(f"{count} x {role}" for role, count in asked.missing.items())
    then = "then the gateway runs it" if asked.release == "gateway" else "then call again with the same key"
    return Hold(shown, f"waiting for {who} to approve {asked.id!r} until {shown.expires_at}; {then}")
