"""A collector on this machine that keeps what it is sent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Any] = []
        self.metrics: dict[str, Any] = {}
        self.resources: list[dict[str, str]] = []
        self.changed = asyncio.Event()

    async def traces(self, request: web.Request) -> web.Response:
        sent = ExportTraceServiceRequest.FromString(await request.read())
        for resource in sent.resource_spans:
            self.resources.append({a.key: a.value.string_value for a in resource.resource.attributes})
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        self.changed.set()
        return web.Response()

    async def measures(self, request: web.Request) -> web.Response:
        sent = ExportMetricsServiceRequest.FromString(await request.read())
        for resource in sent.resource_metrics:
            for scope in resource.scope_metrics:
                self.metrics |= {metric.name: metric for metric in scope.metrics}
        self.changed.set()
        return web.Response()


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    kept = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", kept.traces)
    app.router.add_post("/v1/metrics", kept.measures)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        kept.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield kept
    finally:
        await runner.cleanup()


def attributes(span: Any) -> dict[str, Any]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}
