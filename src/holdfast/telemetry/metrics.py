"""What is counted when a call ends?

One counter and one histogram for a call that goes well; the rest only where there is something to tell. The
series of a label set are looked up once and kept.
"""

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import Metric

from holdfast.model.approval import Answer, Approval
from holdfast.model.call import Call
from holdfast.model.derive import approval_mode, mutation_class
from holdfast.model.errors import TABLE, Code
from holdfast.model.observation import Observation, Status
from holdfast.model.tool import Tool
from holdfast.model.verdict import Hold, Pass, Refusal
from holdfast.telemetry import instruments as i
from holdfast.telemetry.repairs import Result

TENANT = "tenant"
_KEY_RESULTS = {
    Code.KEY_MISMATCH: "mismatch",
    Code.KEY_IN_USE: "in_use",
    Code.KEY_EXPIRED: "expired",
}
_RESOLUTIONS = {Answer.APPROVED: "approved", Answer.DENIED: "denied", Answer.AUTO_DENIED: "auto_denied"}
_SETTLERS = frozenset({"probe", "sweep", "late"})
_NEED_ROSE = frozenset({("claim", Code.POLICY_VIOLATION), ("approval", Code.APPROVAL_DENIED)})
"""Where a refusal with a security event means that more approval is needed than before."""


