"""The history of a job."""

from __future__ import annotations

from datetime import timedelta

from tests.support.builders.views import NOON, a_view, an_attempt, an_entry

from perdure.domain.jobs.states import JobState
from perdure.operate.records import JobDetail
from perdure.surfaces.api.history import history


def at(minutes: float) -> timedelta:
    return timedelta(minutes=minutes)


def test_events_of_all_sources_are_reported_in_order() -> None:
    job = a_view(
        state=JobState.DEAD,
        reason="exhausted",
        started_at=NOON + at(5),
        finished_at=NOON + at(6),
        failures=1,
        since=NOON + at(4),
    )
    detail = JobDetail(job, (an_attempt(started_at=NOON + at(1), finished_at=NOON + at(2)),))
    entry = an_entry(at=NOON + at(3), action="requeue", actor="ada")
    told = history(detail, [entry])
    assert [event.event for event in told] == [
        *("created", "attempt_started", "attempt_failed", "command", "due", "started", "dead")
    ]
    assert [event.by for event in told if event.by] == ["worker-1", "worker-1", "ada"]
    assert told[-1].text == "dead: exhausted"


def test_a_parked_job_says_when_it_comes_back_and_a_ready_one_does_not() -> None:
    parked = a_view(state=JobState.RETRYING, reason="failed", due_at=NOON + at(9))
    assert history(JobDetail(parked, ()), [])[-1].text == "retrying until then: failed"
    ready = a_view(state=JobState.READY)
    assert [event.event for event in history(JobDetail(ready, ()), [])] == ["created"]


def test_a_request_to_stop_names_who_asked() -> None:
    asked = a_view(state=JobState.RUNNING, cancel_requested_at=NOON + at(1), cancelled_by="ada")
    assert [(event.event, event.by) for event in history(JobDetail(asked, ()), [])][1:] == [("cancel_requested", "ada")]
