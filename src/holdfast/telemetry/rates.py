"""What do the counters say when one is divided by another?

S4's twenty rates and S3's evaluation metrics, each defined once: as PromQL for whoever watches, and evaluated
here for the gauges S1 asks for and for the tests.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from prometheus_client.samples import Sample

from holdfast.telemetry import instruments as i

WINDOW = "1h"

Op = Literal["=", "!=", "=~", "!~"]


class Where(NamedTuple):
    label: str
    op: Op
    value: str

    def holds(self, labels: dict[str, str]) -> bool:
        given = labels.get(self.label, "")
        match self.op:
            case "=":
                return given == self.value
            case "!=":
                return given != self.value
            case "=~":
                return re.fullmatch(self.value, given) is not None
            case "!~":
                return re.fullmatch(self.value, given) is None


@dataclass(frozen=True, slots=True)
class Term:
    """The sum of some series; negative terms are taken away."""

    metric: str
    where: tuple[Where, ...] = ()
    sign: int = 1

    def promql(self, by: tuple[str, ...], alone: bool) -> str:
        chosen = ", ".join(f'{w.label}{w.op}"{w.value}"' for w in self.where)
        series = f"{self.metric}{{{chosen}}}" if chosen else self.metric
        grouped = f" by ({', '.join(by)})" if by else ""
        summed = f"sum{grouped}(increase({series}[{WINDOW}]))"
        return summed if alone or by else f"({summed} or vector(0))"

    def values(self, samples: Iterable[Sample], by: tuple[str, ...]) -> dict[tuple[str, ...], float]:
        found: dict[tuple[str, ...], float] = {}
        for sample in samples:
            if sample.name == self.metric and all(w.holds(sample.labels) for w in self.where):
                group = tuple(sample.labels.get(label, "") for label in by)
                found[group] = found.get(group, 0.0) + self.sign * sample.value
        return found


@dataclass(frozen=True, slots=True)
class Rate:
    name: str
    over: tuple[Term, ...]
    under: tuple[Term, ...]
    about: str
    by: tuple[str, ...] = ()

    @property
    def promql(self) -> str:
        return f"{_sum(self.over, self.by)} / {_sum(self.under, self.by)}"

    def values(self, samples: list[Sample]) -> dict[tuple[str, ...], float]:
        """By group; a group nothing happened in has no rate."""
        over, under = _totals(self.over, samples, self.by), _totals(self.under, samples, self.by)
        return {group: over.get(group, 0.0) / total for group, total in under.items() if total}


def _sum(terms: tuple[Term, ...], by: tuple[str, ...]) -> str:
    alone = len(terms) == 1
    text = terms[0].promql(by, alone)
    for term in terms[1:]:
        text += f" {'-' if term.sign < 0 else '+'} {term.promql(by, alone)}"
    return text if alone else f"({text})"


def _totals(
    terms: tuple[Term, ...], samples: list[Sample], by: tuple[str, ...]
) -> dict[tuple[str, ...], float]:
    totals: dict[tuple[str, ...], float] = {}
    for term in terms:
        for group, value in term.values(samples, by).items():
            totals[group] = totals.get(group, 0.0) + value
    return totals


def calls(*where: tuple[str, Op, str], sign: int = 1) -> Term:
    return Term(i.CALLS, tuple(Where(*w) for w in where), sign)


def term(metric: str, *where: tuple[str, Op, str], sign: int = 1) -> Term:
    return Term(metric, tuple(Where(*w) for w in where), sign)


# What became of a proposal is told by the gate that decided it; before these its schema is not known to hold.
_EARLY = "parse|ingress|resolve|authorize|arguments"
_SCHEMA_VALID = calls(("gate", "!~", _EARLY))
_ALL = calls()
_WRITES: tuple[str, Op, str] = ("effect", "!=", "READ_ONLY")
_MUTATING = calls(_WRITES, ("effect", "!=", "unknown"))
_RAN = calls(("ran", "=", "true"))
_RAN_WRITES = calls(("ran", "=", "true"), _WRITES)

S4: tuple[Rate, ...] = (
    Rate(
        "First-Pass Schema Valid Rate",
        (_SCHEMA_VALID, term(i.REPAIRS, ("result", "=", "repaired"), sign=-1)),
        (_ALL,),
        "proposals that were well-formed without repair",
    ),
    Rate("Schema-Valid Call Rate", (_SCHEMA_VALID,), (_ALL,), "proposals that were well-formed in the end"),
    Rate(
        "Semantic-Valid Rate",
        (calls(("gate", "!~", f"{_EARLY}|semantics")),),
        (_SCHEMA_VALID,),
        "well-formed proposals that also made sense",
    ),
    Rate(
        "Validation Failure Rate",
        (calls(("status", "=", "refused"), ("replayed", "=", "false")),),
        (_ALL,),
        "proposals blocked before anything ran",
    ),
    Rate(
        "Repair Success Rate",
        (term(i.REPAIRS, ("result", "=", "repaired")),),
        (term(i.REPAIRS, ("result", "=", "triggered")),),
        "operations proposed again after a repairable refusal that then passed",
    ),
    Rate(
        "Repair Saturation Rate",
        (term(i.REPAIRS, ("result", "=", "exhausted")),),
        (term(i.REPAIRS, ("result", "=", "triggered")),),
        "such operations that used up their attempts",
    ),
    Rate(
        "Unauthorized Proposal Rate",
        (calls(("code", "=", "PERMISSION_DENIED")),),
        (_ALL,),
        "proposals of what their caller may not do, whatever the caller was told",
    ),
    Rate(
        "Policy Violation Rate",
        (calls(("code", "=", "POLICY_VIOLATION")),),
        (_ALL,),
        "proposals policy blocked",
    ),
    Rate("Confirmation Required Rate", (term(i.ASKED),), (_MUTATING,), "writes a person was asked about"),
    Rate(
        "Confirmation Rejection Rate",
        (term(f"{i.DECIDED}_count", ("resolution", "=", "denied")),),
        (term(i.ASKED),),
        "questions a person answered with no",
    ),
    Rate(
        "Confirmation Bypass Attempt Rate",
        (term(i.SECURITY, ("gate", "=", "approval")),),
        (term(i.ASKED),),
        "tries to run with an approval that is for something else, forged, used or no longer enough",
    ),
    Rate(
        "Idempotency Replay Rate",
        (calls(("replayed", "=", "true"), _WRITES),),
        (_MUTATING,),
        "writes answered by an earlier one",
    ),
    Rate(
        "Idempotency Conflict Rate",
        (term(i.KEY_MATCHES, ("result", "=", "mismatch")),),
        (term(i.KEY_MATCHES),),
        "known keys that came with other arguments",
    ),
    Rate("Retry Success Rate", (term(i.RETRY_SUCCESSES),), (term(i.RETRIES),), "retries that ended well"),
    Rate(
        "Unsafe Retry Block Rate",
        (term(i.UNSAFE_RETRIES),),
        (term(i.RETRIES), term(i.UNSAFE_RETRIES)),
        "retries not made because they could have acted twice",
    ),
    Rate(
        "Observation Normalization Failure Rate",
        (term(i.OUTPUT_INVALID),),
        (_RAN,),
        "answers that did not fit their contract",
    ),
    Rate(
        "Post-Action Verification Required Rate",
        (term(i.TO_VERIFY),),
        (_RAN_WRITES,),
        "writes whose effect the caller must check later",
    ),
    Rate(
        "Tool Cost per Successful Action",
        (term(i.COST),),
        (calls(("status", "=", "done"), ("replayed", "=", "false")),),
        "declared cost for each success; choose one currency",
    ),
    Rate(
        "Trace Completeness Rate",
        (calls(("recorded", "=", "true")),),
        (_ALL,),
        "proposals whose record was written",
    ),
)

S4_LATER = {
    "Compensation Success Rate": "nothing compensates yet: sagas come with the milestone 'Chains and sagas'"
}

S3: tuple[Rate, ...] = (
    Rate(
        "Tool success rate by adapter",
        (calls(("status", "=", "done"), ("ran", "=", "true")),),
        (_RAN,),
        "executions that were done, by upstream; by capability see below",
        by=("upstream",),
    ),
    Rate(
        "Approval-mode misclassification rate",
        (term(i.MISCLASSIFIED),),
        (_MUTATING,),
        "writes whose approval mode turned out wrong",
    ),
    Rate(
        "Permission-violation rate",
        (calls(("code", "=", "PERMISSION_DENIED")),),
        (_ALL,),
        "as the unauthorized proposal rate",
    ),
    Rate(
        "Mean latency by adapter",
        (term(f"{i.LATENCY}_sum"),),
        (term(f"{i.LATENCY}_count"),),
        "milliseconds, by upstream; p99 see below",
        by=("upstream",),
    ),
    Rate(
        "Idempotent-replay correctness",
        (term(i.KEY_MATCHES, ("result", "=~", "replayed|waited")),),
        (term(i.KEY_MATCHES, ("result", "=~", "replayed|waited|in_use|expired")),),
        "duplicates with the same arguments that got the first answer; that none acted twice is what the "
        "storm of kills and duplicates (`make soak`) counts",
    ),
)


def _by_capability(*where: str) -> str:
    """A tool may have several capabilities, so their side is the many."""
    ran = f"sum by (tool, version) (increase({i.CALLS}{{{', '.join(where)}}}[{WINDOW}]))"
    return f"sum by (capability) ({i.CAPABILITY} * on (tool, version) group_left {ran})"


S3_QUERIES = {
    "success by capability": (
        _by_capability('status="done"', 'ran="true"') + " / " + _by_capability('ran="true"')
    ),
    "p99 latency by adapter": (
        f"histogram_quantile(0.99, sum by (upstream, le) (rate({i.LATENCY}_bucket[{WINDOW}])))"
    ),
}

# S1 asks for these as gauges: they are computed when somebody looks, over the life of the process.
S1_GAUGES: dict[str, tuple[Rate, ...]] = {
    i.TIMEOUT_RATE: (
        Rate(
            "timeout",
            (term(i.TIMEOUTS),),
            (term(f"{i.LATENCY}_count"),),
            "",
            by=("tool", "version", "timeout_class"),
        ),
    ),
    i.REPLAY_RATE: (Rate("replay", (calls(("replayed", "=", "true")),), (_ALL,), "", by=("tool",)),),
    i.SCHEMA_RATE: (
        Rate(
            "input",
            (calls(("gate", "=", "arguments")),),
            (calls(("gate", "!~", "parse|ingress|resolve|authorize")),),
            "",
            by=("tool",),
        ),
        Rate("output", (term(i.OUTPUT_INVALID),), (_RAN,), "", by=("tool",)),
    ),
}
