"""How the times of attempts become histograms and sums."""

from __future__ import annotations

from datetime import timedelta
from math import floor
from random import Random

from perdure.domain.operate.statistics import BOUNDS, BUCKETS, bucket_of
from perdure.worker.recording.cell import Cell

MICROSECOND = timedelta(microseconds=1)


def test_a_wait_at_a_bound_is_in_the_bucket_of_its_seconds() -> None:
    """Waits are compared as whole microseconds, and most bounds lie between two of these."""
    for bound in BOUNDS:
        for off in (-1, 0, 1, 2):
            wait = (floor(bound * 1e6) + off) * MICROSECOND
            cell = Cell(new_waits=[wait])
            cell.fold()
            assert cell.waits[bucket_of(wait.total_seconds())] == 1, wait


def test_times_in_any_order_are_all_sorted_in_and_summed() -> None:
    """A negative wait, from a clock that was set back, is in the first bucket."""
    chance = Random(7)  # noqa: S311 - the same times in each run
    waits = [chance.randrange(-1_000_000, 500_000_000) * MICROSECOND for _ in range(2_000)]
    runs = [chance.expovariate(1.0) for _ in waits]
    expected = [0] * BUCKETS
    for wait in waits:
        expected[bucket_of(wait.total_seconds())] += 1
    cell = Cell(new_waits=list(waits), new_runs=list(runs))
    cell.fold()
    assert (cell.jobs, cell.waits, sum(cell.runs)) == (2_000, expected, 2_000)
    assert cell.waited == sum(waits, timedelta()).total_seconds()
    assert abs(cell.ran - sum(runs)) < 1e-6
    assert (cell.new_waits, cell.new_runs) == ([], [])
