"""The life of one tool call. Read this file first.

A proposal is untrusted: a model wrote it. An observation is the only thing that ever
goes back. In between stand the gates, in this order and no other. Nothing runs
before the claim is durable, and nobody is told `done` before the outcome is.
"""

import logging
from math import inf

from holdfast import settlement
from holdfast.execution.job import concluded, submitting
from holdfast.execution.job import judged as job_judged
from holdfast.execution.late import settle_late, write_later
from holdfast.execution.observe import observe
from holdfast.execution.preview import preview
from holdfast.execution.result import Broke
from holdfast.execution.run import remember, run
from holdfast.execution.runtime import Runtime
from holdfast.execution.unrun import held, refused
from holdfast.execution.upstream_session import accounted, seated
from holdfast.execution.verify import Judged, verify
from holdfast.gates.approval import approval
from holdfast.gates.arguments import arguments
from holdfast.gates.authorize import authorize
from holdfast.gates.claim import claim
from holdfast.gates.limits import limits
from holdfast.gates.policy import policy
from holdfast.gates.replay import replay
from holdfast.gates.resolve import resolve
from holdfast.gates.semantics import semantics
from holdfast.gates.state import state
from holdfast.model.call import Call, Proposal
from holdfast.model.current import not_to_be_shown, serving
from holdfast.model.errors import Code, StoreError
from holdfast.model.holders import brought
from holdfast.model.messages import STORE_AWAY
from holdfast.model.observation import Observation, Status
from holdfast.model.redaction import explained
from holdfast.model.sequel import SessionMoved
from holdfast.model.steps import STEPS
from holdfast.model.upstream_session import SessionState
from holdfast.model.verdict import PASS, Hold, Pass, Refusal, Replay, Verdict, Waited
from holdfast.model.vocabulary import State
from holdfast.ports import Gate, Ports

__all__ = ["GATES", "PHASES", "act", "admit", "concluded", "live", "receive", "recorded", "refused"]

log = logging.getLogger(__name__)

GATES: tuple[Gate, ...] = (
    resolve,  # which tool, which version, under which key
    authorize,  # may this principal use it at all
    arguments,  # are the arguments well-formed
    semantics,  # do they make sense together
    policy,  # is this call allowed, and on what condition
    replay,  # has this call already been answered
    state,  # is the world still as the caller believes
    limits,  # is there budget and rate left
    approval,  # has a person said yes, where one must
    claim,  # is the right to act ours
)

UNASKED_BY_PREVIEWS: frozenset[Gate] = frozenset({replay, limits, approval, claim})
"""A preview takes nothing and promises nothing; DEC-5."""

PHASES: dict[str, str] = {step.name: step.phase for step in STEPS[: len(GATES)]}
"""S1's name for the part of a call's life each gate belongs to; then Execute, Verify, Return."""


def receive(proposal: Proposal, ports: Ports) -> Call:
    """A proposal has come in: from here on it is a call, with a name and a deadline."""
    started = ports.clock.monotonic()
    patience = inf if proposal.deadline_ms is None else proposal.deadline_ms / 1000
    return Call(
        proposal=proposal,
        id=ports.ids.call(),
        trace_id=proposal.trace_id or ports.ids.trace(),
        nonce=ports.ids.nonce(),
        queued_at=ports.clock.now(),
        started=started,
        deadline=started + patience,
    )


async def live(call: Call, ports: Ports, runtime: Runtime, gates: tuple[Gate, ...] = GATES) -> Observation:
    """One call from its proposal to its observation, watched from outside."""
    ports.telemetry.begun(call)
    with serving(call):
        observation = await _live(call, ports, runtime, gates)
    try:
        ports.telemetry.ended(call, observation)
    except Exception:  # what happened has happened, whether or not it was seen
        log.exception("call %s: telemetry broke; the call did not", call.id)
    return observation


