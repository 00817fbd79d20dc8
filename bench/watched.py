"""What does being watched add to a call? CPU of one write in memory, by what is switched on."""

import statistics
import time
from dataclasses import replace

from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from bench.tools import TOOLS
from holdfast import Principal, lifecycle, testing
from holdfast.model.call import Proposal
from holdfast.ports import Ports, Telemetry, Unwatched
from holdfast.system import SystemClock
from holdfast.telemetry.metrics import Metrics
from holdfast.telemetry.spans import Spans
from holdfast.telemetry.watch import Watch

AGENT = Principal(user="ana", agent="bench", scopes=frozenset({"**"}), trust=60)


class Nowhere(SpanExporter):
    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def ways(ports: Ports, processor: BatchSpanProcessor) -> dict[str, Telemetry]:
    def spans(sample: float) -> Spans:
        return Spans(processor, ports.secrets, lifecycle.PHASES, sample=sample)

    return {
        "off": Unwatched(),
        "unsampled": Watch(ports.clock, spans(0.0), None),
        "metrics": Watch(ports.clock, None, Metrics()),
        "unsampled, metrics": Watch(ports.clock, spans(0.0), Metrics()),
        "sampled, metrics": Watch(ports.clock, spans(1.0), Metrics()),
    }


async def watched(calls: int) -> None:
    processor = BatchSpanProcessor(Nowhere())
    async with testing.gateway(*TOOLS, namespace="b", clock=SystemClock()) as gateway:
        ports, runtime = gateway._ports, gateway._runtime  # the parts themselves are under test
        all_ways = {
            name: replace(ports, telemetry=telemetry) for name, telemetry in ways(ports, processor).items()
        }
        spent: dict[str, list[int]] = {name: [] for name in all_ways}
        for number in range(calls // 5):
            for name, parts in all_ways.items():  # in turn, so that a noisy neighbour disturbs all alike
                proposal = Proposal(
                    tool="b.mark",
                    arguments={"item": f"i-{number}", "colour": "blue"},
                    principal=AGENT,
                    key=f"{name}-{number}",
                )
                start = time.thread_time_ns()
                await lifecycle.live(lifecycle.receive(proposal, parts), parts, runtime)
                spent[name].append(time.thread_time_ns() - start)
    processor.shutdown()  # type: ignore[no-untyped-call]
    print("\nwatched             CPU us of a write (median, in memory), and what it adds")
    base = statistics.median(spent["off"]) / 1000
    for name, samples in spent.items():
        middle = statistics.median(samples) / 1000
        print(f"  {name:<18}{middle:8.1f}{middle - base:+8.1f}")
