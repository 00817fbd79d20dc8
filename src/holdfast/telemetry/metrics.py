"""What is counted when a call ends?

One counter and one histogram for a call that goes well; the rest only where there is something to tell. The
two series of calls that end alike are looked up once and kept.
"""

from prometheus_client.metrics_core import Metric

from holdfast.model.approval import Answer, Approval
from holdfast.model.call import Call
from holdfast.model.costs import spent as spent_on
from holdfast.model.derive import approval_mode, mutation_class
from holdfast.model.errors import TABLE, Code
from holdfast.model.limits import MILLIONTHS
from holdfast.model.observation import Observation, Status
from holdfast.model.tool import Tool
from holdfast.model.verdict import PASS, Hold, Pass, Refusal
from holdfast.telemetry import instruments as i
from holdfast.telemetry.repairs import Result
from holdfast.telemetry.series import TENANT, Count, Spread, counted, spread

__all__ = ["TENANT", "Metrics"]

_KEY_RESULTS = {
    Code.KEY_MISMATCH: "mismatch",
    Code.KEY_IN_USE: "in_use",
    Code.KEY_EXPIRED: "expired",
}
_RESOLUTIONS = {Answer.APPROVED: "approved", Answer.DENIED: "denied", Answer.AUTO_DENIED: "auto_denied"}
_SETTLERS = frozenset({"probe", "sweep", "late"})
_NEED_ROSE = frozenset({("claim", Code.POLICY_VIOLATION), ("approval", Code.APPROVAL_DENIED)})
"""Where a refusal with a security event means that more approval is needed than before."""
_DONE, _TIMEOUT = Status.DONE, Code.TIMEOUT

Ending = tuple[str, str, str, Status, Code | None, str, bool, bool, bool]
"""Tenant, contract, upstream, status, code, gate; replayed, ran, recorded."""


