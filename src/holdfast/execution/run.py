"""Run the tool: breaker outside, retries inside, one attempt at the core.

A read may be answered from the cache. A write is tried again only where the upstream
honours the key, so that many attempts are one effect.
"""

from holdfast.execution.attempt import attempt
from holdfast.execution.cache import Cached
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
    cached = _cached(call, runtime)
    if cached is not None:
        return cached
    breaker = runtime.breaker(call.tool.contract.tool)
    rest = breaker.admit()
    if rest is not None:
        resting = Broke(
            trace=Trace.NONE,
            code=Code.DEPENDENCY_UNAVAILABLE,
            message=f"{call.tool.contract.tool!r} failed too often and is given a rest; nothing was sent",
            retry_after_ms=int(rest * 1000) + 1,
        )
        return _doubted(call, resting, [])
    tried: list[Result] = []
    result = await _tries(call, runtime, tried)
    if call.attempts == 0:
        breaker.gave_up()
    elif isinstance(result, Broke) and result.code in _SICK:
        breaker.failed()
    else:
        breaker.succeeded()
    return _doubted(call, result, tried)


def _doubted(call: Call, result: Result, tried: list[Result]) -> Result:
    """An attempt without effect proves nothing about one before it that was lost; IDM-5."""
    lost = call.rerun_unknown or any(isinstance(r, Broke) and r.trace is Trace.UNKNOWN for r in tried)
    if not (lost and isinstance(result, Broke) and result.trace is Trace.NONE):
        return result
    text = (
        f"{result.message}; an earlier attempt may have had its effect. ask again with the same key, "
        f"or settle it: holdfast settle {call.id} committed|no-effect"
    )
    return Broke(trace=Trace.UNKNOWN, code=Code.OUTCOME_UNKNOWN, message=text)


async def _tries(call: Call, runtime: Runtime, tried: list[Result]) -> Result:
    contract = call.tool.contract
    safe = not call.writes or contract.honours_key
    retries = contract.runtime.max_retries if safe else 0
    if call.retries is not None:  # a budget pays for fewer
        retries = min(retries, call.retries)
    for number in range(1, retries + 2):
        result = await attempt(call, runtime, number)
        tried.append(result)
        if isinstance(result, Ran) or result.late is not None or number > retries or call.cancelled:
            return result
        lost_write = result.code is Code.OUTCOME_UNKNOWN and safe
        if not (TABLE[result.code].remedy().retryable or lost_write):
            return result
        wait_s = pause(number, result.retry_after_ms, runtime.jitter())
        if runtime.clock.monotonic() + wait_s >= call.deadline:
            return result  # no time for another try
        await runtime.clock.sleep(wait_s)
    raise AssertionError("the last try returns")


def _cached(call: Call, runtime: Runtime) -> Ran | None:
    ttl_s = call.tool.contract.runtime.cache_ttl_s
    if ttl_s is None or call.writes or call.proposal.depth:  # a gate reads what is, not what was
        return None
    found = runtime.cache.get(call.principal.tenant, _place(call, runtime), ttl_s, runtime.clock.monotonic())
    return (
        None if found is None else Ran(value=found.value, cached_at=found.retrieved_at, native=found.native)
    )


def remember(call: Call, judged: Judged, runtime: Runtime) -> None:
    """Keep a verified read for its time to live."""
    if call.tool.contract.runtime.cache_ttl_s is not None and not call.writes:
        entry = Cached(judged.data, runtime.clock.monotonic(), runtime.clock.now(), judged.native)
        runtime.cache.put(call.principal.tenant, _place(call, runtime), entry)


def _place(call: Call, runtime: Runtime) -> str:
    """Equal reads share an answer, but not where the upstream itself answers each principal differently."""
    if runtime.upstreams[call.upstream].personal:
        return f"{call.principal.id} {call.fingerprint}"
    return call.fingerprint
