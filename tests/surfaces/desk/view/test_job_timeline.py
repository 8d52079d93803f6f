"""The timeline of a job: what happened is drawn where it happened, and what lies ahead is foretold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.builders.views import a_view, an_attempt

from perdure.domain.flows.flow import StepKind, StepRecord, StepState
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import Attempt, JobView
from perdure.domain.jobs.states import JobState
from perdure.operate.records import JobDetail
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter
from perdure.policy.retries.preview import preview
from perdure.policy.retries.retry import Retry
from perdure.surfaces.desk.view.job_timeline import job_timeline

START = datetime(2026, 3, 1, 13, 54, tzinfo=UTC)
ID = new_job_id()


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def view(state: JobState, **changes: Any) -> JobView:
    known = {"id": ID, "kind": "charge_card", "reason": "failed", "created_at": at(0), "since": at(0)}
    return a_view(state=state, **known | changes)


def failed(number: int, start: float, end: float, reason: str = "failed") -> Attempt:
    return an_attempt(job_id=ID, token=number, number=number, reason=reason, started_at=at(start), finished_at=at(end))


def test_waits_and_attempts_of_a_retrying_job_follow_each_other_without_gaps() -> None:
    job = view(JobState.RETRYING, failures=2, due_at=at(300))
    detail = JobDetail(job, (failed(1, 2, 32), failed(2, 92, 122)))
    drawn = job_timeline(detail, (), at(200))
    past = sorted((bar for bar in drawn.bars if not bar.ahead), key=lambda bar: bar.start)
    assert [(bar.lane, bar.start, bar.end) for bar in past] == [
        ("waits", at(0), at(2)),
        ("attempts", at(2), at(32)),
        ("waits", at(32), at(92)),
        ("attempts", at(92), at(122)),
        ("waits", at(122), None),
    ]
    assert drawn.now == at(200)


def test_the_retries_ahead_are_drawn_dashed_at_their_own_times() -> None:
    policy = Retry(attempts=5, backoff=Backoff.exponential("1m"), jitter=Jitter.none())
    job = view(JobState.RETRYING, failures=3, due_at=at(300))
    detail = JobDetail(job, (failed(1, 0, 10),))
    ahead = preview(policy, job.since, job.failures, due=at(300))
    bars = [bar for bar in job_timeline(detail, ahead, at(200)).bars if bar.ahead]
    assert [bar.label for bar in bars] == ["4", "5"]
    assert bars[0].start == at(300)
    assert bars[1].start == at(300 + 480)  # 1, 2, 4, then 8 minutes
    assert "the last" in bars[1].said


def test_an_earlier_life_is_not_drawn() -> None:
    job = view(JobState.SUCCEEDED, since=at(1_000), started_at=at(1_001), finished_at=at(1_003))
    drawn = job_timeline(JobDetail(job, (failed(1, 2, 32),)), (), at(2_000))
    assert drawn.start == at(1_000)
    assert drawn.now is None
    assert [bar.colour for bar in drawn.bars if bar.lane == "attempts"] == ["ok"]


def test_crashes_are_marked_and_steps_have_a_lane() -> None:
    job = view(JobState.WAITING, reason="still pending", crashes=1, due_at=at(60))
    steps = (
        StepRecord(key="order", kind=StepKind.CALL, state=StepState.DONE, begun_at=at(1), changed_at=at(3)),
        StepRecord(key="issued", kind=StepKind.POLL, state=StepState.BEGUN, tries=2, begun_at=at(3), due_at=at(60)),
    )
    drawn = job_timeline(JobDetail(job, (failed(1, 0.5, 2, "process crashed"),), steps=steps), (), at(30))
    assert [mark.at for mark in drawn.marks] == [at(2)]
    assert drawn.lanes == ("waits", "attempts", "steps")
    polled = next(bar for bar in drawn.bars if bar.label == "issued")
    assert (polled.end, polled.outlined) == (at(30), True)


def step(key: str, kind: StepKind, start: float, end: float | None) -> StepRecord:
    state = StepState.BEGUN if end is None else StepState.DONE
    return StepRecord(key=key, kind=kind, state=state, begun_at=at(start), changed_at=at(start if end is None else end))


def test_what_ran_before_a_wait_is_an_attempt_and_the_wait_begins_with_its_step() -> None:
    """A sleep after two steps, then a third step, and an approval that is open."""
    steps = (
        step("fetch", StepKind.CALL, 5, 25),
        step("store", StepKind.CALL, 25, 30),
        step("sleep", StepKind.SLEEP, 30, 90),
        step("send", StepKind.CALL, 92, 95),
        step("answer", StepKind.EVENT, 95, None),
    )
    job = view(JobState.WAITING, reason="waiting for an event")
    drawn = job_timeline(JobDetail(job, (), steps=steps), (), at(200))
    past = sorted((bar for bar in drawn.bars if bar.lane != "steps"), key=lambda bar: bar.start)
    assert [(bar.lane, bar.start, bar.end) for bar in past] == [
        ("waits", at(0), at(5)),
        ("attempts", at(5), at(30)),
        ("waits", at(30), at(92)),
        ("attempts", at(92), at(95)),
        ("waits", at(95), None),
    ]
    assert "sleep" in past[2].said


def test_a_job_that_runs_beside_its_children_is_not_drawn_as_waiting_for_them() -> None:
    steps = (step("chunks", StepKind.FAMILY, 10, None),)
    job = view(JobState.RUNNING, started_at=at(3))
    drawn = job_timeline(JobDetail(job, (), steps=steps), (), at(200))
    assert [(bar.lane, bar.start) for bar in drawn.bars if bar.lane == "attempts"] == [("attempts", at(3))]
