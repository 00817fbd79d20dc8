"""Is the world still as the caller believes?

Where the contract says how to look, what the arguments name is looked up and the target
is read back through governed reads: rules over them must hold, the target must exist, be
in a valid state and, when the caller planned on a version, still have that version. A
call that was planned by a preview must still do what the preview said. A session that the
upstream keeps open must be the caller's own, and still be open.
"""

from typing import Any

from holdfast.model import plan
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.expression import ExpressionError
from holdfast.model.fields import FieldError
from holdfast.model.locks import Locks, locked
from holdfast.model.observation import Status
from holdfast.model.stage import Lock, WorkIn
from holdfast.model.tool import InSession, State, broken
from holdfast.model.upstream_session import UpstreamSession, Why, refused
from holdfast.model.verdict import PASS, Pass, Refusal, Verdict
from holdfast.model.visible import visible
from holdfast.ports import Ports, partner


async def state(call: Call, ports: Ports) -> Verdict:
    tool, proposal = call.tool, call.proposal
    if tool.session is not None and (refusal := await _session(call, tool.session, ports)) is not None:
        return refusal
    if tool.state is None and not tool.situation and proposal.if_match is proposal.plan_token is None:
        return PASS
    if tool.locks is not None and call.ref is not None and not call.previewing:
        call.changed = await _changed(call, tool.locks, ports)
    verdict = await _situation(call, ports) if call.tool.situation else PASS
    if isinstance(verdict, Pass):
        verdict = await _target(call, ports)
    if isinstance(verdict, Pass) and call.proposal.plan_token is not None and not call.previewing:
        verdict = await _plan(call, call.proposal.plan_token, ports)
    if isinstance(verdict, Refusal) and verdict.data is not None:
        call.shows = _shown(call, ports)
    return verdict


async def _changed(call: Call, locks: Locks, ports: Ports) -> str:
    """Before the look: if anybody changes it after that, the claim finds another one's name there; EXE-7."""
    tenant = call.principal.tenant
    resources = locked(ports.secrets, tenant, locks.of(call.arguments))
    return await ports.ledger.changed(tenant, Lock(resources, call.proposal.part_of))


async def _session(call: Call, part: InSession, ports: Ports) -> Refusal | None:
    """What may still be done in it is asked once more with the claim; EXE-8."""
    if ports.upstream_sessions is None:
        return Refusal(Code.TOOL_UNAVAILABLE, "sessions of upstreams are not kept here")
    if part.role == "begin":
        return _endless(call, part, ports)
    given = str(call.arguments.get(part.argument))
    session = await ports.upstream_sessions.get(call.principal.tenant, given)
    own = (call.principal.id, call.tool.contract.identity.namespace, part.name)
    if session is None or (session.principal, session.namespace, session.name) != own:
        text = f"there is no session '{given}' of yours; begin one with {_named(call, part, 'begin', ports)}"
        return Refusal(Code.STALE_STATE, text, (FieldError(f"/{part.argument}", "a session", "", text),))
    if session.home == "elsewhere":
        text = f"session '{given}' lives in another process of this gateway, with its upstream"
        return Refusal(Code.CONFLICT, f"{text}; call where it was begun, or serve with one worker")
    why = _over(session) or refused(session, part.role, call.id, ports.clock.now())
    if why is not None and why.code is Code.STALE_STATE:
        return Refusal(why.code, why.message, data={"upstream_session": _told(session)})
    call.seat = session
    call.stage("state", WorkIn(session.id, part.role, call.writes))
    return None


def _over(session: UpstreamSession) -> Why | None:
    if session.home == "gone":
        text = f"session '{session.id}' ended with the process that its upstream lived in"
        return Why(Code.STALE_STATE, f"{text}; begin a new one with a new key")
    if session.handle is None and not session.state.over:
        return Why(Code.STALE_STATE, f"session '{session.id}' was erased; begin a new one with a new key")
    return None


def _endless(call: Call, part: InSession, ports: Ports) -> Refusal | None:
    """Nobody begins what they could not end."""
    for role in ("commit", "rollback"):
        found = partner(ports.catalog.list(), call.tool.contract.identity.namespace, part.name, role)
        if found is None:
            text = f"no tool of {call.tool.contract.identity.namespace!r} has the role '{role}' in session"
            return Refusal(Code.TOOL_UNAVAILABLE, f"{text} {part.name!r}, so it could not be ended")
        if not visible(call.principal, found):
            text = f"whoever begins a session needs {found.tool!r} to end it; ask for that too"
            return Refusal(Code.PERMISSION_DENIED, text)
    return None


def _named(call: Call, part: InSession, role: str, ports: Ports) -> str:
    found = partner(ports.catalog.list(), call.tool.contract.identity.namespace, part.name, role)
    return f"the tool of role '{role}'" if found is None else f"'{found.tool}'"


def _told(session: UpstreamSession) -> dict[str, str]:
    return {"id": session.id, "name": session.name, "state": session.state.value}


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