async def _live(call: Call, ports: Ports, runtime: Runtime, gates: tuple[Gate, ...]) -> Observation:
    """Take `call` through every gate, run it if all pass, and record what happened."""
    verdict = await admit(call, ports, gates)
    if isinstance(verdict, Waited):
        verdict = await _admit_in_turn(call, ports, gates)
    match verdict:
        case Pass() if call.previewing:
            return await recorded(call, await preview(call, ports), ports)
        case Pass():
            return await act(call, ports, runtime)
        case Refusal():
            denied = verdict.private or verdict.code
            call.alarms += ports.denials.raised(call, denied, ports.clock.monotonic())
            return await recorded(call, refused(call, verdict, ports), ports, verdict.private)
        case Hold():
            return await recorded(call, held(call, verdict, ports), ports)
        case Replay(earlier):
            return await recorded(call, earlier.as_replayed(), ports)


async def admit(call: Call, ports: Ports, gates: tuple[Gate, ...]) -> Verdict:
    """Ask each gate in turn; the first that does not pass decides."""
    mark, now = call.marks.append, ports.clock.monotonic
    for gate in gates:
        name: str = gate.__name__
        if gate in UNASKED_BY_PREVIEWS and call.previewing:
            continue
        try:
            verdict = await gate(call, ports)
        except Exception as error:  # a gate that breaks is a gate that is shut
            verdict = _shut(name, call, error)
        call.verdicts.append((name, verdict))
        mark(now())
        if verdict is not PASS and not isinstance(verdict, Pass):
            return verdict
    return PASS


async def _admit_in_turn(call: Call, ports: Ports, gates: tuple[Gate, ...]) -> Verdict:
    """As often as it takes: another process may be faster."""
    try:
        while isinstance(verdict := await _admit_again(call, ports, gates), Waited):
            """It is still the first in its line."""
        return verdict
    finally:
        ports.line.leave(call.nonce)


async def _admit_again(call: Call, ports: Ports, gates: tuple[Gate, ...]) -> Verdict:
    """What a call is to change was changed meanwhile: it looks again, and takes what it needs anew; EXE-7."""
    first = gates.index(state) if state in gates else 0
    asked, before = {gate.__name__ for gate in gates[first:]}, call.marks[first:-1]
    call.staged = [one for one in call.staged if one[0] not in asked]
    del call.verdicts[first:], call.marks[first:]
    verdict = await admit(call, ports, gates[first:-1])
    call.warnings[:] = dict.fromkeys(call.warnings)  # said by the same gates as before
    if verdict is not PASS:
        return verdict
    call.marks[first:] = before  # it was the claim that took the time
    return await admit(call, ports, gates[-1:])


def _shut(name: str, call: Call, error: Exception) -> Refusal:
    if isinstance(error, StoreError):
        log.error("call %s: gate %s: %s", call.id, name, error)
        return Refusal(Code.RESOURCE_EXHAUSTED, f"{STORE_AWAY}; nothing ran")
    log.error("call %s: gate %s broke\n%s", call.id, name, explained(error, not_to_be_shown()))
    return Refusal(Code.INTERNAL, f"gate {name!r} broke, so nothing ran; the operator's log says why")


async def act(call: Call, ports: Ports, runtime: Runtime) -> Observation:
    """The claim is ours: run, verify, and make the outcome durable before telling anyone."""
    try:
        if call.tool.job is not None:
            submitting(call, ports)
        if call.seat is not None:
            seated(call)
        result = await run(call, runtime)
        call.marks.append(ports.clock.monotonic())
        judged = await (verify if call.tool.job is None else job_judged)(call, result, ports)
        call.marks.append(ports.clock.monotonic())
    except Exception as error:  # whatever went wrong in here, a write may have happened
        log.error("call %s: execution broke\n%s", call.id, explained(error, not_to_be_shown()))
        return await finished(call, _broke_inside(call), ports, runtime)
    if call.tool.session is not None:
        judged = accounted(call, judged, result, ports)
    if judged.status is Status.DONE:
        remember(call, judged, runtime)
    if isinstance(result, Broke) and result.late is not None:
        runtime.keep(settle_late(call, result, ports))
    return await finished(call, judged, ports, runtime)


