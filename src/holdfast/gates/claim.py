"""Is the right to act ours?

The last gate. Claim, grants, rates and intent become durable in one transaction
before anything runs, and exactly one of any number of duplicates gets past here.
Policy is asked once more if it changed on the way, or what the caller has seen did (LIF-6).
Whoever changes the same is waited for while there is time, and whoever has changed it since
it was looked at is a reason to look again (EXE-7).
"""

from holdfast import settlement
from holdfast.model.approval import Need, joined, needed
from holdfast.model.bounds import UNBOUND
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.holders import holders
from holdfast.model.keys import upstream_key
from holdfast.model.locks import Locks, locked
from holdfast.model.messages import CHANGING, ENDED
from holdfast.model.operation import Operation
from holdfast.model.stage import Lock, PolicyVersion, SeenLabels
from holdfast.model.verdict import PASS, Pass, Refusal, Verdict, Waited
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Conflicting, Denied, Outdated, Ports, Relabelled, Revoked

JUDGED = (PolicyVersion, SeenLabels)
TRIES = 3
"""A key freed between our look and our claim is tried again; more than this is a storm."""
LOOK_S = 1.0
"""How long whoever waits for another call goes without a look at its own: it may have been cancelled."""
SPARED = 0.1
"""Part of its time that a call keeps for itself: one that begins at its deadline ends in the unknown."""


async def claim(call: Call, ports: Ports) -> Verdict:
    if call.cancelled:
        return Refusal(Code.CANCELLED, "cancelled before anything ran")
    bounds = call.principal.bounds
    if bounds is not UNBOUND and ports.clock.now() >= bounds.until:
        return Refusal(Code.PERMISSION_DENIED, ENDED)
    if call.tool.locks is not None and call.ref is not None:
        lock = _stage_lock(call, call.tool.locks, ports)
        if ports.line and lock is not None and _is_behind(call, lock, ports):
            return await _waited(call, Conflicting("claim", Code.CONFLICT, CHANGING, 1_000, "", ""), ports)
    if ports.capabilities and call.writes:
        _stage_capability(call, ports)
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
        if isinstance(result, Conflicting):
            return await _waited(call, result, ports)
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


def _stage_capability(call: Call, ports: Ports) -> None:
    """Whatever others could do in its stead, they must not have done under this key; EXE-4."""
    others = ports.capabilities.get(call.tool.contract.tool)
    if others is not None:
        call.stage("claim", others)


def _stage_judged(call: Call, ports: Ports) -> None:
    """What the transaction of the claim compares with what holds in the store then; DEC-5."""
    if call.staged:
        call.staged = [one for one in call.staged if not isinstance(one[1], JUDGED)]
    if ports.promotion is not None and not call.principal.system:
        call.stage("policy", PolicyVersion(ports.promotion.seen))
    if call.labels is not None:
        call.stage("policy", SeenLabels(holders(call.proposal), call.labels))


# --- others who change the same ----------------------------------------------------------------


def _stage_lock(call: Call, locks: Locks, ports: Ports) -> Lock | None:
    found = locks.of(call.arguments)
    if not found:
        return None
    resources = locked(ports.secrets, call.principal.tenant, found)
    lock = Lock(resources, call.proposal.part_of, call.changed)
    call.stage("claim", lock)
    return lock


def _is_behind(call: Call, lock: Lock, ports: Ports) -> bool:
    """Nobody jumps the line: who wants a whole kind would wait for ever for those who take one part each.

    But what is a part of another call must not wait for those who wait for that.
    """
    return not lock.within and ports.line.has_before(call.nonce, call.principal.tenant, lock)


async def _waited(call: Call, met: Conflicting, ports: Ports) -> Refusal:
    """`Waited` once it is worth a try again; a conflict when there is no more time for one.

    Who has waited keeps its place in the line while it is judged anew.
    """
    found: Refusal | None = None
    locks = [stage for _, stage in call.staged if isinstance(stage, Lock)]
    lined_up = met.gate == "claim"  # else somebody is at work in a session at the upstream, which has no line
    try:
        if not lined_up or ports.line.join(call.nonce, call.principal.tenant, locks[0]):
            found = await _until_free(call, met, ports)
        else:
            found = await _until_next(call, met, ports)
        return found
    finally:
        if not isinstance(found, Waited):
            ports.line.leave(call.nonce)


async def _until_next(call: Call, met: Conflicting, ports: Ports) -> Refusal:
    """Whoever was in the way then is not any more when its turn has come."""
    while (left := _left(call, ports)) > 0 and not call.cancelled:
        if await ports.line.stand(call.nonce, ports.clock.until, min(left, LOOK_S)):
            return Waited(met.code, met.message)
    return _given_up(call, await ports.ledger.find_call(call.principal.tenant, met.call_id), met)


async def _until_free(call: Call, met: Conflicting, ports: Ports) -> Refusal:
    holder, first = await ports.ledger.find_call(call.principal.tenant, met.call_id), True
    while (left := _left(call, ports)) > 0 and not call.cancelled:
        if holder is None or holder.nonce != met.nonce or not _is_at_it(holder):
            if first and met.call_id:  # else its end let go of it, or it was gone before
                await _let_go(holder, met, call, ports)
            return Waited(met.code, met.message)
        if not holder.state.running:  # nobody tells when that is over
            await ports.clock.sleep(min(left, LOOK_S))
            holder, first = await ports.ledger.find_call(call.principal.tenant, met.call_id), False
            continue
        holder, first = await ports.ledger.wait(holder, min(left, LOOK_S)), False
    return _given_up(call, holder, met)


def _left(call: Call, ports: Ports) -> float:
    """How long it may still wait."""
    return call.deadline - SPARED * (call.deadline - call.started) - ports.clock.monotonic()


def _is_at_it(holder: Operation) -> bool:
    """Running; or unknown, and a function is still at work on it, or (nobody owns it) a job upstream."""
    if holder.state.running:
        return not holder.orphaned
    working = holder.owner_alive and not holder.lease_passed
    return holder.state is State.UNKNOWN and (not holder.owner or working)


async def _let_go(holder: Operation | None, met: Conflicting, call: Call, ports: Ports) -> None:
    """Of what a dead worker locked."""
    if holder is not None and holder.orphaned and holder.nonce == met.nonce:
        await settlement.give_up(holder, ports)
    else:
        await ports.ledger.unlock(call.principal.tenant, met.call_id, met.nonce)


def _given_up(call: Call, holder: Operation | None, met: Conflicting) -> Refusal:
    """The other call is named only to those who may look at it."""
    if call.cancelled:
        return Refusal(Code.CANCELLED, "cancelled before anything ran")
    by, text = call.principal, met.message
    own = holder is not None and holder.ref.principal == by.id and by.bounds is UNBOUND
    if holder is not None and _is_at_it(holder) and (own or "operator" in by.roles):
        text = (
            f"call {holder.call_id!r} of {holder.ref.tool!r} is changing the same ({holder.state.value}); "
            "look what it is like now, then call again"
        )
    return Refusal(met.code, text, retry_after_ms=met.retry_after_ms)


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
