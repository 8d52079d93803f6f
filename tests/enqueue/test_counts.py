"""How many jobs this process has stored."""

from __future__ import annotations

from tests.support.builders.jobs import a_job

from perdure.domain.jobs.job import Intake, Receipt
from perdure.domain.operate.statistics import OTHER
from perdure.enqueue.counts import EnqueueCounts


def test_only_new_jobs_count() -> None:
    counts = EnqueueCounts()
    jobs = [a_job(queue="mail"), a_job(queue="mail"), a_job(queue="mail", kind="pdf"), a_job()]
    intakes = (Intake.NEW, Intake.NEW, Intake.EXISTING, Intake.REPLACED)
    counts.note(jobs, [Receipt(job.id, intake) for job, intake in zip(jobs, intakes, strict=True)])
    assert counts.jobs == {("mail", "greet"): 2}


def test_beyond_the_limit_of_pairs_the_rest_is_other() -> None:
    counts = EnqueueCounts(most_pairs=2)
    for queue in ("a", "b", "c", "d", "a"):
        counts.add(queue, "greet", 3)
    assert counts.jobs == {("a", "greet"): 6, ("b", "greet"): 3, (OTHER, OTHER): 6}


def test_counts_that_were_taken_are_not_taken_again() -> None:
    counts = EnqueueCounts()
    counts.add("a", "greet")
    assert counts.take() == [("a", "greet", 1)]
    assert counts.take() == []
    counts.add("a", "greet")
    assert counts.jobs == {("a", "greet"): 1}
