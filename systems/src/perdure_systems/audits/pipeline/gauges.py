"""Scores drawn as rings, for the report and for the page."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from perdure_systems.audits.pipeline.scoring import rated
from perdure_systems.audits.results import Rating

TITLES: Final = {
    "performance": "Performance",
    "accessibility": "Accessibility",
    "best-practices": "Best practices",
    "seo": "SEO",
}
RADIUS: Final = 44
AROUND: Final = 2 * math.pi * RADIUS


class Gauge(msgspec.Struct, frozen=True):
    """A ring that is filled as far as the score says. `filled` and `empty` are the lengths of its dashes."""

    title: str
    score: int
    rating: Rating
    filled: float
    empty: float


def gauges(scores: dict[str, int]) -> list[Gauge]:
    """The rings of these scores, in the usual order."""
    return [gauge(TITLES[name], scores[name]) for name in TITLES if name in scores]


def gauge(title: str, score: int) -> Gauge:
    """One ring; the ends of the stroke are round, so a score of 100 closes it."""
    filled = round(AROUND * score / 100, 2)
    return Gauge(title, score, rated(score / 100), filled, round(AROUND, 2))
