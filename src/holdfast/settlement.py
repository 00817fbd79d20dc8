"""What is true of an operation whose outcome was never written down?

Used by the gates that find an earlier operation under a key, and by the sweep that
looks for the work of dead workers. The rules (IDM-4, IDM-5):

- an operation that was running when its worker died is unknown, never free;
- a probe that sees the effect settles it as committed, at any time;
- a probe that does not see it settles it as having no effect only when the worker
  can do no more harm: it is dead or its attempt is over, and the attempt's deadline
  and the contract's settling time have passed;
- without a probe a person settles it, or the upstream that honours the key may be
  asked again.
"""

import logging
import re
from dataclasses import replace
from typing import Any

import orjson

from holdfast.model import defaults
from holdfast.model.approval import needed
from holdfast.model.call import Call
from holdfast.model.current import Stored, serving
from holdfast.model.errors import NO_REMEDY, Code, remedy
from holdfast.model.expression import ExpressionError
from holdfast.model.job import Look, look, nameless
from holdfast.model.keys import upstream_key
from holdfast.model.masking import masked
from holdfast.model.observation import Observation, Outcome, Status
from holdfast.model.operation import Operation
from holdfast.model.redaction import differences, withheld
from holdfast.model.tool import InSession, Job, Probe, Tool
from holdfast.model.upstream_session import SessionState, session_id
from holdfast.model.verdict import PASS, Refusal, Replay, Verdict
from holdfast.model.vocabulary import KeySource, Rung, State, Strength
from holdfast.ports import Ledger, Ports, Settlement

log = logging.getLogger(__name__)

_DOUBT = re.compile("; (?:the|its) effect may or may not")
"""What is said of an effect while nobody knows, and not said any more once somebody does."""


async def answer(call: Call, earlier: Operation, ports: Ports) -> Verdict:
    """What a proposal gets whose key already has an operation."""
    if _is_other(call, earlier):
        if needed(call.tool.contract.security.approval_floor, call.decision):
            call.alarms.append(
                f"the key of {earlier.call_id}, which needs approval, was used for another call"
            )
        return Refusal(
            Code.KEY_MISMATCH,
            f"this key belongs to call {earlier.call_id!r} ({earlier.state.value}) with other arguments; "
            "use a new key for a new operation",
        )
    if earlier.state.running and not earlier.orphaned:
        seconds = min(call.deadline - ports.clock.monotonic(), defaults.DUPLICATE_WAIT_S)
        earlier = await ports.ledger.wait(earlier, max(seconds, 0.0))
        if earlier.state.running and not earlier.orphaned:
            again = "in the same way" if call.unnamed else "with the same key"
            return Refusal(
                Code.KEY_IN_USE,
                f"call {earlier.call_id!r} with this key is still running ({earlier.state.value}); "
                f"ask again {again}",
                retry_after_ms=1_000,
            )
    if call.tool.job is not None and ports.jobs is not None and ongoing(earlier) is not None:
        earlier = await ports.jobs.wait(earlier, patience(call, ports), call.proposal.peer)
        if ongoing(earlier) is not None:  # not to be submitted again, whatever the upstream makes of keys
            told = await ports.jobs.told(earlier)
            less = set(call.decision.redact).difference(_redacted(earlier))  # than when it was submitted
            return _replay(call, nameless(told) if less else told)
    if earlier.state.running or earlier.state is State.UNKNOWN:
        earlier = await settle(earlier, call.tool, ports)
    return _settled_answer(call, earlier)


def _is_other(call: Call, earlier: Operation) -> bool:
    """Whether a key is used for something else than it was."""
    if earlier.fingerprint != call.fingerprint or earlier.contract_digest != call.tool.contract.digest:
        return True
    at = call.proposal.fallback
    if at is None or not at.level or earlier.payload is None:
        return False
    before: str = (orjson.loads(earlier.payload).get("fallback") or {}).get("asked", "")
    return before not in ("", at.asked)  # what a stand-in is told may be less than what was asked


def patience(call: Call, ports: Ports) -> float:
    """How long whoever calls waits for what goes on: as long as they say, and not without end."""
    asked = call.proposal.deadline_ms
    limit = defaults.JOB_CALLER_S if asked is None else min(asked / 1000, defaults.ASYNC_S)
    return max(limit - (ports.clock.monotonic() - call.started), 0.0)