async def finished(call: Call, judged: Judged, ports: Ports, runtime: Runtime) -> Observation:
    """Write the outcome; what cannot be written is not done."""
    observation = observe(call, judged, ports)
    try:
        ours = await ports.ledger.finish(call, observation, judged.state if call.writes else None)
    except StoreError as error:
        log.error("call %s: the outcome could not be written: %s", call.id, error)
        if call.writes:
            runtime.keep(write_later(call, observation, judged.state, ports, runtime))
        return observe(call, _unwritten(call), ports)
    call.recorded = True
    if ours or call.operation is None:
        if call.tool.job is not None and observation.pending is not None:
            return await _awaited(call, observation, ports)
        if call.sequels and call.tool.session is not None:
            return await _rolled_back(call, observation, ports)
        return await _probed(call, observation, ports)
    now = await ports.ledger.find(call.operation.ref)  # somebody settled it while we were away
    return settlement.current(now or call.operation)


async def _awaited(call: Call, observation: Observation, ports: Ports) -> Observation:
    """What was submitted may end while its caller still waits; EXE-6."""
    if ports.jobs is None or call.operation is None:
        return observation
    call.so_far = observation
    try:
        await ports.jobs.submitted(call.callback)
        claimed = await ports.ledger.find(call.operation.ref) or call.operation
        seconds = settlement.patience(call, ports)
        return await ports.jobs.told(await ports.jobs.wait(claimed, seconds, call.proposal.peer))
    except StoreError as error:
        log.error("call %s: its job goes on, and cannot be looked at now: %s", call.id, error)
        return observation


async def _rolled_back(call: Call, observation: Observation, ports: Ports) -> Observation:
    """What cannot be trusted is not left to be committed; EXE-8."""
    last = call.sequels[-1]
    if not isinstance(last, SessionMoved) or last.state != SessionState.ROLLING_BACK:
        return await _probed(call, observation, ports)
    if ports.session_ending is None:
        return observation
    try:
        done = await ports.session_ending.roll_back(call.principal.tenant, last.id, last.why)
        return await settlement.after_rollback(call, observation, ports) if done else observation
    except StoreError as error:
        log.error("call %s: its session could not be rolled back yet: %s", call.id, error)
        return observation


async def _probed(call: Call, observation: Observation, ports: Ports) -> Observation:
    """An outcome that got lost with time to spare may be found at once."""
    in_time = ports.clock.monotonic() < call.deadline
    if (
        observation.status is not Status.UNKNOWN
        or call.tool.probe is None
        or call.operation is None
        or not in_time
    ):
        return observation
    now = await ports.ledger.find(call.operation.ref)
    if now is None or now.state is not State.UNKNOWN:
        return observation
    return settlement.current(await settlement.settle(now, call.tool, ports))


async def recorded(
    call: Call, observation: Observation, ports: Ports, private: Code | None = None
) -> Observation:
    """Nothing ran: one record, and the answer."""
    for alarm in call.alarms:
        log.warning("security: call %s by %s: %s", call.id, call.principal.id, alarm)
    try:
        await ports.ledger.refuse(call, observation, private or observation.code)
        call.recorded = True
    except StoreError as error:
        log.error("call %s: its refusal could not be recorded: %s", call.id, error)
        if brought(call, observation):  # what nobody can remember is not told
            unwritten = Refusal(Code.RESOURCE_EXHAUSTED, f"{STORE_AWAY}; ask again")
            observation = refused(call, unwritten, ports)
    return observation


def _broke_inside(call: Call) -> Judged:
    text = "the gateway broke while running this call; the operator's log says why"
    if call.writes and (call.attempts or call.rerun_unknown):
        return Judged(status=Status.UNKNOWN, state=State.UNKNOWN, code=Code.OUTCOME_UNKNOWN, message=text)
    return Judged(status=Status.FAILED, state=State.NO_EFFECT, code=Code.INTERNAL, message=text)


def _unwritten(call: Call) -> Judged:
    """The effect may have happened and could not be written down; AUD-5."""
    text = f"{STORE_AWAY}, so the outcome is not written; ask again with the same key"
    if call.writes:
        return Judged(status=Status.UNKNOWN, state=State.UNKNOWN, code=Code.OUTCOME_UNKNOWN, message=text)
    return Judged(status=Status.FAILED, state=State.NO_EFFECT, code=Code.RESOURCE_EXHAUSTED, message=text)
