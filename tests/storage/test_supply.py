"""Jobs that are made while others are stored."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.builders.jobs import a_job, numbered_id

from perdure.domain.jobs.job import NewJob
from perdure.storage.supply import Supply

JOBS = [a_job(id=numbered_id(number)) for number in range(5)]


class Making:
    """Makes jobs, and remembers how many it has made."""

    def __init__(self) -> None:
        self.made = 0

    def __iter__(self) -> Iterator[NewJob]:
        for job in JOBS:
            self.made += 1
            yield job


def test_only_the_jobs_that_are_asked_for_are_made() -> None:
    making = Making()
    supply = Supply(making)
    assert making.made == 0
    assert supply.up_to(2) == 2
    assert making.made == 2
    assert supply[:1] == JOBS[:1]
    assert (supply[3], making.made) == (JOBS[3], 4)
    assert supply.up_to(9) == 5


def test_each_job_is_made_once_no_matter_how_often_it_is_read() -> None:
    making = Making()
    supply = Supply(making)
    assert list(supply) == list(supply) == JOBS
    assert (len(supply), supply[-1], supply[1:], making.made) == (5, JOBS[-1], JOBS[1:], 5)
