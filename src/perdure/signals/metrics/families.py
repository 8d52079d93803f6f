"""Metrics with their values by label, written in Prometheus' text format or in OpenMetrics.

prometheus_client writes these formats too, from objects for each line. A scrape of fifty kinds has 3,000 lines, on the
event loop of a worker: written directly they take a tenth of the time. Its parsers read the result in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import add
from typing import Final

from perdure.domain.operate.statistics import BOUNDS, EMPTY, bucket_of
from perdure.signals.metrics.catalogue import Metric

LES: Final = (*(f"{bound:.4g}" for bound in BOUNDS), "+Inf")
"""The upper bounds of the buckets, as labels."""

_Key = tuple[str, ...]


class Numbers:
    """Values of one counter or gauge by label; values with the same labels are summed, or the largest is kept."""

    def __init__(self, metric: Metric, *, largest: bool = False) -> None:
        self.metric = metric
        self._largest = largest
        self._values: dict[_Key, float] = {}

    def add(self, value: float, *labels: str) -> None:
        """Count this value."""
        before = self._values.get(labels)
        if before is not None:
            value = max(before, value) if self._largest else before + value
        self._values[labels] = value

    def lines(self) -> Iterator[str]:
        """One line for each label."""
        name, names = self.metric.name, self.metric.labels
        for labels, value in sorted(self._values.items()):
            shown = _written(names, labels)
            yield f"{name}{{{shown}}} {float(value)}\n" if shown else f"{name} {float(value)}\n"


class Times:
    """Histograms of one metric by label."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._values: dict[_Key, tuple[Sequence[int], float]] = {}

    def add(self, histogram: Sequence[int], total: float, *labels: str) -> None:
        """Add a histogram and the sum of its times."""
        if before := self._values.get(labels):
            histogram, total = list(map(add, before[0], histogram)), before[1] + total
        self._values[labels] = histogram, total

    def observe(self, seconds: float, *labels: str) -> None:
        """Add one time."""
        bucket = bucket_of(seconds)
        self.add([int(place == bucket) for place in range(len(EMPTY))], seconds, *labels)

    def lines(self) -> Iterator[str]:
        """All buckets, the count and the sum for each label; labels without any time are left out."""
        name, names = self.metric.name, self.metric.labels
        for labels, (histogram, total) in sorted(self._values.items()):
            count = sum(histogram)
            if count:
                shown = _written(names, labels)
                for le, reached in zip(LES, accumulate(histogram), strict=True):
                    yield f'{name}_bucket{{{shown},le="{le}"}} {reached}.0\n'
                yield f"{name}_count{{{shown}}} {count}.0\n{name}_sum{{{shown}}} {float(max(total, 0.0))}\n"


Family = Numbers | Times


def as_text(families: Iterable[Family]) -> str:
    """Prometheus' text format, version 0.0.4."""
    return "".join(_with_head(family, family.metric.name) for family in families)


def as_openmetrics(families: Iterable[Family]) -> str:
    """OpenMetrics 1.0.0, without the mark at its end. A counter's head has no `_total` there; units have a line."""
    return "".join(_unit(family) + _with_head(family, family.metric.name.removesuffix("_total")) for family in families)


def _unit(family: Family) -> str:
    metric = family.metric
    return "" if metric.unit is None else f"# UNIT {metric.name} {metric.unit}\n"


def _with_head(family: Family, name: str) -> str:
    metric = family.metric
    return f"# HELP {name} {metric.help}\n# TYPE {name} {metric.type}\n" + "".join(family.lines())


def _written(names: Sequence[str], values: _Key) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
