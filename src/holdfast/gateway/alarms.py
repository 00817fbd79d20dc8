"""What is wrong? One rule per kind of alert, each over figures that were gathered before; TEL-3.

A rule says what is true now. That one is raised once and ended when it is no longer true is the desk's doing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from holdfast.config.alerts import Alerts as Thresholds
from holdfast.model import defaults
from holdfast.model.contract import Contract
from holdfast.model.errors import Code
from holdfast.model.limits import MILLIONTHS
from holdfast.model.run import Run, RunState
from holdfast.model.signs import Costed, Exhausted, Repeat
from holdfast.model.view import Traffic
from holdfast.model.vocabulary import Reach, TimeoutClass
from holdfast.telemetry.health import Health

DAY_S = 86_400.0
WINDOW = f"in {defaults.HEALTH_WINDOW_S / 60:g} minutes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What one tenant's calls and questions look like now."""

    now: float
    window: Sequence[Traffic] = ()
    tools: Mapping[str, Health] = field(default_factory=dict)
    contracts: Mapping[str, Contract] = field(default_factory=dict)
    waiting: Mapping[str, "Waiting"] = field(default_factory=dict)
    """By role."""
    exhausted: Sequence[Exhausted] = ()
    repeats: Sequence[Repeat] = ()
    costs: Sequence[Costed] = ()
    stuck: Sequence[Run] = ()
    """Runs of chains that wait for a person."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Questions that wait for one role, and for how long there were too many."""

    asked: int
    for_s: float
    oldest_s: float


@dataclass(frozen=True, slots=True)
class Finding:
    """Something is wrong: what, with what, in words that end with what to do, and the figures."""

    kind: str
    subject: str
    text: str
    facts: Mapping[str, Any]


Rule = Callable[[Situation, Thresholds], Iterable[Finding]]


def degraded(seen: Situation, limits: Thresholds) -> Iterator[Finding]:
    """More calls fail by the tool's own fault than may."""
    for tool, health in seen.tools.items():
        if health.calls >= limits.least_calls and health.error_share > limits.errors:
            codes = _codes(seen.window, tool)
            text = (
                f"{tool!r} fails: {health.errors} of {health.calls} calls {WINDOW}, mostly {codes[0][0]}; "
                "look at its upstream, and halt it if it does harm"
                if codes
                else f"{tool!r} fails: {health.errors} of {health.calls} calls {WINDOW}; look at its upstream"
            )
            yield Finding("degraded", tool, text, _health(health) | {"codes": dict(codes)})


def latency_regression(seen: Situation, limits: Thresholds) -> Iterator[Finding]:
    """The slowest calls take far longer than they did."""
    for tool, health in seen.tools.items():
        p99, usual = health.p99_ms, health.baseline_ms
        if health.calls >= limits.least_latencies and p99 and usual and p99 > limits.latency * usual:
            text = (
                f"{tool!r} is slow: p99 {_ms(p99)}, {p99 / usual:.1f} times its usual {_ms(usual)}; "
                "look at its upstream and at what it depends on"
            )
            yield Finding("latency_regression", tool, text, _health(health))


def timeouts(seen: Situation, limits: Thresholds) -> Iterator[Finding]:
    """More calls overrun their time than may."""
    for health in _overrunning(seen, limits):
        text = (
            f"{health.subject!r} runs out of time: {health.timeouts} of {health.calls} calls {WINDOW}; "
            "look at its upstream, or give it another timeout class"
        )
        yield Finding("timeouts", health.subject, text, _health(health))


def timeout_class(seen: Situation, limits: Thresholds) -> Iterator[Finding]:
    """Calls overrun their time because the contract promises too little; S1's reclassification."""
    for health in _overrunning(seen, limits):
        contract = seen.contracts.get(health.subject)
        if contract is None:
            continue
        is_now, better = contract.runtime.timeout_class, proposed(health, contract)
        if better is not is_now:
            text = (
                f"{health.subject!r} is of timeout class {is_now.value!r} and its p99 is "
                f"{_ms(health.p99_ms or 0.0)}; declare {better.value!r} in its contract"
            )
            facts = _health(health) | {"timeout_class": is_now.value, "proposed": better.value}
            yield Finding("timeout_class", health.subject, text, facts)


