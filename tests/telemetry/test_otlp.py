"""Do spans and metrics reach a collector as they were?"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import Gateway
from holdfast.config import parse
from holdfast.model.errors import ConfigError
from holdfast.servers.app import build
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.conftest import LOCAL, PEOPLE
from tests.servers.desk import DESKS, Desk
from tests.telemetry.collector import Collector, attributes, collecting
from tests.telemetry.world import SPAN, TRACE

CALL = {"tool": "desk.add", "arguments": {"text": "hello"}, "key": "k-1"}


@pytest.fixture
def config(tmp_path: Path) -> Any:
    DESKS.append(Desk())
    yield {
        "store": f"sqlite:///{tmp_path}/holdfast.db",
        "upstreams": {"desk": {"functions": "tests.servers.desk:desk"}},
        "auth": {"mode": "local", "people": PEOPLE},
    }
    DESKS.pop()


async def called(config: dict[str, Any], kept: Collector, path: str, body: Any, **telemetry: Any) -> None:
    """One call in somebody's trace; closing sends what waits."""
    said = {"endpoint": kept.url, **telemetry}
    async with Gateway.open({**config, "telemetry": said}) as gateway:
        client = Client(build(gateway), {**LOCAL, "x-holdfast-user": "ann"})
        headers = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "vendor=1"}
        assert (await client.post(path, body, headers)).status == 200


@requirement("TEL-1")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/calls", CALL),
        ("/rpc", {"jsonrpc": "2.0", "id": 1, "method": "tools.call", "params": CALL}),
    ],
)
async def test_spans_arrive_at_a_collector_in_the_trace_of_the_request(
    config: dict[str, Any], path: str, body: Any
) -> None:
    async with collecting() as kept:
        await called(config, kept, path, body, traces="otlp")
    spans = {span.name: span for span in kept.spans}
    call = spans["execute_tool desk.add"]
    assert (call.trace_id.hex(), call.parent_span_id.hex(), call.trace_state) == (TRACE, SPAN, "vendor=1")
    assert kept.resources[0]["service.name"] == "holdfast"
    told = attributes(call)
    assert (told["tool.name"], told["tenant.id"], told["trace.replayable"]) == ("desk.add", "default", True)
    assert "k-1" not in told.values()
    assert {span.trace_id for span in kept.spans} == {call.trace_id}
    assert spans["claim"].parent_span_id == call.span_id
    assert attributes(spans["claim"])["holdfast.phase"] == "Authorize"
    assert spans["attempt 1"].parent_span_id == spans["execute"].span_id
    assert call.start_time_unix_nano <= spans["attempt 1"].start_time_unix_nano <= call.end_time_unix_nano


@requirement("TEL-2")
async def test_metrics_arrive_at_a_collector_with_their_labels_and_buckets(config: dict[str, Any]) -> None:
    async with collecting() as kept:
        await called(config, kept, "/v1/calls", CALL, metrics="otlp")
    (calls,) = kept.metrics["tool_invocation_count_total"].sum.data_points
    assert calls.as_double == 1
    assert kept.metrics["tool_invocation_count_total"].sum.is_monotonic
    assert attributes(calls)["tool"] == "desk.add"
    assert "tenant" not in attributes(calls)
    (latency,) = kept.metrics["tool_invocation_latency_ms"].histogram.data_points
    assert latency.count == 1 == sum(latency.bucket_counts)
    assert len(latency.bucket_counts) == len(latency.explicit_bounds) + 1
    assert not latency.HasField("max")
    assert kept.metrics["holdfast_bulkhead_size"].gauge.data_points[0].as_double == 32
    assert kept.spans == []


@requirement("TEL-1")
async def test_a_collector_that_is_away_delays_no_call_and_stops_no_gateway(config: dict[str, Any]) -> None:
    async with collecting() as kept:
        gone = kept.url
    said = {"traces": "otlp", "metrics": "otlp", "endpoint": gone}
    async with Gateway.open({**config, "telemetry": said}) as gateway:
        ann = gateway.identity.authenticate({"x-holdfast-user": "ann"})
        done = await gateway.call("desk.add", {"text": "x"}, key="k", principal=ann)
    assert done.status == "done"


WITHOUT = """
import sys
sys.modules["opentelemetry.exporter"] = None
from holdfast.model.errors import ConfigError
from holdfast.telemetry.otlp import MetricExport, span_exporter
for make in (span_exporter, MetricExport):
    try:
        make("http://127.0.0.1:4318")
    except ConfigError as error:
        print(error)
"""


def test_without_the_extra_it_says_what_to_install() -> None:
    ran = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    told = "'otlp' needs an extra; install it with: pip install 'holdfast[otlp]'"
    assert ran.stdout.splitlines() == [f"telemetry.traces: {told}", f"telemetry.metrics: {told}"]


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"traces": "zipkin"}, "telemetry.traces: must be 'off' or 'otlp', not 'zipkin'"),
        ({"sample": 2}, "telemetry.sample: must be less than or equal to 1, not 2"),
        ({"endpoint": "http://user:hunter2@host"}, "telemetry.endpoint: "),
        ({"level": "loud"}, "telemetry.level: must be 'debug', 'info', 'warning' or 'error', not 'loud'"),
    ],
)
def test_what_cannot_be_meant_is_told(said: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse({"telemetry": said})
    assert fault in str(caught.value)


def test_on_and_off_are_words_here_although_yaml_has_other_ideas() -> None:
    said = parse({"telemetry": {"traces": False, "metrics": True}}).telemetry
    assert (said.traces, said.metrics) == ("off", "on")
    assert parse({"telemetry": {"metrics": False}}).telemetry.metrics == "off"