def _settled_answer(call: Call, earlier: Operation) -> Verdict:
    if earlier.state in (State.HELD, State.NO_EFFECT):
        return PASS
    if earlier.state is State.UNKNOWN and call.tool.contract.honours_key:
        call.rerun_unknown = True  # the upstream itself makes one effect of many attempts
        return PASS
    if earlier.state is State.UNKNOWN or earlier.state.running:
        return _replay(call, unknown(earlier))
    if earlier.observation is None:
        return Refusal(
            Code.KEY_EXPIRED,
            f"call {earlier.call_id!r} ({earlier.state.value}) had this key; its answer is no longer kept",
        )
    return _replay(call, _kept(earlier, earlier.observation))


def _replay(call: Call, observation: Observation) -> Replay:
    """The first answer, and how this call came by it where it did not name it."""
    if call.decision.redact:  # policy may show less now than when it ran
        shown = masked(observation.data, call.decision.redact)
        hidden = [*differences(observation.data, shown)]
        message = None if observation.message is None else withheld(observation.message, hidden)
        warnings = tuple(withheld(warning, hidden) for warning in observation.warnings)
        observation = replace(observation, data=shown, native=None, message=message, warnings=warnings)
    if call.key_source is KeySource.ADOPTED:
        return Replay(replace(observation, key_source=KeySource.ADOPTED))
    return Replay(observation)


def ongoing(operation: Operation) -> Observation | None:
    """What was told of an operation that goes on without its call: a job, or a run."""
    if operation.state is not State.UNKNOWN or operation.observation is None:
        return None
    told = Observation.from_json(operation.observation)
    return told if told.pending is not None else None


def current(operation: Operation) -> Observation:
    """The operation as the ledger knows it now."""
    if (told := ongoing(operation)) is not None:
        return told
    if operation.state in (State.UNKNOWN, State.CLAIMED, State.DISPATCHED) or operation.observation is None:
        return unknown(operation)
    return _kept(operation, operation.observation)


def _kept(operation: Operation, raw: bytes) -> Observation:
    """The answer as it was told, unless what it told of was taken back since."""
    told = Observation.from_json(raw)
    if operation.state is not State.COMPENSATED or told.status is not Status.DONE:
        return told
    code = Code.CANCELLED
    return replace(
        told,
        status=Status.FAILED,
        code=code,
        message=operation.note,
        remedy=remedy(code),
        data=None,
        native=None,
        mutations=(),
    )


async def settle_taken_back(operation: Operation, call_id: str, by: str, ledger: Ledger) -> None:
    """Another call has undone the effect of this one: from now on the ledger says so."""
    if operation.state is State.COMMITTED:
        note = f"taken back by call '{call_id}'"
        said = Settlement(state=State.COMPENSATED, observation=operation.observation, by=by, note=note)
        await ledger.settle(operation, said)


async def settle(operation: Operation, tool: Tool, ports: Ports) -> Operation:
    """Find out what can be found out now; returns the operation as it is afterwards."""
    if operation.state.running:
        operation = await give_up(operation, ports)
    if operation.state is not State.UNKNOWN or (tool.probe is None and tool.session is None):
        return operation
    seen = None if tool.session is None else await _ask_session(operation, tool.session, ports)
    if seen is None and tool.probe is not None:
        with serving(Stored(tool, _arguments(operation))):
            seen = await ask_probe(operation, tool.probe, ports)
    if seen is None:
        return operation
    if seen.state is State.COMMITTED:
        seen = replace(seen, labels=tool.contract.labels)
    if await ports.ledger.settle(operation, seen):  # lost to somebody else is as good: look again
        ports.telemetry.settled(operation, seen)
    return await _fresh(operation, ports)


