"""Figures and the document that carries them from one process to the next."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Metric(StrEnum):
    """What is measured; the value is its name in JSON."""

    DRAIN_ONE = "drain, one worker"
    DRAIN_TWO = "drain, two workers"
    BUSY_ONE = "processors in use, one worker"
    BUSY_TWO = "processors in use, two workers"
    ENQUEUE_ONE_BY_ONE = "enqueue one by one"
    ENQUEUE_BULK = "enqueue in bulk"
    PICKUP_P50 = "pick-up p50"
    PICKUP_P99 = "pick-up p99"
    SINGLE_COMMITS = "single-row commits"
    BULK_ROWS = "rows in bulk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One figure and the settings under which it was taken."""

    name: str
    metric: str
    value: float
    unit: str
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All that one contestant's run yielded, or the reason why there is nothing."""

    name: str
    engine: str
    version: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    measurements: tuple[Measurement, ...] = ()
    skipped: str | None = None

    def value(self, metric: Metric) -> float | None:
        """Return the figure for `metric`, or None if it was not taken."""
        return next((m.value for m in self.measurements if m.metric == metric), None)

    def to_json(self) -> str:
        """Write the outcome as one JSON document."""
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        """Read back what `to_json` wrote."""
        return cls.from_document(json.loads(text))

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Outcome:
        """Read back what `to_json` wrote, once it has been decoded."""
        figures = tuple(Measurement(**figure) for figure in document["measurements"])
        return cls(**{**document, "measurements": figures})


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` (0 to 1) of all do not exceed.

    >>> percentile([4, 1, 3, 2], 0.5)
    2
    """
    if not values:
        raise ValueError("no values to take a percentile of")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def ratio(value: float | None, base: float | None) -> float | None:
    """Return `value / base`, or None where either is missing or the base is zero."""
    if value is None or not base:
        return None
    return value / base


def medians(runs: Iterable[Sequence[Measurement]]) -> tuple[Measurement, ...]:
    """Fold repeated runs into one: the median of each metric, in the order first seen."""
    gathered: dict[str, list[Measurement]] = {}
    for run in runs:
        for figure in run:
            gathered.setdefault(figure.metric, []).append(figure)
    return tuple(_middle(figures) for figures in gathered.values())


def _middle(figures: list[Measurement]) -> Measurement:
    middle = statistics.median(figure.value for figure in figures)
    first = figures[0]
    settings = first.settings if len(figures) == 1 else {**first.settings, "median of": str(len(figures))}
    return Measurement(name=first.name, metric=first.metric, value=middle, unit=first.unit, settings=settings)
