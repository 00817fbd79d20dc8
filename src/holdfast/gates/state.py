"""Is the world still as the caller believes?

Where the contract says how to look, what the arguments name is looked up and the target
is read back through governed reads: rules over them must hold, the target must exist, be
in a valid state and, when the caller planned on a version, still have that version. A
call that was planned by a preview must still do what the preview said.
"""

from typing import Any

from holdfast.model import plan
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.expression import ExpressionError
from holdfast.model.fields import FieldError
from holdfast.model.observation import Status
from holdfast.model.tool import State, broken
from holdfast.model.verdict import PASS, Pass, Refusal, Verdict
from holdfast.ports import Ports


async def state(call: Call, ports: Ports) -> Verdict:
    tool, proposal = call.tool, call.proposal
    if tool.state is None and not tool.situation and proposal.if_match is proposal.plan_token is None:
        return PASS
    verdict = await _situation(call, ports) if call.tool.situation else PASS
    if isinstance(verdict, Pass):
        verdict = await _target(call, ports)
    if isinstance(verdict, Pass) and call.proposal.plan_token is not None and not call.previewing:
        verdict = await _plan(call, call.proposal.plan_token, ports)
    if isinstance(verdict, Refusal) and verdict.data is not None:
        call.shows = _shown(call, ports)
    return verdict


def _shown(call: Call, ports: Ports) -> tuple[str, ...]:
    """Whoever is told how the target is has seen what the readings of it brought; OBS-6."""
    look, preview = call.tool.state, call.tool.preview
    read = [] if look is None else [look.read.tool]
    read += [] if preview is None else [preview.tool]
    return tuple(label for name in read for label in ports.labels_of(name))


async def _situation(call: Call, ports: Ports) -> Verdict:
    """Rules over the arguments and what they name, looked up now; VAL-3."""
    variables: dict[str, Any] = {"args": call.arguments}
    for name, read in call.tool.lookups.items():
        seen = await ports.reader.read(call.principal.tenant, read.tool, read.arguments.fill(variables))
        if seen.code is Code.SEMANTIC_INVALIDITY:  # what the arguments name is not there
            return Refusal(Code.SEMANTIC_INVALIDITY, seen.message or f"{name!r} cannot be found")
        if seen.status is not Status.DONE:
            text = f"{name!r} could not be looked up to check the arguments"
            return Refusal(Code.DEPENDENCY_UNAVAILABLE, text, retry_after_ms=1_000)
        variables[name] = seen.data
    faults = broken(call.tool.situation, variables)
    if not faults:
        return PASS
    return Refusal(Code.SEMANTIC_INVALIDITY, "; ".join(fault.message for fault in faults), tuple(faults))


async def _target(call: Call, ports: Ports) -> Verdict:
    look = call.tool.state
    if look is None or (look.version is None and call.proposal.if_match is not None):
        return PASS if call.proposal.if_match is None else _no_version(call)
    seen = await ports.reader.read(
        call.principal.tenant, look.read.tool, look.read.arguments.fill({"args": call.arguments})
    )
    if seen.status is not Status.DONE:
        if seen.code in (Code.SEMANTIC_INVALIDITY, Code.STALE_STATE):
            return Refusal(Code.STALE_STATE, f"the target is not there: {seen.message}")
        return Refusal(
            Code.DEPENDENCY_UNAVAILABLE,
            "the target could not be read to check its state",
            retry_after_ms=1_000,
        )
    call.before = seen.data
    try:
        return _judge(call, look, seen.data)
    except ExpressionError as error:
        return Refusal(Code.STALE_STATE, f"the target's state cannot be judged: {error}", data=seen.data)


def _judge(call: Call, look: State, seen: Any) -> Verdict:
    variables = {"args": call.arguments, "state": seen}
    faults = tuple(broken(look.rules, variables))
    if faults:
        return Refusal(Code.STALE_STATE, "; ".join(f.message for f in faults), faults, data={"state": seen})
    wanted = call.proposal.if_match
    if wanted is not None and look.version is not None:
        version = str(look.version.evaluate(variables))
        if version != wanted:
            fault = FieldError(
                "/if_match", version, wanted, "the target has changed since this call was planned"
            )
            return Refusal(
                Code.STALE_STATE, fault.message, (fault,), data={"state": seen, "version": version}
            )
    return PASS


async def _plan(call: Call, presented: str, ports: Ports) -> Verdict:
    """APR-6: the same call, the same look, the same answer."""
    now, look, impact = ports.clock.now(), call.tool.preview, None
    if look is not None:
        arguments = look.arguments.fill({"args": call.arguments})
        seen = await ports.reader.read(call.principal.tenant, look.tool, arguments)
        if seen.status is not Status.DONE:
            text = "the plan could not be checked: its preview cannot be read"
            return Refusal(Code.DEPENDENCY_UNAVAILABLE, text, retry_after_ms=1_000)
        impact = seen.data
    why = plan.wrong(ports.secrets, call, presented, now)
    if why is None and not plan.same_impact(ports.secrets, call, presented, impact):
        why = "what this call would do has changed since it was previewed"
    if why is None:
        return PASS
    fresh = plan.described(call, impact)
    fresh["plan_token"] = plan.issue(ports.secrets, call, impact, now, plan.life_s(ports.approval_s))
    fault = FieldError("/plan_token", "the plan as it is now", "", f"{why}; look at 'data.preview'")
    return Refusal(Code.STALE_STATE, fault.message, (fault,), data={"preview": fresh})


def _no_version(call: Call) -> Refusal:
    text = f"{call.tool.contract.tool!r} does not say how to read a version, so 'if_match' cannot be checked"
    return Refusal(Code.STRUCTURAL_VIOLATION, text, (FieldError("/if_match", "nothing", "", text),))
