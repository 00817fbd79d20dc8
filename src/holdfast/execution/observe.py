"""What is the caller told about a call that ran?"""

from typing import Any

from holdfast.execution.promised import Promised, promised
from holdfast.execution.verify import Judged
from holdfast.model.call import Call
from holdfast.model.contract import Contract
from holdfast.model.costs import spent
from holdfast.model.current import not_to_be_shown
from holdfast.model.errors import NO_REMEDY, remedy
from holdfast.model.limits import MILLIONTHS
from holdfast.model.masking import masked
from holdfast.model.moment import iso
from holdfast.model.observation import Observation, Outcome, Provenance, Status, Timing
from holdfast.model.redaction import withheld
from holdfast.ports import Ports


def observe(call: Call, judged: Judged, ports: Ports) -> Observation:
    contract = call.tool.contract
    always = promised(contract)
    now = iso(ports.clock.now())
    done = judged.status is Status.DONE
    redact = call.decision.redact
    asks = judged.status is Status.PARTIAL  # a question to the client, without which it cannot go on
    return Observation(
        call_id=call.id,
        tool=always.tool,
        version=always.version,
        status=judged.status,
        code=judged.code,
        message=None if judged.message is None else shown(call, judged.message),
        remedy=NO_REMEDY if judged.code is None else remedy(judged.code, judged.retry_after_ms),
        data=judged.data if not redact else masked(judged.data, redact),
        native=None if judged.native is None or (redact and not asks) else dict(judged.native),
        warnings=_warnings(call, judged) if call.warnings or judged.warnings else (),
        outcome=Outcome(judged.rung, always.strength) if always.writes else None,
        attempts=call.attempts,
        provenance=_provenance(call, always, judged, now) if done else None,
        policy_decision_id=call.decision.id,
        trace_id=call.trace_id,
        latency_ms=round((ports.clock.monotonic() - call.started) * 1000, 3),
        cost=_cost(call) if call.attempts else None,
        key=call.key,
        key_source=call.key_source,
        timing=Timing(
            iso(call.queued_at), None if call.dispatched_at is None else iso(call.dispatched_at), now
        ),
        input_commitment=call.commitment,
        grant=call.grant,
        mutations=tuple([dict(change) for change in always.mutations]) if done and always.writes else (),
        verification=None if always.verification is None else dict(always.verification),
        deprecation=None if contract.identity.deprecated_on is None else _deprecation(contract),
        steps=None if judged.steps is None else dict(judged.steps),
        fallback=None if call.proposal.fallback is None else call.proposal.fallback.told(),
        pending=None if judged.pending is None else dict(judged.pending),
        upstream_session=None if judged.session is None else dict(judged.session),
    )


def _warnings(call: Call, judged: Judged) -> tuple[str, ...]:
    return tuple(said for text in (*call.warnings, *judged.warnings) if (said := shown(call, text)))


def shown(call: Call, text: str | None) -> str | None:
    """An error's text without what its own arguments mark as not to be shown; CON-6."""
    if text is None or (call.tool.input.sensitivity.empty and not call.injected):
        return text
    return withheld(text, not_to_be_shown(call))


def _provenance(call: Call, always: Promised, judged: Judged, now: str) -> Provenance:
    at = call.proposal.fallback
    confidence = 1.0 if at is None else at.confidence
    if judged.cached_at is None:
        return Provenance(always.tool, always.version, now, "live", confidence)
    freshness = "cached" if at is None or not at.stale else "stale"
    return Provenance(always.tool, always.version, iso(judged.cached_at), freshness, confidence)


def _cost(call: Call) -> dict[str, Any] | None:
    cost = call.tool.contract.runtime.cost
    if call.reported:
        parts = (spent(call) or {"parts": {}})["parts"]
        amount = (sum(parts.values()) - call.reviewed) / MILLIONTHS
        return {"currency": cost.currency, "amount": amount, "unit": cost.unit}
    if not cost.per_call:
        return None
    return {"currency": cost.currency, "amount": cost.per_call * call.attempts, "unit": cost.unit}


def _deprecation(contract: Contract) -> dict[str, Any]:
    identity = contract.identity  # where a version stands in its life is not part of its digest
    return {
        "deprecated_on": identity.deprecated_on,
        "sunset_on": identity.sunset_on,
        "successor": identity.successor,
        "guide": identity.migration_guide,
    }
