"""Is there budget and rate left?

Only a peek: what is taken is staged and written with the claim, so a call that goes
no further has used nothing. A budget narrows the call as far as it must: its deadline
to the time that is left, its retries to the tries that are paid for.
"""

from collections.abc import Iterator

from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.limits import (
    NOTHING,
    Amount,
    Bucket,
    Budget,
    Kind,
    Limit,
    Per,
    buckets,
    exhausted,
    micros,
)
from holdfast.model.stage import ReserveBudget, TakeRate
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.model.vocabulary import Effect
from holdfast.ports import Ports

_CRITICAL = Effect.CRITICAL_MUTATION


async def limits(call: Call, ports: Ports) -> Verdict:
    contract = call.tool.contract
    limited = ports.budgets or ports.rates or contract.runtime.rate_limit is not None
    if not limited and contract.effect is not _CRITICAL:
        return PASS
    if not call.principal.system:  # the gateway's own readings are paid for by nobody
        refusal = _ungranted(call, ports.budgets) or await _budgets(call, ports)
        if refusal is not None:
            return refusal
    for take in _rates(call, ports):
        wait_ms = await ports.ledger.peek_rate(call, take.bucket, take.calls, take.per_s, shared=take.shared)
        if wait_ms is not None:
            return Refusal(
                Code.RATE_LIMITED,
                f"{take.bucket!r} takes {take.calls:g} calls in {take.per_s:g} s; wait {wait_ms} ms",
                retry_after_ms=wait_ms,
            )
        call.stage("limits", take)
    return PASS


# --- budgets ------------------------------------------------------------------------------


def _ungranted(call: Call, budgets: tuple[Budget, ...]) -> Refusal | None:
    """Nothing critical happens unless somebody wrote down how much of it may; POL-2."""
    contract = call.tool.contract
    if contract.effect is not _CRITICAL:
        return None
    if any(budget.kind in (Kind.CRITICAL, Kind.ALL) for budget in budgets):
        return None
    return Refusal(
        Code.BUDGET_EXHAUSTED,
        f"{contract.tool!r} is CRITICAL_MUTATION, whose budget is zero unless it is granted; an operator can "
        "write 'limits: {budgets: [{per: tenant, kind: critical, calls: 10, window_s: 86400}]}'",
    )


async def _budgets(call: Call, ports: Ports) -> Refusal | None:
    if not ports.budgets:
        return None
    refusal = _other_currency(call, ports.budgets)
    if refusal is not None:
        return refusal
    drawn = list(buckets(call, ports.budgets, ports.clock.now()))
    if not drawn:
        return None
    names, own = [bucket.name for bucket, _ in drawn], None
    if call.rerun_unknown and call.earlier is not None:  # goes back when the call is claimed again
        own = call.earlier.call_id
    found = await ports.ledger.peek_budgets(call.principal.tenant, names, own)
    taken = {bucket: found.get(bucket.name, NOTHING) for bucket, _ in drawn}
    retries = _retries(call, drawn, taken)
    wall_ms = _wall_ms(call, ports, drawn, taken)
    cost = micros(call.tool.contract.runtime.cost.per_call)
    ask = Amount(1, cost * (1 + (retries or 0)), wall_ms or 0, retries or 0)
    for bucket, limit in drawn:
        if not limit.holds(taken[bucket].plus(ask)):
            return Refusal(Code.BUDGET_EXHAUSTED, exhausted(bucket, limit, ask, taken[bucket]))
    for bucket, limit in drawn:
        call.stage("limits", ReserveBudget(bucket, ask, limit))
    if retries is not None:
        call.retries = retries
    if wall_ms is not None:
        call.deadline = min(call.deadline, ports.clock.monotonic() + wall_ms / 1000)
    return None


def _other_currency(call: Call, budgets: tuple[Budget, ...]) -> Refusal | None:
    """What cannot be added up cannot be bounded."""
    cost = call.tool.contract.runtime.cost
    for budget in budgets:
        if cost.per_call and budget.limit.cost is not None and budget.currency != cost.currency:
            text = f"{call.tool.contract.tool!r} costs {cost.currency}, and a budget counts {budget.currency}"
            return Refusal(Code.BUDGET_EXHAUSTED, f"{text}; an operator can set its 'currency'")
    return None


Drawn = list[tuple[Bucket, Limit]]


def _retries(call: Call, drawn: Drawn, taken: dict[Bucket, Amount]) -> int | None:
    """How many retries every budget still pays for; None where none bounds them."""
    contract = call.tool.contract
    cost = micros(contract.runtime.cost.per_call)
    left = contract.runtime.max_retries if not call.writes or contract.honours_key else 0
    bounded = False
    for bucket, limit in drawn:
        if limit.retries is not None:
            bounded, left = True, min(left, limit.retries - taken[bucket].retries)
        if limit.cost is not None and cost:
            bounded, left = True, min(left, (limit.cost - taken[bucket].cost) // cost - 1)
    return max(left, 0) if bounded else None


def _wall_ms(call: Call, ports: Ports, drawn: Drawn, taken: dict[Bucket, Amount]) -> int | None:
    """How long the call may run; None where no budget bounds it, at least 1 so that an empty one refuses."""
    left = round((call.deadline - ports.clock.monotonic()) * 1000)
    bounds = [limit.wall_ms - taken[bucket].wall_ms for bucket, limit in drawn if limit.wall_ms is not None]
    return max(min([left, *bounds]), 1) if bounds else None


# --- rates --------------------------------------------------------------------------------


def _rates(call: Call, ports: Ports) -> Iterator[TakeRate]:
    contract = call.tool.contract
    declared = contract.runtime.rate_limit
    if declared is not None:
        yield TakeRate(f"tool:{contract.tool}", declared.calls, declared.per_s)
    for rate in ports.rates:
        if rate.per is Per.CREDENTIAL:  # what stands behind it sees one caller, whoever calls which tool
            for name in rate.secrets(contract, call.upstream, call.principal.tenant):
                yield TakeRate(f"credential:{name}", rate.calls, rate.per_s, shared=True)
            continue
        if not rate.covers(contract.tool):
            continue
        match rate.per:
            case Per.TOOL:  # protects the tool itself, whoever calls it
                yield TakeRate(f"all:{contract.tool}", rate.calls, rate.per_s, shared=True)
            case Per.PRINCIPAL if not call.principal.system:
                yield TakeRate(f"principal:{rate.match}:{call.principal.id}", rate.calls, rate.per_s)
            case Per.TENANT if not call.principal.system:
                yield TakeRate(f"tenant:{rate.match}", rate.calls, rate.per_s)
