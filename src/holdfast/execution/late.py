"""What can still be done for a call after its caller was told `unknown`?

Its answer may come after the deadline, or the store may not take the outcome at once.
Both go on in the background: what is known here must not get lost.
"""

import logging

from holdfast.execution.attempt import judge
from holdfast.execution.job import judged as job_judged
from holdfast.execution.observe import observe
from holdfast.execution.result import Broke
from holdfast.execution.runtime import Runtime
from holdfast.execution.upstream_session import accounted
from holdfast.model.call import Call
from holdfast.model.current import not_to_be_shown
from holdfast.model.errors import StoreError
from holdfast.model.observation import Observation
from holdfast.model.redaction import explained
from holdfast.model.vocabulary import State
from holdfast.ports import Ports, Settlement

log = logging.getLogger(__name__)

WRITE_LATER_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Waits before each new try at an outcome the store did not take; a minute in all."""


async def write_later(
    call: Call, observation: Observation, state: State, ports: Ports, runtime: Runtime
) -> None:
    """The caller was told `unknown`, but the outcome is known here: the store may take it yet."""
    for pause_s in WRITE_LATER_S:
        closing = await ports.clock.until(runtime.closing, pause_s)
        try:
            await ports.ledger.finish(call, observation, state)
        except StoreError as error:
            log.warning("call %s: the outcome still cannot be written: %s", call.id, error)
        else:
            return
        if closing:
            break
    log.error("call %s: the outcome is given up as unwritten; a probe or a person must settle it", call.id)


async def settle_late(call: Call, result: Broke, ports: Ports) -> None:
    """An answer that came after its caller was told `unknown` still settles the operation."""
    assert result.late is not None  # noqa: S101  # only such results are kept
    try:
        await ports.clock.until(result.late)
        if call.tool.session is not None and call.tool.session.role == "step":
            return  # its session is rolled back by now
        answered = judge(call, result.late)
        judged = await job_judged(call, answered, ports)
        if call.tool.session is not None:
            judged = accounted(call, judged, answered, ports)
        observation = observe(call, judged, ports)
        if await ports.ledger.finish(call, observation, judged.state) and call.operation is not None:
            late = Settlement(state=judged.state, observation=None, by="late")
            ports.telemetry.settled(call.operation, late)
    except Exception as error:
        text = "call %s: its late answer could not be written; it stays unknown\n%s"
        log.error(text, call.id, explained(error, not_to_be_shown(call)))