class Metrics:
    """One registry per gateway: two gateways in a process count apart."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._families = {name: _declare(name, it, self._registry) for name, it in i.COUNTED.items()}
        self._series: dict[tuple[str, ...], Any] = {}
        self._told: dict[tuple[str, str], tuple[str, ...]] = {}

    def collect(self) -> list[Metric]:
        return list(self._registry.collect())

    def turned_away(self, tenant: str, gate: str, code: Code, status: Status) -> None:
        """A proposal that reached no gate."""
        self._add(i.CALLS, (tenant, *_UNKNOWN, status.value, code.value, gate, "false", "false", "false"))

    def ended(
        self,
        call: Call,
        observation: Observation,
        code: Code | None,
        repairs: tuple[Result, ...],
        now: float,
    ) -> None:
        tenant = call.principal.tenant
        tool: Tool | None = getattr(call, "tool", None)
        name = "unknown" if tool is None else tool.contract.tool
        if call.principal.system:
            self._add(i.READINGS, (tenant, name, observation.status.value))
            return
        gate = _deciding_gate(call)
        about = _UNKNOWN if tool is None else self._about(call, tool)
        self._add(
            i.CALLS,
            (
                tenant,
                *about,
                observation.status.value,
                "" if code is None else code.value,
                gate,
                "true" if observation.replayed else "false",
                "true" if call.attempts else "false",
                "true" if call.recorded else "false",
            ),
        )
        for result in repairs:
            self._add(i.REPAIRS, (tenant, name, result))
        if call.alarms:
            self._add(i.SECURITY, (tenant, name, gate), len(call.alarms))
        if tool is None:
            return
        if not gate:
            self._passed(call, tool, observation, now)
        if call.writes:
            self._write(call, tool, observation, code, gate)

    def settled(self, tenant: str, tool: str, state: str, by: str) -> None:
        self._add(i.SETTLED, (tenant, tool, state, by if by in _SETTLERS else "person"))

    def decided(self, approval: Approval) -> None:
        resolution = _RESOLUTIONS.get(approval.answer)
        if resolution is None:
            return
        timed_out = approval.answer is Answer.AUTO_DENIED
        at = approval.expires_at if timed_out else approval.votes[-1].at
        labels = (approval.ref.tenant, approval.ref.tool, resolution)
        self._series_of(i.DECIDED, labels).observe(max(at - approval.created_at, 0.0) * 1000)

    def _passed(self, call: Call, tool: Tool, observation: Observation, now: float) -> None:
        """Every gate let it through."""
        contract, tenant = tool.contract, call.principal.tenant
        version, kind = contract.version, contract.runtime.timeout_class.value
        latency = self._series_of(i.LATENCY, (tenant, contract.tool, version, call.upstream, kind))
        latency.observe((now - call.started) * 1000)
        if now >= call.deadline or observation.code is Code.TIMEOUT:
            self._add(i.TIMEOUTS, (tenant, contract.tool, version, kind))
        if call.misfit:
            self._add(i.OUTPUT_INVALID, (tenant, contract.tool, version))
        if call.attempts > 1:
            self._add(i.RETRIES, (tenant, contract.tool, version), call.attempts - 1)
            if observation.status is Status.DONE:
                self._add(i.RETRY_SUCCESSES, (tenant, contract.tool, version))
        cost = contract.runtime.cost
        if cost.per_call and call.attempts:
            category = cost.categories[0] if len(cost.categories) == 1 else "unsplit"
            spent = cost.per_call * call.attempts
            self._add(i.COST, (tenant, contract.tool, version, category, cost.currency), spent)

    def _write(self, call: Call, tool: Tool, observation: Observation, code: Code | None, gate: str) -> None:
        tenant, contract = call.principal.tenant, tool.contract
        matched = _key_result(call, observation, code, gate)
        if matched is not None:
            self._add(i.KEY_MATCHES, (tenant, contract.tool, matched))
        if observation.status is Status.HELD and call.earlier is None:
            self._add(i.ASKED, (tenant, contract.tool))
        if call.attempts and observation.verification is not None:
            self._add(i.TO_VERIFY, (tenant, contract.tool))
        blocked = _unsafe_retry(call, tool, observation)
        if blocked is not None:
            self._add(i.UNSAFE_RETRIES, (tenant, contract.tool, contract.version, blocked))
        if code is Code.EFFECT_MISMATCH or (call.alarms and (gate, code) in _NEED_ROSE):
            promise = contract.transactional
            mode = approval_mode(promise.effect, promise.undo, contract.runtime.reach)
            self._add(i.MISCLASSIFIED, (tenant, contract.tool, mode.value))

    def _about(self, call: Call, tool: Tool) -> tuple[str, ...]:
        contract = tool.contract
        found = self._told.get((contract.tool, contract.version))
        if found is None:
            promise = contract.transactional
            found = self._told[contract.tool, contract.version] = (
                contract.tool,
                contract.version,
                call.upstream,
                promise.effect.value,
                mutation_class(promise.effect, promise.undo).value,
            )
        return found

    def _add(self, metric: str, labels: tuple[str, ...], amount: float = 1) -> None:
        self._series_of(metric, labels).inc(amount)

    def _series_of(self, metric: str, labels: tuple[str, ...]) -> Any:
        series = self._series.get((metric, *labels))
        if series is None:
            series = self._series[(metric, *labels)] = self._families[metric].labels(*labels)
        return series


_UNKNOWN = ("unknown", "", "", "unknown", "unknown")


def _declare(name: str, it: i.Instrument, registry: CollectorRegistry) -> Any:
    labels = (TENANT, *it.labels)
    if it.kind == "counter":
        return Counter(name.removesuffix("_total"), it.about, labels, registry=registry)
    make: Callable[..., Any] = Histogram
    return make(name, it.about, labels, registry=registry, buckets=it.bounds)


def _deciding_gate(call: Call) -> str:
    gate, verdict = call.verdicts[-1] if call.verdicts else ("ingress", None)
    return "" if isinstance(verdict, Pass) else gate


def _key_result(call: Call, observation: Observation, code: Code | None, gate: str) -> str | None:
    """What a known key led to; None for a new one."""
    verdict = call.verdicts[-1][1]
    if isinstance(verdict, Refusal) and code in _KEY_RESULTS:
        return _KEY_RESULTS[code]
    if observation.replayed:
        first_was_running = gate == "claim" or (call.earlier is not None and call.earlier.state.running)
        return "waited" if first_was_running else "replayed"
    if call.earlier is None or isinstance(verdict, Refusal | Hold):
        return None
    return "resumed"


def _unsafe_retry(call: Call, tool: Tool, observation: Observation) -> str | None:
    """Who wanted to repeat what could have acted twice."""
    if tool.contract.honours_key:
        return None
    if observation.replayed:
        return "caller" if observation.status is Status.UNKNOWN else None
    if call.attempts != 1 or not tool.contract.runtime.max_retries or observation.code is None:
        return None
    failed = observation.status in (Status.FAILED, Status.UNKNOWN)
    wanted = TABLE[observation.code].remedy().retryable or observation.code is Code.OUTCOME_UNKNOWN
    return "gateway" if failed and wanted else None
