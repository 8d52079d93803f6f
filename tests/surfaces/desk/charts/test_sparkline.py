"""A trend in the size of a word."""

from __future__ import annotations

from perdure.surfaces.desk.charts import sparkline


def test_a_missing_value_breaks_the_line() -> None:
    assert 'd="M0 22M100 2"' in sparkline([0, None, 9], label="x")


def test_noise_around_zero_stays_flat() -> None:
    assert 'd="M0 22L50 12L100 2"' in sparkline([0, 1, 2], label="x")
    assert 'd="M0 22L50 21L100 20"' in sparkline([0, 1, 2], label="x", least=20)
    assert 'd="M0 22L100 22"' in sparkline([0, 0], label="x")
