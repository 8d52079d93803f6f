"""Scores as Lighthouse computes them: each metric on a log-normal curve, then a weighted mean."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from perdure_systems.audits.results import Rating, Strategy

GOOD: Final = 0.9
FAIR: Final = 0.5
_ERFINV_OF_0_8: Final = 0.9061938024368232  # the inverse error function of 0.8, which puts a score of 0.9 at `good_at`


class Curve(msgspec.Struct, frozen=True):
    """`good_at` scores 0.9, `median` 0.5; `weight` is the metric's share of the performance score."""

    good_at: float
    median: float
    weight: int

    def score(self, value: float) -> float:
        """From 1 (best) to 0."""
        if value <= 0:
            return 1.0
        spread = math.log(value / self.median) * _ERFINV_OF_0_8 / math.log(self.median / self.good_at)
        return max(0.0, min(1.0, (1 - math.erf(spread)) / 2))


CURVES: Final[dict[Strategy, dict[str, Curve]]] = {
    "mobile": {
        "first-contentful-paint": Curve(1_800, 3_000, 10),
        "largest-contentful-paint": Curve(2_500, 4_000, 25),
        "total-blocking-time": Curve(200, 600, 30),
        "cumulative-layout-shift": Curve(0.1, 0.25, 25),
    },
    "desktop": {
        "first-contentful-paint": Curve(934, 1_600, 10),
        "largest-contentful-paint": Curve(1_200, 2_400, 25),
        "total-blocking-time": Curve(150, 350, 30),
        "cumulative-layout-shift": Curve(0.1, 0.25, 25),
    },
}


def performance(values: dict[str, float], strategy: Strategy) -> int:
    """The performance score of 0 to 100, from the metrics that were measured."""
    curves = {name: curve for name, curve in CURVES[strategy].items() if name in values}
    weight = sum(curve.weight for curve in curves.values())
    return round(100 * sum(curve.score(values[name]) * curve.weight for name, curve in curves.items()) / weight)


def rated(score: float) -> Rating:
    """The word for a score of 0 to 1."""
    return "good" if score >= GOOD else "fair" if score >= FAIR else "poor"
