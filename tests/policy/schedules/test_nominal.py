"""The job of one nominal time."""

from __future__ import annotations

import json
from datetime import timedelta

from tests.support.builders.views import NOON
from tests.support.chance import seeded

from perdure.domain.jobs.states import JobState
from perdure.domain.schedule import Cause, Origin, Overlap, Schedule
from perdure.policy.schedules.nominal import job_of
from perdure.policy.schedules.origins import origin_conflict

CHANCE = seeded()
NIGHTLY = Schedule(name="nightly", kind="report", expression="@daily", queue="slow", priority=2, tags=("eu",))


def test_a_job_carries_its_schedule_and_its_time() -> None:
    job = job_of(NIGHTLY, NOON, CHANCE, Cause.BACKFILL)
    assert (job.kind, job.queue, job.priority, job.tags) == ("report", "slow", 2, ("schedule:nightly", "eu"))
    assert json.loads(job.meta or "") == {
        "schedule": "nightly",
        "nominal_at": "2026-03-04T12:00:00Z",
        "cause": "backfill",
    }
    assert (job.run_at, job.unique) == (None, None)


def test_metadata_of_the_call_stays_but_cannot_pretend_another_schedule() -> None:
    schedule = Schedule(name="nightly", kind="report", expression="@daily", meta='{"team": "ops", "schedule": "other"}')
    meta = json.loads(job_of(schedule, NOON, CHANCE).meta or "")
    assert (meta["team"], meta["schedule"], meta["cause"]) == ("ops", "nightly", "time")


def test_jitter_spreads_jobs_within_its_span_after_their_time() -> None:
    schedule = Schedule(name="nightly", kind="report", expression="@daily", jitter=timedelta(minutes=5))
    times = [job_of(schedule, NOON, CHANCE).run_at for _ in range(50)]
    assert all(at is not None and NOON <= at <= NOON + timedelta(minutes=5) for at in times)
    assert len(set(times)) == 50


def test_where_jobs_queue_behind_each_other_they_share_a_key_while_one_is_under_way() -> None:
    schedule = Schedule(name="nightly", kind="report", expression="@daily", overlap=Overlap.QUEUE)
    unique = job_of(schedule, NOON, CHANCE).unique
    assert unique is not None
    assert unique.key == "schedule nightly"
    assert unique.states == frozenset({JobState.RUNNING, JobState.RETRYING, JobState.WAITING})


def test_a_name_that_is_taken_says_by_whom_and_what_to_do() -> None:
    assert "'a', 'b' was made at run time: delete that one" in str(origin_conflict(["a", "b"], Origin.DECLARED))
    assert "is declared in code: change it there" in str(origin_conflict(["a"], Origin.MADE))
