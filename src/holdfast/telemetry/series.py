"""How is something counted that happens on every call?

As plain numbers, added to by the one thread that calls end on, and written out as Prometheus' samples when
somebody looks. The client library's own counters take a lock for every addition.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from holdfast.telemetry.instruments import Instrument

TENANT = "tenant"

Labels = tuple[str, ...]
Written = tuple[str, dict[str, str], float]
"""The end of a sample's name, labels beside the series' own, and the value."""


class Count:
    """Something that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def written(self) -> Iterator[Written]:
        yield "_total", {}, self.value


class Spread:
    """How many values lie up to each bound, and what they add up to."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)  # the last one is for whatever lies beyond all bounds
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def written(self) -> Iterator[Written]:
        below = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            below += count
            yield "_bucket", {"le": _written(bound)}, float(below)
        yield "_count", {}, float(below)
        yield "_sum", {}, self._sum


_written: Callable[[float], str] = floatToGoString
Series = TypeVar("Series", bound=Count | Spread)


class Family(Generic[Series]):
    """All series of one metric; the tenant stands before the other labels."""

    def __init__(self, name: str, it: Instrument, make: Callable[[], Series]) -> None:
        self._name = name.removesuffix("_total")
        self._it = it
        self._make = make
        self._names = (TENANT, *it.labels)
        self._series: dict[Labels, Series] = {}

    def of(self, labels: Labels) -> Series:
        found = self._series.get(labels)
        if found is None:
            found = self._series[labels] = self._make()
        return found

    def metric(self) -> Metric:
        metric = Metric(self._name, self._it.about, self._it.kind)
        metric.samples = [
            Sample(self._name + end, {**dict(zip(self._names, labels, strict=True)), **more}, value)
            for labels, series in list(self._series.items())
            for end, more, value in series.written()
        ]
        return metric


def counted(name: str, it: Instrument) -> Family[Count]:
    return Family(name, it, Count)


def spread(name: str, it: Instrument) -> Family[Spread]:
    return Family(name, it, lambda: Spread(it.bounds))
