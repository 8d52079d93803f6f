"""Scales with round numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from perdure.surfaces.desk.charts.scale import ceiling, parts, round_times

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.mark.parametrize(("largest", "top"), [(824, 900), (1.2, 1.5), (0.064, 0.08), (1_000, 1_000), (0, 1)])
def test_scales_end_at_round_numbers(largest: float, top: float) -> None:
    assert ceiling([largest, None], 1.0 if not largest else 0.001) == pytest.approx(top)
    assert parts(top) in {2, 3}


def test_round_times_lie_within_and_are_few() -> None:
    found = round_times(at(7), at(607), 6)
    assert found[0] == at(120)
    assert all(at(7) <= one <= at(607) for one in found)
    assert len(found) <= 6


@pytest.mark.parametrize(
    ("top", "count"), [(1.5, 3), (3, 3), (60, 3), (900, 3), (0.006, 3), (2, 2), (80, 2), (1_000, 2)]
)
def test_the_lines_of_a_grid_are_at_round_numbers(top: float, count: int) -> None:
    assert parts(top) == count


def test_a_scale_leaves_out_what_is_no_number() -> None:
    assert ceiling([None, float("nan"), float("inf"), 4.1], 1.0) == 5.0


def test_round_times_of_any_span_are_few() -> None:
    for seconds in (0.01, 1, 59, 3_600, 86_400 * 3, 86_400 * 400):
        assert 1 <= len(round_times(at(0), at(seconds), 6)) <= 7


def test_round_times_begin_and_end_with_the_span_if_its_ends_are_round() -> None:
    assert round_times(at(0), at(600), 5) == [at(seconds) for seconds in range(0, 601, 120)]


def test_a_scale_ends_at_a_value_that_is_round_already() -> None:
    assert [ceiling([value], 0.001) for value in (0.08, 9.0, 10.0, 95.0)] == [0.08, 9.0, 10.0, 100.0]
