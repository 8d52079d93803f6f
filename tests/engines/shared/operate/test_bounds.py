"""How far a search looks with its next query: as far as its time allows."""

from __future__ import annotations

from datetime import timedelta

from perdure.engines.shared.operate.bounds import FIRST_STEP_ROWS, Bounds
from perdure.storage.records import Reach


class SlowDatabase:
    """A clock that moves as a database looks at jobs, so many in a second."""

    def __init__(self, speed: float) -> None:
        self.seconds = 0.0
        self._speed = speed

    def look(self, jobs: int) -> None:
        self.seconds += jobs / self._speed


def searched(speed: float, reach: Reach) -> tuple[list[int], float]:
    """The steps of a search, and how long they took."""
    database, steps = SlowDatabase(speed), list[int]()
    bounds = Bounds(reach, lambda: database.seconds)
    while True:
        steps.append(bounds.step)
        database.look(bounds.step)
        if bounds.are_reached():
            return steps, database.seconds


def test_a_step_fits_into_the_time_that_is_left() -> None:
    steps, took = searched(16_000, Reach(100_000, timedelta(seconds=0.125)))
    assert steps == [FIRST_STEP_ROWS, 1_000, 500]
    assert took == 0.125


def test_steps_grow_while_there_is_time_until_all_rows_are_looked_at() -> None:
    steps, took = searched(1_000_000, Reach(10_000, timedelta(seconds=0.1)))
    assert steps == [FIRST_STEP_ROWS, 1_000, 2_000, 2_000, 2_000, 2_000, 500]
    assert took < 0.1


def test_a_first_step_that_takes_all_the_time_is_the_only_one() -> None:
    assert searched(1_000, Reach(100_000, timedelta(seconds=0.1)))[0] == [FIRST_STEP_ROWS]
