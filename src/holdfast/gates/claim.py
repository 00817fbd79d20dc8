"""Is the right to act ours?

The last gate. Claim, grants, rates and intent become durable in one transaction
before anything runs, and exactly one of any number of duplicates gets past here.
Policy is asked once more if it changed on the way, or what the caller has seen did (LIF-6).
"""

from holdfast import settlement
from holdfast.model.approval import Need, joined, needed
from holdfast.model.bounds import UNBOUND
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.holders import holders
from holdfast.model.keys import upstream_key
from holdfast.model.messages import ENDED
from holdfast.model.stage import PolicyVersion, SeenLabels
from holdfast.model.verdict import PASS, Pass, Refusal, Verdict
from holdfast.ports import Begun, Denied, Outdated, Ports, Relabelled, Revoked

JUDGED = (PolicyVersion, SeenLabels)
TRIES = 3
"""A key freed between our look and our claim is tried again; more than this is a storm."""


async def claim(call: Call, ports: Ports) -> Verdict:
    if call.cancelled:
        return Refusal(Code.CANCELLED, "cancelled before anything ran")
    bounds = call.principal.bounds
    if bounds is not UNBOUND and ports.clock.now() >= bounds.until:
        return Refusal(Code.PERMISSION_DENIED, ENDED)
    again = False
    for _ in range(TRIES):
        if again or call.decision.version != ports.policy.version:
            changed = await _judged_again(call, ports, anew=again)
            if changed is not None:
                return changed
        _stage_judged(call, ports)
        result = await ports.ledger.begin(call)
        if isinstance(result, Relabelled):
            again, call.labels = True, None
            continue
        if isinstance(result, Outdated) and ports.promotion is not None:
            await ports.promotion.follow()
            continue
        if isinstance(result, Begun):
            call.operation = result.operation
            if result.operation is not None:
                call.id = result.operation.call_id
                call.upstream_key = upstream_key(result.operation.ref)
            return PASS
        if isinstance(result, Revoked):
            call.alarms.append("it rested on something that was revoked while it was on its way")
        if isinstance(result, Denied) and result.code is Code.APPROVAL_DENIED:
            call.alarms.append(result.message)
        if isinstance(result, Denied):
            return Refusal(result.code, result.message, retry_after_ms=result.retry_after_ms)
        verdict = await settlement.answer(call, result.operation, ports)
        if not isinstance(verdict, Pass):
            return verdict
    return Refusal(Code.KEY_IN_USE, "others keep taking this key; wait, then retry", retry_after_ms=1_000)


def _stage_judged(call: Call, ports: Ports) -> None:
    """What the transaction of the claim compares with what holds in the store then; DEC-5."""
    if call.staged:
        call.staged = [one for one in call.staged if not isinstance(one[1], JUDGED)]
    if ports.promotion is not None and not call.principal.system:
        call.stage("policy", PolicyVersion(ports.promotion.seen))
    if call.labels is not None:
        call.stage("policy", SeenLabels(holders(call.proposal), call.labels))


async def _judged_again(call: Call, ports: Ports, *, anew: bool) -> Refusal | None:
    if call.principal.system:
        return None
    before, now = call.decision, await ports.judged(call)
    if not now.allow:
        call.decision = now
        what = "what was read meanwhile forbids" if anew else "policy changed and no longer allows"
        return Refusal(Code.POLICY_VIOLATION, f"{what} this call: {'; '.join(now.reasons)}")
    least = call.tool.contract.security.approval_floor
    had, needs = needed(least, before), needed(least, now)
    if joined(had, needs) != had:
        call.alarms.append(f"the need for approval rose from {_told(had)} to {_told(needs)} in mid-flow")
        return Refusal(
            Code.POLICY_VIOLATION, "policy changed and now needs more approval; propose the call again"
        )
    call.decision = now
    return None


def _told(need: Need) -> str:
    return ", ".join(f"{count} x {role}" for role, count in sorted(need.items())) or "nobody"