async def ask_probe(operation: Operation, probe: Probe, ports: Ports) -> Settlement | None:
    """Ask the contract's probe; None while its answer proves nothing."""
    arguments = _arguments(operation)
    if arguments is None:
        return None
    variables: dict[str, Any] = {"args": arguments, "key": upstream_key(operation.ref)}
    try:
        reading = probe.read
        seen = await ports.reader.read(operation.ref.tenant, reading.tool, reading.arguments.fill(variables))
        if seen.status is not Status.DONE:
            return None
        variables["state"] = seen.data
        if probe.committed.holds(variables):
            data = None if probe.result is None else probe.result.evaluate(variables)
            data = masked(data, _redacted(operation))
            observation = committed_by_probe(operation, data).to_json()
            return Settlement(
                state=State.COMMITTED, observation=observation, by="probe", note="the probe saw the effect"
            )
    except ExpressionError as error:
        log.warning("probe of %s cannot be evaluated: %s", operation.ref.tool, error)
        return None
    harmless = not operation.owner_alive and operation.since_deadline_s >= probe.settle_after_s
    if not harmless:
        return None
    note = "the probe saw no effect"
    return Settlement(state=State.NO_EFFECT, observation=_nothing(operation, note), by="probe", note=note)


# --- sessions at upstreams --------------------------------------------------------------------


async def _ask_session(operation: Operation, part: InSession, ports: Ports) -> Settlement | None:
    """What was done in a session that was rolled back was not done, whatever its answer was."""
    arguments, tenant = _arguments(operation), operation.ref.tenant
    if ports.upstream_sessions is None or arguments is None or part.role not in ("begin", "step"):
        return None
    begins = part.role == "begin"
    named = session_id(tenant, operation.call_id) if begins else str(arguments.get(part.argument))
    session = await ports.upstream_sessions.get(tenant, named)
    if session is None or session.state is not SessionState.ROLLED_BACK:
        return None
    return _rolled_back(operation, unknown(operation), named, Code.CANCELLED)


def _rolled_back(operation: Operation, told: Observation, session: str, code: Code) -> Settlement:
    note = f"session '{session}' was rolled back: nothing of it is left"
    said = (told.message or operation.note).removesuffix(f"; session '{session}' is being rolled back")
    why = _DOUBT.split(said)[0]
    about = None if told.upstream_session is None else {**told.upstream_session, "state": "ROLLED_BACK"}
    observation = replace(
        told,
        status=Status.FAILED,
        code=code,
        message=f"{why}; {note}; begin a new one with a new key" if why else note,
        remedy=remedy(code),
        upstream_session=about,
    )
    return Settlement(state=State.NO_EFFECT, observation=observation.to_json(), by="session", note=note)


async def after_rollback(call: Call, told: Observation, ports: Ports) -> Observation:
    """What is told of a call on whose account its session was rolled back."""
    about = {**(told.upstream_session or {}), "state": SessionState.ROLLED_BACK.value}
    part, own = call.tool.session, call.operation
    now = None if own is None else await ports.ledger.find(own.ref)
    if part is None or now is None or part.role not in ("begin", "step"):
        return replace(told, upstream_session=about)
    if now.state not in (State.UNKNOWN, State.FAILED_FINAL):
        return current(now)
    lost = told.code if told.code is not Code.OUTCOME_UNKNOWN else None
    code = Code.OUTPUT_INVALID if call.misfit else lost or Code.CANCELLED
    seen = _rolled_back(now, told, str(about.get("id", "")), code)
    if await ports.ledger.settle(now, seen):
        ports.telemetry.settled(now, seen)
    return current(await _fresh(now, ports))


# --- jobs ----------------------------------------------------------------------------------------


async def ask_job(tenant: str, job: Job, variables: dict[str, Any], ports: Ports) -> Look | None:
    """How far a job is; None while nobody can tell."""
    try:
        seen = await ports.reader.read(tenant, job.poll.tool, job.poll.arguments.fill(variables))
        return look(job, seen.data) if seen.status is Status.DONE else None
    except ExpressionError as error:
        log.warning("what %s says of a job cannot be read: %s", job.poll.tool, error)
        return None


async def sweep(ports: Ports, limit: int = 100) -> int:
    """Settle what dead or silent workers left behind; returns how many operations moved."""
    moved = 0
    for operation in await ports.ledger.overdue(limit):
        listing = ports.catalog.exact(operation.ref.tool, operation.version)
        if listing is None or _goes_on(operation, listing.tool):
            continue
        after = await settle(operation, listing.tool, ports)
        moved += after.state is not operation.state
    return moved


def _goes_on(operation: Operation, tool: Tool) -> bool:
    """What said that it goes on is not asked over and over: it is settled when its job or its run ends."""
    told = operation.state is State.UNKNOWN and operation.observation is not None
    if told and tool.job is not None:
        return ongoing(operation) is not None
    return told and tool.contract.transactional.composed