def approval_backlog(seen: Situation, limits: Thresholds) -> Iterator[Finding]:
    """People do not keep up with the questions."""
    for role, waiting in seen.waiting.items():
        if waiting.asked >= limits.backlog and waiting.for_s >= limits.backlog_s:
            text = (
                f"{waiting.asked} approvals wait for {role!r}, the oldest for {waiting.oldest_s / 60:.0f} "
                "minutes; answer them, add people, or see 'holdfast rules proposals'"
            )
            facts = {"waiting": waiting.asked, "for_s": round(waiting.for_s)}
            yield Finding("approval_backlog", role, text, facts | {"oldest_s": round(waiting.oldest_s)})


def retry_exhaustion(seen: Situation, limits: Thresholds) -> Iterator[Finding]:
    """Calls failed although everything was tried that may be."""
    counts: dict[str, int] = defaultdict(int)
    attempts: dict[str, int] = defaultdict(int)
    for one in seen.exhausted:
        contract = seen.contracts.get(one.tool)
        if contract is None or one.attempts > contract.runtime.max_retries:
            counts[one.tool] += one.calls
            attempts[one.tool] = max(attempts[one.tool], one.attempts)
    for tool, calls in counts.items():
        if calls >= limits.exhausted:
            text = (
                f"{calls} calls of {tool!r} failed after {attempts[tool]} attempts {WINDOW}; "
                "look at its upstream: more retries will not help"
            )
            yield Finding("retry_exhaustion", tool, text, {"calls": calls, "attempts": attempts[tool]})


def runaway_loop(seen: Situation, limits: Thresholds) -> Iterator[Finding]:
    """Somebody does the same again and again, far faster than anybody reads the answers.

    Calls of one caller at one tool, within a minute, that are refused, fail or are replayed alike. What is
    done counts only where a task ties it together, and only in far larger numbers: a batch is no loop.
    """
    for one in seen.repeats:
        least = limits.loop_calls if one.status == "done" else limits.loop_failures
        alike = one.calls / one.together
        if one.calls < least or alike < defaults.LOOP_SHARE:
            continue
        task = f" for task {one.task[:64]!r}" if one.task else ""
        ended = one.code or one.status
        text = (
            f"{one.caller!r} called {one.tool!r} {one.calls} times in a minute{task}, each time {ended}; "
            "stop the agent, or halt its principal"
        )
        facts = {"caller": one.caller, "task": one.task, "tool": one.tool, "ended": ended, "calls": one.calls}
        yield Finding("runaway_loop", _subject(one), text, facts | {"alike": round(alike, 3)})


