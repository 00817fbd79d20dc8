"""Is there budget and rate left?

Only a peek: what is taken is staged and written with the claim, so a call that goes
no further has used nothing.
"""

from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.stage import TakeRate
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.ports import Ports


async def limits(call: Call, ports: Ports) -> Verdict:
    rate = call.tool.contract.runtime.rate_limit
    if rate is None:
        return PASS
    take = TakeRate(f"tool:{call.tool.contract.tool}", rate.calls, rate.per_s)
    wait_ms = await ports.ledger.peek_rate(call, take.bucket, take.calls, take.per_s)
    if wait_ms is not None:
        return Refusal(
            Code.RATE_LIMITED,
            f"{call.tool.contract.tool!r} takes {rate.calls} calls in {rate.per_s:g} s; wait {wait_ms} ms",
            retry_after_ms=wait_ms,
        )
    call.stage("limits", take)
    return PASS
