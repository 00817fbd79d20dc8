"""What did a sampled call do, as spans?

Sampling is decided once, before anything is built. The spans are made when the call is over, from the times
it left on its way: the ids an upstream must know are there already, which is why the SDK's finished spans
are made directly and not through a tracer. No argument, result or text of an error is ever part of one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState
from opentelemetry.util.types import AttributeValue

from holdfast.model.call import Call
from holdfast.model.derive import approval_mode
from holdfast.model.errors import Code
from holdfast.model.observation import Observation
from holdfast.model.observation import Status as Outcome
from holdfast.model.trail import Trail, Try, span_id
from holdfast.model.verdict import Hold, Pass, Refusal, Replay, Verdict
from holdfast.ports import Secrets
from holdfast.telemetry import attributes as a

SCOPE = InstrumentationScope("holdfast")
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
WHOLE = 1 << 64
UNSET, ERROR = Status(StatusCode.UNSET), Status(StatusCode.ERROR)
WELL = frozenset({Outcome.DONE, Outcome.PARTIAL, Outcome.PREVIEW, Outcome.HELD})
LATER_PHASES = {"execute": "Execute", "verify": "Verify", "return": "Return"}
JUDGING = frozenset({"arguments", "semantics", "state"})
"""Gates whose refusal means that the proposal itself is wrong."""

Attributes = dict[str, AttributeValue]


class Spans:
    def __init__(
        self,
        processor: SpanProcessor,
        secrets: Secrets,
        phases: Mapping[str, str],
        *,
        sample: float = 1.0,
        resource: Resource | None = None,
    ) -> None:
        self._processor = processor
        self._secrets = secrets
        self._phases = {**phases, **LATER_PHASES}
        self._bound = int(sample * WHOLE)
        self._resource = resource or Resource({"service.name": "holdfast"})

    def begun(self, call: Call) -> None:
        """Give a call a trail if it is sampled: by whoever began its trace, else by its share of traces."""
        parent = call.proposal.parent
        try:
            sampled = int(call.trace_id[16:], 16) < self._bound if parent is None else parent.sampled
            if sampled and len(call.trace_id) == 32 and int(call.trace_id, 16):
                call.trail = Trail(span_id())
        except ValueError:  # an embedder's own name for a trace, which no span can have
            return

    def ended(
        self, call: Call, observation: Observation, code: Code | None, repaired: bool, at: float
    ) -> None:
        trail = call.trail
        if trail is None:
            return
        for span in self._spans(call, trail, observation, code, repaired, at):
            self._processor.on_end(span)

    def _spans(
        self, call: Call, trail: Trail, observation: Observation, code: Code | None, repaired: bool, at: float
    ) -> Iterator[ReadableSpan]:
        trace, origin = int(call.trace_id, 16), call.queued_at - call.started
        parent, verdicts = _parent(call, trace), dict(call.verdicts)
        own = _context(trace, trail.span_id, state=None if parent is None else parent.trace_state)
        began = call.started
        for name, ended in _steps(call, at):
            here = _context(trace, span_id())
            yield self._span(name, here, own, (began + origin, ended + origin), self._step(name, verdicts))
            if name == "execute":
                for one in trail.tries:
                    yield self._attempt(call, one, trace, here, origin)
            began = ended
        remote = call.proposal.parent is not None and call.proposal.parent.remote
        yield self._span(
            f"{a.EXECUTE_TOOL} {_tool(call)}",
            own,
            parent,
            (call.queued_at, at + origin),
            self._call(call, observation, code, repaired),
            SpanKind.SERVER if remote else SpanKind.INTERNAL,
            UNSET if observation.status in WELL else ERROR,
        )

    def _span(
        self,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        times: tuple[float, float],
        said: Attributes,
        kind: SpanKind = SpanKind.INTERNAL,
        status: Status = UNSET,
    ) -> ReadableSpan:
        return ReadableSpan(
            name,
            context,
            parent,
            self._resource,
            said,
            kind=kind,
            status=status,
            start_time=int(times[0] * 1e9),
            end_time=int(times[1] * 1e9),
            instrumentation_scope=SCOPE,
        )

    def _step(self, name: str, verdicts: Mapping[str, Verdict]) -> Attributes:
        said: Attributes = {a.PHASE: self._phases.get(name, "Request")}
        verdict = verdicts.get(name)
        if verdict is not None:
            said[a.GATE] = name
            said[a.VERDICT] = type(verdict).__name__.lower()
            if isinstance(verdict, Refusal):
                said[a.CODE] = (verdict.private or verdict.code).value
        return said

    def _attempt(self, call: Call, one: Try, trace: int, parent: SpanContext, origin: float) -> ReadableSpan:
        said: Attributes = {a.ATTEMPT: one.number, a.UPSTREAM: call.upstream}
        if one.error is not None:
            said[a.ERROR_TYPE] = said[a.CODE] = one.error
        return self._span(
            f"attempt {one.number}",
            _context(trace, one.span_id),
            parent,
            (one.began + origin, one.ended + origin),
            said,
            SpanKind.CLIENT,
            UNSET if one.error is None else ERROR,
        )

    def _call(self, call: Call, observation: Observation, code: Code | None, repaired: bool) -> Attributes:
        said: Attributes = {
            a.OPERATION: a.EXECUTE_TOOL,
            a.GEN_AI_TOOL: _tool(call),
            a.GEN_AI_CALL: call.id,
            a.TOOL: _tool(call),
            a.CALL: call.id,
            a.VALIDATION: _validation(call, repaired),
            a.RETRYABLE: observation.remedy.retryable,
            a.REPAIRABLE: observation.remedy.repairable,
            a.TENANT: call.principal.tenant,
            a.REPLAYABLE: replayable(call),
            a.STATUS: observation.status.value,
            a.REPLAYED: observation.replayed,
            a.ATTEMPTS: call.attempts,
            a.READING: call.principal.system,
            **self._if_known(call),
        }
        if code is not None:
            said[a.CODE] = code.value
        if code is not None and observation.status not in WELL:
            said[a.ERROR_TYPE] = code.value
        if call.key is not None:
            said[a.KEY_HASH] = self._secrets.commitment(call.principal.tenant, b"key\0" + call.key.encode())
        if observation.approval is not None:
            said[a.APPROVAL] = observation.approval.id
        return said

    def _if_known(self, call: Call) -> Attributes:
        said: Attributes = {}
        if (tool := getattr(call, "tool", None)) is not None:
            promise = tool.contract.transactional
            mode = approval_mode(promise.effect, promise.undo, tool.contract.runtime.reach)
            said |= {
                a.VERSION: tool.contract.version,
                a.EFFECT: promise.effect.value,
                a.APPROVAL_MODE: mode.value,
                a.UPSTREAM: call.upstream,
            }
        if (decision := getattr(call, "decision", None)) is not None:
            said[a.DECISION] = decision.id
        if call.proposal.part_of:
            said[a.PART_OF] = call.proposal.part_of
        if call.proposal.after:
            said[a.AFTER] = call.proposal.after
        return said


def _steps(call: Call, at: float) -> Iterator[tuple[str, float]]:
    """Each step, and when it was over; it began when the one before it ended."""
    names = [*(gate for gate, _ in call.verdicts), "execute", "verify"]
    yield from zip(names, call.marks, strict=False)
    yield "return", at


def replayable(call: Call) -> bool:
    """Whether the decision about this call could be made again from what was kept."""
    return call.recorded and call.commitment is not None and getattr(call, "decision", None) is not None


def _tool(call: Call) -> str:
    """Its name if there is such a tool: what a caller made up is not repeated."""
    tool: Any = getattr(call, "tool", None)
    return "unknown" if tool is None else str(tool.contract.tool)


def _validation(call: Call, repaired: bool) -> str:
    gate, verdict = call.verdicts[-1] if call.verdicts else ("", None)
    match verdict:
        case Hold():
            return "approval_pending"
        case Refusal():
            return "failed" if gate in JUDGING else "blocked"
        case Pass() | Replay() | None:
            return "repaired" if repaired else "passed"


def _context(trace: int, span: str, remote: bool = False, state: TraceState | None = None) -> SpanContext:
    return SpanContext(trace, int(span, 16), remote, SAMPLED, state)


def _parent(call: Call, trace: int) -> SpanContext | None:
    parent = call.proposal.parent
    if parent is None or parent.span_id is None:
        return None
    state = TraceState.from_header([parent.state]) if parent.state else None
    return _context(trace, parent.span_id, parent.remote, state)
