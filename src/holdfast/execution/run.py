"""Run the tool: breaker outside, retries inside, one attempt at the core.

A read may be answered from the cache. A write is tried again only where the upstream
honours the key, so that many attempts are one effect.
"""

from holdfast.execution.attempt import attempt
from holdfast.execution.cache import Cached
from holdfast.execution.promised import promised
from holdfast.execution.result import Broke, Ran, Result, Trace
from holdfast.execution.retry import pause
from holdfast.execution.runtime import Runtime
from holdfast.execution.verify import Judged
from holdfast.model.call import Call
from holdfast.model.errors import TABLE, Code

_SICK = frozenset(
    {Code.DEPENDENCY_UNAVAILABLE, Code.TIMEOUT, Code.INTERNAL, Code.OUTCOME_UNKNOWN, Code.RESOURCE_EXHAUSTED}
)
"""What counts against a tool's health; a tool that says no is well."""


async def run(call: Call, runtime: Runtime) -> Result:
    contract, at = call.tool.contract, call.proposal.fallback
    if at is not None and at.stale:
        return _stale(call, runtime)
    if contract.runtime.cache_ttl_s is not None:
        cached = _cached(call, runtime, contract.runtime.cache_ttl_s)
        if cached is not None:
            return cached
    breaker = runtime.breaker(contract.tool)
    rest = breaker.admit()
    if rest is not None:
        return _doubted(call, _resting(contract.tool, rest), [])
    result = await attempt(call, runtime, 1)
    tried = [result]
    if isinstance(result, Broke):
        result = await _again(call, runtime, result, tried)
    if call.attempts == 0:
        breaker.gave_up()
    elif isinstance(result, Broke) and result.code in _SICK:
        breaker.failed()
    else:
        breaker.succeeded()
    return result if isinstance(result, Ran) else _doubted(call, result, tried)


def _resting(tool: str, rest_s: float) -> Broke:
    return Broke(
        trace=Trace.NONE,
        code=Code.DEPENDENCY_UNAVAILABLE,
        message=f"{tool!r} failed too often and is given a rest; nothing was sent",
        retry_after_ms=int(rest_s * 1000) + 1,
    )


def _doubted(call: Call, result: Broke, tried: list[Result]) -> Result:
    """An attempt without effect proves nothing about one before it that was lost; IDM-5."""
    lost = call.rerun_unknown or any(isinstance(r, Broke) and r.trace is Trace.UNKNOWN for r in tried)
    if not (lost and result.trace is Trace.NONE):
        return result
    text = (
        f"{result.message}; an earlier attempt may have had its effect. ask again with the same key, "
        f"or settle it: holdfast settle {call.id} committed|no-effect"
    )
    return Broke(trace=Trace.UNKNOWN, code=Code.OUTCOME_UNKNOWN, message=text)


async def _again(call: Call, runtime: Runtime, result: Result, tried: list[Result]) -> Result:
    """Try again while it is any use, safe and in time."""
    always = promised(call.tool.contract)
    retries = always.retries if call.retries is None else min(always.retries, call.retries)
    for number in range(2, retries + 2):  # a budget may pay for fewer
        if isinstance(result, Ran) or result.late is not None or call.cancelled:
            return result
        lost_write = result.code is Code.OUTCOME_UNKNOWN and always.repeatable
        if not (TABLE[result.code].remedy().retryable or lost_write):
            return result
        wait_s = pause(number - 1, result.retry_after_ms, runtime.jitter())
        if runtime.clock.monotonic() + wait_s >= call.deadline:
            return result  # no time for another try
        await runtime.clock.sleep(wait_s)
        result = await attempt(call, runtime, number)
        tried.append(result)
    return result


def _cached(call: Call, runtime: Runtime, ttl_s: float) -> Ran | None:
    if call.writes or call.proposal.depth:  # a gate reads what is, not what was
        return None
    found = runtime.cache.get(call.principal.tenant, _place(call, runtime), ttl_s, runtime.clock.monotonic())
    return None if found is None else _known(found)


def _stale(call: Call, runtime: Runtime) -> Result:
    """What was known last; nothing is sent, whatever comes of it."""
    found = None if call.writes else runtime.cache.last(call.principal.tenant, _place(call, runtime))
    if found is not None:
        return _known(found)
    said = f"{call.tool.contract.tool!r} has not answered this before, so nothing can be told in its place"
    return Broke(trace=Trace.NONE, code=Code.DEPENDENCY_UNAVAILABLE, message=said)


def _known(found: Cached) -> Ran:
    return Ran(value=found.value, cached_at=found.retrieved_at, native=found.native)


def remember(call: Call, judged: Judged, runtime: Runtime) -> None:
    """Keep a verified read for its time to live."""
    if judged.cached_at is not None:
        return  # what was known is no newer for being asked for again
    if call.tool.contract.runtime.cache_ttl_s is not None and not call.writes:
        entry = Cached(judged.data, runtime.clock.monotonic(), runtime.clock.now(), judged.native)
        runtime.cache.put(call.principal.tenant, _place(call, runtime), entry)


def _place(call: Call, runtime: Runtime) -> str:
    """Equal reads share an answer, but not where the upstream itself answers each principal differently."""
    if runtime.upstreams[call.upstream].personal:
        return f"{call.principal.id} {call.fingerprint}"
    return call.fingerprint