async def _fresh(operation: Operation, ports: Ports) -> Operation:
    return await ports.ledger.find(operation.ref) or operation


def _arguments(operation: Operation) -> dict[str, Any] | None:
    if operation.payload is None:
        return None
    arguments: dict[str, Any] = orjson.loads(operation.payload)["arguments"]
    return arguments


def _redacted(operation: Operation) -> tuple[str, ...]:
    """What policy said nobody is shown when it was claimed."""
    said = {} if operation.payload is None else orjson.loads(operation.payload)
    return tuple(said.get("redact", ()))


def unknown(operation: Operation) -> Observation:
    """What can honestly be said while nobody knows."""
    if operation.observation is not None:
        stored = Observation.from_json(operation.observation)
        if stored.status is Status.UNKNOWN:
            return stored
        if stored.pending is not None:
            return _given_up(operation, stored)
    return Observation(
        call_id=operation.call_id,
        tool=operation.ref.tool,
        version=operation.version,
        status=Status.UNKNOWN,
        code=Code.OUTCOME_UNKNOWN,
        message=(
            f"{operation.note or 'the outcome was never written'}: the effect may or may not have happened; "
            "ask again with the same key, or settle it: "
            f"holdfast settle {operation.call_id} committed|no-effect"
        ),
        remedy=remedy(Code.OUTCOME_UNKNOWN),
        outcome=Outcome(Rung.DISPATCHED, Strength.AT_MOST_ONCE),
        trace_id=operation.trace_id,
        key=operation.ref.key,
        key_source=operation.key_source,
    )


def _given_up(operation: Operation, told: Observation) -> Observation:
    """What was told of something that went on, once that is no more than unknown."""
    text = (
        f"{operation.note or 'it went on without its call'}: the effect may or may not have happened; "
        f"settle it: holdfast settle {operation.call_id} committed|no-effect"
    )
    code = Code.OUTCOME_UNKNOWN
    return replace(told, status=Status.UNKNOWN, code=code, message=text, remedy=remedy(code), pending=None)


def committed_by_probe(operation: Operation, data: Any) -> Observation:
    return replace(
        unknown(operation),
        status=Status.DONE,
        code=None,
        message=None,
        remedy=NO_REMEDY,
        data=data,
        warnings=("the answer was lost; a probe saw that the effect happened",),
        outcome=Outcome(Rung.OBSERVED, Strength.PROBED),
    )


async def give_up(operation: Operation, ports: Ports) -> Operation:
    """Mark an operation that nobody is running any more as unknown."""
    note = "its worker died" if not operation.owner_alive else "its worker went silent"
    marked = Settlement(state=State.UNKNOWN, observation=None, by="sweep", note=note)
    if await ports.ledger.settle(operation, marked):
        ports.telemetry.settled(operation, marked)
    return await _fresh(operation, ports)


def by_person(operation: Operation, happened: bool, person: str, note: str) -> Settlement:
    """What a person says became of it; IDM-5."""
    said = f"settled by {person!r}: {note}" if note else f"settled by {person!r}"
    if not happened:
        return Settlement(state=State.NO_EFFECT, observation=_nothing(operation, said), by=person, note=said)
    observation = replace(
        unknown(operation),
        status=Status.DONE,
        code=None,
        message=None,
        remedy=NO_REMEDY,
        warnings=(f"the answer was lost; {said}",),
    )
    return Settlement(state=State.COMMITTED, observation=observation.to_json(), by=person, note=said)


def _nothing(operation: Operation, said: str) -> bytes:
    """No answer came, and it is known now that nothing happened: the same key may be used again."""
    observation = replace(
        unknown(operation),
        status=Status.FAILED,
        code=Code.TIMEOUT,
        message=f"nothing happened ({said}); call again with the same key",
        remedy=remedy(Code.TIMEOUT),
    )
    return observation.to_json()


def cancelled(operation: Operation, person: str) -> Settlement:
    """A held operation that nobody wants any more."""
    observation = replace(
        unknown(operation),
        status=Status.REFUSED,
        code=Code.CANCELLED,
        message=f"cancelled by {person!r} while it was held; nothing ran",
        remedy=remedy(Code.CANCELLED),
        outcome=None,
    )
    note = f"cancelled by {person!r}"
    return Settlement(state=State.FAILED_FINAL, observation=observation.to_json(), by=person, note=note)
