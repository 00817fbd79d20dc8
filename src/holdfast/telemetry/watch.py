"""What is told to spans and metrics as calls go by? The `Telemetry` port of a real gateway."""

from typing import TYPE_CHECKING

from holdfast.model.approval import Approval
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.observation import Observation
from holdfast.model.operation import Operation
from holdfast.model.verdict import Refusal
from holdfast.ports import Clock, Settlement
from holdfast.telemetry.metrics import Metrics
from holdfast.telemetry.repairs import Repairs, Result

if TYPE_CHECKING:  # the SDK takes a while to import, and most gateways send nothing
    from holdfast.telemetry.spans import Spans

REPAIRING_GATES = frozenset({"arguments", "semantics"})
"""Gates whose refusal asks for other arguments."""


class Watch:
    def __init__(self, clock: Clock, spans: "Spans | None", metrics: Metrics | None) -> None:
        self._clock = clock
        self._spans = spans
        self._metrics = metrics
        self._repairs = Repairs()

    def begun(self, call: Call) -> None:
        if self._spans is not None:
            self._spans.begun(call)

    def ended(self, call: Call, observation: Observation) -> None:
        if call.trail is None and self._metrics is None:
            return
        now = self._clock.monotonic()
        gate, verdict = call.verdicts[-1] if call.verdicts else ("", None)
        code, repairable = observation.code, False
        if isinstance(verdict, Refusal):
            code, repairable = verdict.private or code, gate in REPAIRING_GATES
        repairs: tuple[Result, ...] = ()
        if call.key is not None and (repairable or self._repairs):
            repairs = self._repairs.see(call.ref, repairable)
        if self._metrics is not None:
            self._metrics.ended(call, observation, code, repairs, now)
        if self._spans is not None and call.trail is not None:
            self._spans.ended(call, observation, code, "repaired" in repairs, now)

    def turned_away(self, observation: Observation, tenant: str, why: str) -> None:
        if self._metrics is not None:
            code = observation.code or Code.INTERNAL
            self._metrics.turned_away(tenant, why, code, observation.status)

    def settled(self, operation: Operation, settlement: Settlement) -> None:
        if self._metrics is not None:
            ref = operation.ref
            self._metrics.settled(ref.tenant, ref.tool, settlement.state.value, settlement.by)

    def decided(self, approval: Approval) -> None:
        if self._metrics is not None:
            self._metrics.decided(approval)

    def answered_at(self, tenant: str, capability: str, level: int) -> None:
        if self._metrics is not None:
            self._metrics.answered_at(tenant, capability, level)
