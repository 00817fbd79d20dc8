"""The reference page of telemetry, read off the code."""

from collections.abc import Iterable

from holdfast.telemetry.attributes import SPAN_ATTRIBUTES
from holdfast.telemetry.instruments import COUNTED, LOOKED_UP, Instrument
from holdfast.telemetry.rates import S3, S3_QUERIES, S4, S4_LATER, Rate

INTRO = """# Telemetry

What can be seen of a gateway from outside. The tables are `attributes.py`, `instruments.py` and `rates.py`
in `src/holdfast/telemetry/`; this page is generated from them. How to switch things on is in [how to
observe](../how-to/observe.md), the keys are in [configuration](config.md).

No argument, result, key, name of a person or text of an error is in a span or a metric. A key appears as a
hash under a secret of its tenant.

## Spans

A sampled call is one span, `execute_tool <tool>`: kind SERVER when its caller sent a `traceparent`, else
INTERNAL. Its children follow each other without a gap: one per gate, in the gates' order, then `execute`,
`verify` and `return`. Below `execute` stands one CLIENT span `attempt <n>` per try at the upstream. A read
the gateway makes for a gate or a probe is a call of its own inside the one it is made for.

The upstream gets the `traceparent` of its attempt, and the caller's `tracestate` unchanged. When a call is
not sampled, the caller's own `traceparent` goes on.

"""

METRICS = """
## Metrics

Prometheus text at `GET /metrics`; over OTLP with `telemetry.metrics: otlp`. S1's names, with `_` for `.`, and
`_total` for counters. Counted as calls end, in this process:

"""

LOOKED = """
Computed when somebody looks. What is named `holdfast_` belongs to the process and is shown only to who sees
every tenant:

"""

RATES = """
## Rates

Add `by (tool)` to any of these to see tools apart. S4's twenty:

"""

EVALUATION = """
S3's five evaluation metrics:

"""

LATER = """
## Not there yet

"""

LATER_MORE = (
    "- The six parts of a cost: contracts declare one figure, counted under its category.\n"
    "- W3C context over MCP and gRPC comes with those protocols.\n"
)


def telemetry() -> str:
    spans = table(
        ("attribute", "on", "says"), ((f"`{name}`", on, text) for name, (on, text) in SPAN_ATTRIBUTES.items())
    )
    capability, p99 = S3_QUERIES.values()
    return "".join(
        [
            INTRO,
            spans,
            METRICS,
            metrics(COUNTED),
            LOOKED,
            metrics(LOOKED_UP),
            RATES,
            rates(S4),
            EVALUATION,
            rates(S3),
            f"\nSuccess by capability:\n\n```text\n{capability}\n```\n",
            f"\np99 latency by upstream:\n\n```text\n{p99}\n```\n",
            LATER,
            "".join(f"- {name}: {why}.\n" for name, why in S4_LATER.items()),
            LATER_MORE,
        ]
    )


def metrics(instruments: dict[str, Instrument]) -> str:
    return table(
        ("metric", "kind", "labels", "means"),
        (
            (f"`{name}`", it.kind, " ".join(f"`{label}`" for label in it.labels), it.about)
            for name, it in instruments.items()
        ),
    )


def rates(them: Iterable[Rate]) -> str:
    return table(("rate", "means", "PromQL"), ((r.name, r.about, f"`{r.promql}`") for r in them))


def table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return row(headings) + "|---" * len(headings) + "|\n" + "".join(map(row, rows))


def row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
