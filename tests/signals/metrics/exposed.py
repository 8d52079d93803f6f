"""An exposition as numbers, read by prometheus_client's own parsers."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Exposed:
    """Samples by name and labels."""

    def __init__(self, text: str, *, openmetrics: bool = False) -> None:
        self.families = list((read_openmetrics if openmetrics else read_text)(text))
        self.samples: Samples = {}
        for family in self.families:
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                assert key not in self.samples, f"{key} stands twice"
                self.samples[key] = sample.value

    def value(self, name: str, **labels: str) -> float | None:
        """The one sample with exactly these labels."""
        return self.samples.get((name, frozenset(labels.items())))

    def total(self, name: str, **labels: str) -> float:
        """The sum over all samples that have these labels."""
        wanted = set(labels.items())
        return sum(value for (one, found), value in self.samples.items() if one == name and wanted <= found)

    def values_of(self, label: str, names: Iterable[str] | None = None) -> set[str]:
        """Which values a label has."""
        return {
            value
            for name, labels in self.samples
            for key, value in labels
            if key == label and (names is None or name in names)
        }
