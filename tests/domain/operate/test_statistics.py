"""Endings, shares and buckets."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.support.builders.views import NOON

from perdure.domain.operate.statistics import BOUNDS, BUCKETS, Point, bucket_of


def test_bounds_go_in_equal_steps_from_a_millisecond_to_six_minutes() -> None:
    assert (BOUNDS[0], BOUNDS[-1], len(BOUNDS), BUCKETS) == (0.001, 360.0, 25, 26)
    assert all(above / below == pytest.approx(1.7, abs=0.05) for below, above in pairwise(BOUNDS))


def test_a_time_on_a_bound_belongs_to_the_bucket_above_it() -> None:
    assert [bucket_of(bound) for bound in BOUNDS] == list(range(1, BUCKETS))
    assert [bucket_of(bound * 0.999) for bound in BOUNDS] == list(range(BUCKETS - 1))
    assert [bucket_of(seconds) for seconds in (-5, 0, 1e9)] == [0, 0, BUCKETS - 1]


def test_jobs_that_were_put_off_count_as_no_attempt_and_cancelled_ones_as_no_failure() -> None:
    point = Point(at=NOON, succeeded=6, retried=1, died=2, cancelled=4, crashed=3, held=100)
    assert (point.finished, point.failed, point.attempts) == (12, 6, 16)
    assert point.failure_share == 0.5
    assert Point(at=NOON, cancelled=4, held=9).failure_share is None