def cost_anomaly(seen: Situation, limits: Thresholds) -> Iterator[Finding]:
    """A tool's day, or a task, costs far more than such a thing does."""
    today = int(seen.now // DAY_S)
    days: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    tasks: dict[str, dict[str, int]] = defaultdict(dict)
    for one in seen.costs:
        if one.tool:
            days[one.tool, one.currency][one.day] = one.cost
        else:
            tasks[one.currency][one.task] = one.cost
    for (tool, currency), costs in days.items():
        before = [cost for day, cost in costs.items() if day < today]
        if before:
            yield from _dear("tool", tool, currency, costs.get(today, 0), median(before), len(before), limits)
    usual = {currency: median(costs.values()) for currency, costs in tasks.items()}
    for one in seen.costs:
        if one.task and one.day == today:
            others = len(tasks[one.currency]) - 1
            yield from _dear("task", one.task, one.currency, one.cost, usual[one.currency], others, limits)


def output_violation(seen: Situation, limits: Thresholds) -> Iterator[Finding]:
    """A tool answers what its contract says it never does."""
    then = "compare its output schema with what it sends"
    yield from _by_code(
        seen, Code.OUTPUT_INVALID, "output_violation", "gave answers that break its contract", then
    )


def effect_violation(seen: Situation, limits: Thresholds) -> Iterator[Finding]:
    """A tool did something else than it declares."""
    then = "check the targets, and halt the tool until its contract is right"
    yield from _by_code(
        seen, Code.EFFECT_MISMATCH, "effect_violation", "had another effect than declared", then
    )


def quarantined(seen: Situation, limits: Thresholds) -> Iterator[Finding]:
    """A tool is called that changed behind its contract, and waits for an operator."""
    then = "see 'holdfast changes', and accept it or leave it"
    yield from _by_code(seen, Code.TOOL_QUARANTINED, "quarantined", "was called while in quarantine", then)


def compensation_failed(seen: Situation, limits: Thresholds) -> Iterator[Finding]:
    """A run could not take back what it did: a part of it stands, and nobody meant it to; SAG-3."""
    for run in seen.stuck:
        if run.state is RunState.COMPENSATION_FAILED:
            yield _stuck("compensation_failed", run, "could not take back what it did")


def run_waits(seen: Situation, limits: Thresholds) -> Iterator[Finding]:
    """A run goes neither forward nor back until a person decides."""
    for run in seen.stuck:
        if run.state is not RunState.COMPENSATION_FAILED:
            what = "waits for somebody to choose its way" if run.chooses else "goes neither forward nor back"
            yield _stuck("run_waits", run, what)


RULES: tuple[Rule, ...] = (
    degraded,
    latency_regression,
    timeouts,
    timeout_class,
    approval_backlog,
    retry_exhaustion,
    runaway_loop,
    cost_anomaly,
    output_violation,
    effect_violation,
    quarantined,
    compensation_failed,
    run_waits,
)
KINDS = tuple(rule.__name__ for rule in RULES)


def findings(seen: Situation, limits: Thresholds) -> list[Finding]:
    """Everything that is wrong, each kind and subject once."""
    found: dict[tuple[str, str], Finding] = {}
    for rule in RULES:
        for one in rule(seen, limits):
            found.setdefault((one.kind, one.subject), one)
    return list(found.values())


def proposed(health: Health, contract: Contract) -> TimeoutClass:
    """The class whose time the slowest calls keep to. What was stopped at its limit would have gone on."""
    p99 = health.p99_ms or 0.0
    if health.timeout_share > 0.01:  # then the 99th of a hundred calls is one of those
        p99 = max(p99, contract.runtime.timeout_s * 1000)
    for one, limit_s in defaults.TIMEOUT_S.items():
        if one is TimeoutClass.INTERACTIVE and contract.runtime.reach not in (Reach.NONE, Reach.LOCAL):
            continue  # S1: no external input or output
        if p99 < limit_s * 1000:
            return one
    return TimeoutClass.ASYNC


def _overrunning(seen: Situation, limits: Thresholds) -> list[Health]:
    return [
        health
        for health in seen.tools.values()
        if health.calls >= limits.least_calls and health.timeout_share > limits.timeouts
    ]


def _stuck(kind: str, run: Run, what: str) -> Finding:
    """Without what tools have said: that is read where it is marked as theirs."""
    text = (
        f"run {run.id!r} of chain {run.chain!r} {what}; look at it with 'holdfast chain show {run.id}', "
        f"then {'choose' if run.chooses else 'resume'} or abandon it"
    )
    facts = {"chain": run.chain, "version": run.version, "state": run.state, "started_by": run.principal}
    return Finding(kind, run.id, text, facts)


def _by_code(seen: Situation, code: Code, kind: str, what: str, then: str) -> Iterator[Finding]:
    counts: dict[str, int] = defaultdict(int)
    for row in seen.window:
        if row.code == code:
            counts[row.tool] += row.calls
    for tool, calls in counts.items():
        times = "once" if calls == 1 else f"{calls} times"
        yield Finding(kind, tool, f"{tool!r} {what} {times} {WINDOW}; {then}", {"calls": calls})


def _dear(
    what: str, name: str, currency: str, cost: int, usual: float, samples: int, limits: Thresholds
) -> Iterator[Finding]:
    if samples < defaults.COST_SAMPLES or cost <= limits.cost * usual or not usual:
        return
    spans = "today" if what == "tool" else "so far"
    text = (
        f"{what} {name[:64]!r} cost {cost / MILLIONTHS:.2f} {currency} {spans}, {cost / usual:.1f} times the "
        f"usual {usual / MILLIONTHS:.2f}; see 'holdfast costs', and bound it with 'limits.budgets'"
    )
    facts = {"cost": cost, "median": usual, "currency": currency, "samples": samples}
    yield Finding("cost_anomaly", f"{what}:{name}", text, facts)


def _codes(window: Iterable[Traffic], tool: str) -> list[tuple[str, int]]:
    counts: dict[str, int] = defaultdict(int)
    for row in window:
        if row.tool == tool and row.code and row.status in ("failed", "unknown"):
            counts[row.code] += row.calls
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


def _subject(one: Repeat) -> str:
    return f"{one.caller} {one.tool}" + (f" {one.task[:64]}" if one.task else "")


def _health(health: Health) -> dict[str, Any]:
    return {name: figure for name, figure in health.shown().items() if name != "name"}


def _ms(latency: float) -> str:
    return f"{latency:.0f} ms" if latency < 10_000 else f"{latency / 1000:.0f} s"