class Metrics:
    """One registry per gateway: two gateways in a process count apart."""

    def __init__(self) -> None:
        self._counts = {name: counted(name, it) for name, it in i.COUNTED.items() if it.kind == "counter"}
        self._spreads = {name: spread(name, it) for name, it in i.COUNTED.items() if it.kind == "histogram"}
        self._alike: dict[Ending, tuple[Count, Spread | None]] = {}

    def collect(self) -> list[Metric]:
        found = {name: family.metric() for name, family in self._counts.items()}
        found |= {name: family.metric() for name, family in self._spreads.items()}
        return [found[name] for name in i.COUNTED]

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
        if tool is None:
            self._add(i.CALLS, (tenant, *_UNKNOWN, *_told(call, observation, code, gate)))
        else:
            ending = (
                tenant,
                tool.contract.digest,
                call.upstream,
                observation.status,
                code,
                gate,
                observation.replayed,
                call.attempts > 0,
                call.recorded,
            )
            count, latency = self._alike.get(ending) or self._series(ending, call, observation)
            count.value += 1
            if latency is not None:  # every gate let it through
                latency.observe((now - call.started) * 1000)
                self._passed(call, tool, observation, now)
        for result in repairs:
            self._add(i.REPAIRS, (tenant, name, result))
        if call.alarms:
            self._add(i.SECURITY, (tenant, name, gate), len(call.alarms))
        if tool is not None and tool.writes and not _plain_write(call, observation, gate):
            self._write(call, tool, observation, code, gate)

    def _series(self, ending: Ending, call: Call, observation: Observation) -> tuple[Count, Spread | None]:
        """Kept: there are as many endings as there are series."""
        contract, tenant = call.tool.contract, ending[0]
        promise, kind = contract.transactional, contract.runtime.timeout_class.value
        about = (
            contract.tool,
            contract.version,
            call.upstream,
            promise.effect.value,
            mutation_class(promise.effect, promise.undo).value,
        )
        told = _told(call, observation, ending[4], ending[5])
        latency = None
        if not ending[5]:
            latency = self._spreads[i.LATENCY].of((tenant, *about[:3], kind))
        found = self._alike[ending] = (self._counts[i.CALLS].of((tenant, *about, *told)), latency)
        return found

    def answered_at(self, tenant: str, capability: str, level: int) -> None:
        self._spreads[i.FALLBACK].of((tenant, capability)).observe(level)

    def settled(self, tenant: str, tool: str, state: str, by: str) -> None:
        self._add(i.SETTLED, (tenant, tool, state, by if by in _SETTLERS else "person"))

    def decided(self, approval: Approval) -> None:
        resolution = _RESOLUTIONS.get(approval.answer)
        if resolution is None:
            return
        timed_out = approval.answer is Answer.AUTO_DENIED
        at = approval.expires_at if timed_out else approval.votes[-1].at
        labels = (approval.ref.tenant, approval.ref.tool, resolution)
        self._spreads[i.DECIDED].of(labels).observe(max(at - approval.created_at, 0.0) * 1000)

    def _passed(self, call: Call, tool: Tool, observation: Observation, now: float) -> None:
        """Every gate let it through."""
        contract, tenant = tool.contract, call.principal.tenant
        version = contract.identity.version
        if now >= call.deadline or observation.code is _TIMEOUT:
            kind = contract.runtime.timeout_class.value
            self._add(i.TIMEOUTS, (tenant, contract.tool, version, kind))
        if call.grant is not None:
            self._add(i.COVERED, (tenant, contract.tool, str(call.grant["scope"]).partition(":")[0]))
        if call.misfit:
            self._add(i.OUTPUT_INVALID, (tenant, contract.tool, version))
        if call.attempts > 1:
            self._add(i.RETRIES, (tenant, contract.tool, version), call.attempts - 1)
            if observation.status is Status.DONE:
                self._add(i.RETRY_SUCCESSES, (tenant, contract.tool, version))
        cost = contract.runtime.cost
        if call.attempts and (cost.parts or call.reported or call.reviewed):
            for part, amount in (spent_on(call) or {"parts": {}})["parts"].items():
                self._add(i.COST, (tenant, contract.tool, version, part, cost.currency), amount / MILLIONTHS)
        elif cost.per_call and call.attempts:
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
        if code is Code.EFFECT_MISMATCH or ((gate, code) in _NEED_ROSE and _alarming(call)):
            promise = contract.transactional
            mode = approval_mode(promise.effect, promise.undo, contract.runtime.reach)
            self._add(i.MISCLASSIFIED, (tenant, contract.tool, mode.value))

    def _add(self, metric: str, labels: tuple[str, ...], amount: float = 1) -> None:
        self._counts[metric].of(labels).value += amount


_UNKNOWN = ("unknown", "", "", "unknown", "unknown")


def _told(call: Call, observation: Observation, code: Code | None, gate: str) -> tuple[str, ...]:
    """How a call ended, as labels."""
    yes = ("false", "true")
    return (
        observation.status.value,
        "" if code is None else code.value,
        gate,
        yes[observation.replayed],
        yes[call.attempts > 0],
        yes[call.recorded],
    )


def _plain_write(call: Call, observation: Observation, gate: str) -> bool:
    """A new operation that went well at once: there is nothing more to tell of it."""
    return (
        observation.status is _DONE
        and observation.code is None
        and not gate
        and call.earlier is None
        and not observation.replayed
        and observation.verification is None
    )


def _deciding_gate(call: Call) -> str:
    gate, verdict = call.verdicts[-1] if call.verdicts else ("ingress", None)
    return "" if verdict is PASS or isinstance(verdict, Pass) else gate


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


def _alarming(call: Call) -> bool:
    """Whether anything is wrong with it; that policy wants its use told is no such thing."""
    return len(call.alarms) > len(call.decision.alert)


def _unsafe_retry(call: Call, tool: Tool, observation: Observation) -> str | None:
    """Who wanted to repeat what could have acted twice."""
    if tool.contract.honours_key:
        return None
    if observation.replayed:
        return "caller" if observation.unsettled else None
    if call.attempts != 1 or not tool.contract.runtime.max_retries or observation.code is None:
        return None
    failed = observation.status in (Status.FAILED, Status.UNKNOWN)
    wanted = TABLE[observation.code].remedy().retryable or observation.code is Code.OUTCOME_UNKNOWN
    return "gateway" if failed and wanted else None
