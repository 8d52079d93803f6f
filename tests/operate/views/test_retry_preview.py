"""The attempts that a job still has."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.views import NOON, a_view

from perdure import App, Backoff, Jitter, Retry
from perdure.domain.jobs.states import JobState
from perdure.errors import ArgumentError, NotFoundError
from perdure.operate.views.retry_preview import preview_of_job, preview_of_kind
from perdure.policy.own_settings import settings_text

EVERY_MINUTE = Retry(attempts=4, backoff=Backoff.fixed("1m"), jitter=Jitter.none())
app = App("sqlite:///unused.db", retry=EVERY_MINUTE)


@app.job
async def greet() -> None: ...


def minutes(*after: int) -> list[timedelta]:
    return [timedelta(minutes=each) for each in after]


def test_a_kind_shows_all_attempts_and_whether_others_follow() -> None:
    whole = preview_of_kind(app.kinds, "greet", NOON, 10)
    assert [step.earliest - NOON for step in whole.plan] == minutes(0, 1, 2, 3)
    assert not whole.more
    assert preview_of_kind(app.kinds, "greet", NOON, 2).more


def test_a_job_goes_on_from_its_next_attempt_and_crashed_ones_are_counted() -> None:
    job = a_view(state=JobState.RETRYING, failures=1, crashes=2, due_at=NOON + timedelta(minutes=5))
    ahead = preview_of_job(app.kinds, job, NOON, 10)
    assert ahead is not None
    assert [step.attempt for step in ahead.plan] == [4, 5, 6]
    assert [step.earliest - NOON for step in ahead.plan] == minutes(5, 6, 7)


def test_a_job_that_has_ended_has_no_attempts_left() -> None:
    ended = preview_of_job(app.kinds, a_view(state=JobState.SUCCEEDED), NOON, 10)
    assert ended is not None
    assert (ended.plan, ended.more) == ((), False)


def test_without_the_code_only_a_policy_of_the_jobs_own_is_known() -> None:
    assert preview_of_job(None, a_view(), NOON, 10) is None
    own = preview_of_job(None, a_view(settings=settings_text(Retry(attempts=2), None)), NOON, 10)
    assert own is not None
    assert len(own.plan) == 2


def test_an_unknown_kind_and_a_policy_that_cannot_be_read_are_named() -> None:
    with pytest.raises(NotFoundError, match=r"declares no kind 'pdf'; declared are: .*greet"):
        preview_of_kind(app.kinds, "pdf", NOON, 10)
    broken = App("sqlite:///unused.db")

    def read() -> Retry:
        raise KeyError("limits")

    @broken.job(retry=read)
    async def fail() -> None: ...

    with pytest.raises(ArgumentError, match="retry of kind 'fail' cannot be read: KeyError"):
        preview_of_kind(broken.kinds, "fail", NOON, 10)
