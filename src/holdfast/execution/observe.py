"""What is the caller told about a call that ran?"""

from datetime import UTC, datetime
from typing import Any

from holdfast.execution.verify import Judged
from holdfast.model.call import Call
from holdfast.model.current import not_to_be_shown
from holdfast.model.errors import remedy
from holdfast.model.observation import NO_REMEDY, Observation, Outcome, Provenance, Status, Timing
from holdfast.model.redaction import withheld
from holdfast.model.vocabulary import Effect, Strength
from holdfast.ports import Ports


def observe(call: Call, judged: Judged, ports: Ports) -> Observation:
    contract = call.tool.contract
    completed = ports.clock.now()
    done = judged.status is Status.DONE
    return Observation(
        call_id=call.id,
        tool=contract.tool,
        version=contract.version,
        status=judged.status,
        code=judged.code,
        message=shown(call, judged.message),
        remedy=NO_REMEDY if judged.code is None else remedy(judged.code, judged.retry_after_ms),
        data=judged.data,
        native=None if judged.native is None else dict(judged.native),
        warnings=tuple(said for text in (*call.warnings, *judged.warnings) if (said := shown(call, text))),
        outcome=Outcome(judged.rung, strength(call)) if call.writes else None,
        attempts=call.attempts,
        provenance=_provenance(call, judged, completed) if done else None,
        policy_decision_id=call.decision.id,
        trace_id=call.trace_id,
        latency_ms=round((ports.clock.monotonic() - call.started) * 1000, 3),
        cost=_cost(call),
        key=call.key,
        key_source=call.key_source,
        timing=Timing(
            iso(call.queued_at),
            None if call.dispatched_at is None else iso(call.dispatched_at),
            iso(completed),
        ),
        input_commitment=call.commitment,
        mutations=_mutations(call) if done and call.writes else (),
        verification=_verification(call),
        deprecation=_deprecation(call),
    )


def shown(call: Call, text: str | None) -> str | None:
    """An error's text without what its own arguments mark as not to be shown; CON-6."""
    if text is None or call.tool.input.sensitivity.empty:
        return text
    return withheld(text, not_to_be_shown(call))


def strength(call: Call) -> Strength:
    """How firmly the key is bound to the effect; IDM-7."""
    contract = call.tool.contract
    if contract.honours_key:
        return Strength.EXACTLY_ONCE
    if contract.transactional.probe is not None:
        return Strength.PROBED
    return Strength.NONE if contract.effect is Effect.EPHEMERAL_WRITE else Strength.AT_MOST_ONCE


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def _provenance(call: Call, judged: Judged, completed: float) -> Provenance:
    cached = judged.cached_at is not None
    return Provenance(
        source=call.tool.contract.tool,
        version=call.tool.contract.version,
        retrieved_at=iso(completed if judged.cached_at is None else judged.cached_at),
        freshness="cached" if cached else "live",
        confidence=1.0,
    )


def _cost(call: Call) -> dict[str, Any] | None:
    cost = call.tool.contract.runtime.cost
    if not cost.per_call or not call.attempts:
        return None
    return {"currency": cost.currency, "amount": cost.per_call * call.attempts, "unit": cost.unit}


def _mutations(call: Call) -> tuple[dict[str, Any], ...]:
    """What the contract says was changed; observed changes are told apart by `observed`."""
    return tuple(
        {"resource": e.resource, "operation": e.operation.value, "scope": e.scope, "observed": False}
        for e in call.tool.contract.transactional.manifest
    )


def _verification(call: Call) -> dict[str, Any] | None:
    hint = call.tool.contract.transactional.verification
    if hint is None:
        return None
    return {"required": True, "target": hint.target, "expected": hint.expected, "delay_s": hint.delay_s}


def _deprecation(call: Call) -> dict[str, Any] | None:
    identity = call.tool.contract.identity
    if identity.deprecated_on is None:
        return None
    return {
        "deprecated_on": identity.deprecated_on,
        "sunset_on": identity.sunset_on,
        "successor": identity.successor,
        "guide": identity.migration_guide,
    }
