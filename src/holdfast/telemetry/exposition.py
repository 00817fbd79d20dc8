"""What does somebody see who looks at the metrics?

Every series belongs to a tenant, so a view is made for whoever asks: one tenant's own, or everybody's, added
up or told apart by a label (AUT-6). What belongs to the process and no tenant is in the whole view only.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from holdfast.telemetry import instruments as i
from holdfast.telemetry.metrics import TENANT
from holdfast.telemetry.rates import S1_GAUGES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]
Gauges = Mapping[str, Mapping[Labels, float]]
"""By metric and label values, in the order the table has them."""


@dataclass(frozen=True, slots=True)
class View:
    """Whose series, and whether they are told apart."""

    tenant: str | None = None
    """None: everybody's."""
    labelled: bool = False


@dataclass(slots=True)
class Exposition(Collector):
    """Families ready to be written out; itself a collector, which is what the writers take."""

    families: list[Metric] = field(default_factory=list)

    def collect(self) -> Iterable[Metric]:
        return self.families

    def text(self) -> bytes:
        return generate_latest(self)


def exposed(counted: Iterable[Metric], view: View, gauges: Gauges, capabilities: Gauges) -> Exposition:
    """The counters as `view` sees them, the rates that follow from them, and what was looked up."""
    families = [_seen(family, view) for family in counted]
    samples = [sample for family in families for sample in family.samples]
    shown = Exposition(families)
    shown.families += [_rate_family(name, samples) for name in S1_GAUGES]
    called = {(s.labels["tool"], s.labels["version"]) for s in samples if s.name == i.CALLS}
    for name, values in {**gauges, **dict(_of_called(capabilities, called))}.items():
        shown.families.append(_gauge(name, values.items()))
    return shown


def _seen(family: Metric, view: View) -> Metric:
    """One family without what is not for this view; samples that become alike are added up."""
    sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for sample in family.samples:
        tenant = sample.labels.get(TENANT)
        if sample.name.endswith("_created") or (view.tenant is not None and tenant != view.tenant):
            continue
        labels = sample.labels if view.labelled else {k: v for k, v in sample.labels.items() if k != TENANT}
        key = (sample.name, tuple(labels.items()))
        sums[key] = sums.get(key, 0.0) + sample.value
    seen = Metric(family.name, family.documentation, family.type)
    seen.samples = [Sample(name, dict(labels), value) for (name, labels), value in sums.items()]
    return seen


def _rate_family(name: str, samples: list[Sample]) -> Metric:
    rates = S1_GAUGES[name]
    labels = i.LOOKED_UP[name].labels
    found: dict[Labels, float] = {}
    for rate in rates:
        for group, value in rate.values(samples).items():
            found[(*group, rate.name) if len(group) < len(labels) else group] = value
    return _gauge(name, found.items())


def _gauge(name: str, values: Iterable[tuple[Labels, float]]) -> Metric:
    instrument = i.LOOKED_UP[name]
    family = Metric(name, instrument.about, "gauge")
    for labels, value in values:
        family.add_sample(name, dict(zip(instrument.labels, labels, strict=True)), value)
    return family


def _of_called(
    capabilities: Gauges, called: set[tuple[str, str]]
) -> Iterator[tuple[str, Mapping[Labels, float]]]:
    """Which tools there are is no business of a tenant that never called them."""
    for name, values in capabilities.items():
        yield name, {labels: value for labels, value in values.items() if labels[:2] in called}
