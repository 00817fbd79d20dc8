"""Do our own series say what the client library's would?"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import Metric

from holdfast.telemetry.instruments import LATENCY_MS, Instrument
from holdfast.telemetry.series import TENANT, counted, spread
from tests.requirements import requirement

amounts = st.floats(0, 1e6) | st.sampled_from(LATENCY_MS)


def told(metric: Metric) -> tuple[Any, ...]:
    kept = [sample for sample in metric.samples if not sample.name.endswith("_created")]
    samples = {(sample.name, *sample.labels.items(), sample.value) for sample in kept}
    return metric.name, metric.type, metric.documentation, samples


@requirement("TEL-2")
@given(st.lists(st.tuples(st.sampled_from("ab"), amounts), max_size=40))
def test_a_histogram_is_written_as_the_library_writes_it(seen: list[tuple[str, float]]) -> None:
    ours = spread("wait_ms", Instrument("histogram", ("tool",), "how long", LATENCY_MS))
    theirs = Histogram("wait_ms", "how long", (TENANT, "tool"), registry=None, buckets=LATENCY_MS)
    for tool, value in seen:
        ours.of(("t", tool)).observe(value)
        theirs.labels("t", tool).observe(value)
    assert told(ours.metric()) == told(next(iter(theirs.collect())))


@requirement("TEL-2")
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), max_size=40))
def test_a_counter_is_written_as_the_library_writes_it(seen: list[tuple[str, int]]) -> None:
    registry = CollectorRegistry(auto_describe=False)
    ours = counted("calls_total", Instrument("counter", ("tool",), "how many"))
    theirs = Counter("calls", "how many", (TENANT, "tool"), registry=registry)
    for tool, amount in seen:
        ours.of(("t", tool)).value += amount
        theirs.labels("t", tool).inc(amount)
    assert told(ours.metric()) == told(next(iter(theirs.collect())))
