"""Gateways that are watched, and what was seen of them."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from holdfast import Effect, Floor, Gateway, NoEffect, Principal, Undo, tool
from holdfast.execution.runtime import Runtime
from holdfast.lifecycle import PHASES
from holdfast.ports import Ports
from holdfast.telemetry.metrics import Metrics
from holdfast.telemetry.spans import Spans
from holdfast.telemetry.watch import Watch
from tests.lifecycle.world import opened

Adapt = Callable[[Ports, Runtime], tuple[Ports, Runtime]]
Open = Callable[..., AbstractAsyncContextManager[Gateway]]

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
OLGA = Principal(user="olga", agent="-", roles=frozenset({"operator"}), scopes=frozenset({"**"}))
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"

WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "manifest": [("things", "UPDATE", "thing")],
    "idempotency": {},
}
PEOPLE = {"auth": {"people": {"ana": {}, "olga": {"roles": ["operator"]}, "otto": {"roles": ["operator"]}}}}


class Seen:
    """What one gateway's calls left in memory."""

    def __init__(self, sample: float = 1.0, *, metrics: bool = True) -> None:
        self.exporter = InMemorySpanExporter()
        self.metrics = Metrics() if metrics else None
        self.sample = sample

    def adapt(self, ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
        processor = SimpleSpanProcessor(self.exporter)
        spans = Spans(processor, ports.secrets, PHASES, sample=self.sample)
        return replace(ports, telemetry=Watch(ports.clock, spans, self.metrics)), runtime

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def calls(self) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name.startswith("execute_tool ")]

    def call(self) -> ReadableSpan:
        (one,) = self.calls()
        return one

    def children(self, of: ReadableSpan) -> list[ReadableSpan]:
        return [s for s in self.spans if s.parent is not None and s.parent.span_id == of.context.span_id]


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def span_id(span: ReadableSpan) -> str:
    return f"{span.context.span_id:016x}"


async def samples(gateway: Gateway, by: Principal = ANA) -> list[Sample]:
    """What a scraper reads."""
    text = (await gateway.metrics(by)).decode()
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def total(found: list[Sample], name: str, **labels: str) -> float:
    return sum(s.value for s in found if s.name == name and labels.items() <= s.labels.items())


def opener(store: str, folder: Path) -> Open:
    def open_it(*sources: object, **options: Any) -> AbstractAsyncContextManager[Gateway]:
        return opened(store, folder, *sources, **options)

    return open_it


@tool(
    effect=Effect.HIGH_RISK_EXTERNAL,
    undo=Undo.NONE,
    manifest=[("mail", "CREATE", "one")],
    idempotency="none",
    floor=Floor.OPERATOR,
    preview={},
    rollback_plan="write another mail",
    verification={"target": "the outbox"},
    tags=["mail"],
    cost={"per_call": 0.5, "currency": "EUR", "categories": ["external_api"]},
)
async def send(to: str) -> dict[str, Any]:
    """Send a mail."""
    return {"to": to}


@tool(effect=Effect.READ_ONLY, scopes=["vault:read"], tags=["search"])
async def locked(name: str) -> str:
    """Read what hardly anybody may."""
    return name


@tool(**WRITE, semantics=[{"holds": "args.amount > 0", "message": "an amount is positive"}], tags=["pay"])
async def pay(amount: int) -> dict[str, Any]:
    """Pay something."""
    if amount == 13:
        raise NoEffect("not today")
    if amount == 99:
        raise RuntimeError("lost")
    if amount == 77:
        return cast("dict[str, Any]", ["garbage"])
    return {"paid": amount}
