"""Chance that is the same in every run."""

from __future__ import annotations

from random import Random


def seeded(seed: int = 1) -> Random:
    """Draws that follow from the seed alone."""
    return Random(seed)  # noqa: S311 - tests want the same chance each time
