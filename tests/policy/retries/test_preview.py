"""The attempts ahead of a job with their dates: F1's table as an operator reads it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.jobs.states import Reason
from perdure.errors import ArgumentError
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter
from perdure.policy.retries.preview import PlannedAt, preview
from perdure.policy.retries.retry import Retry

SINCE = datetime(2026, 1, 1, 12, tzinfo=UTC)

NOTIFICATIONS = Retry(attempts=5, backoff=Backoff.exponential("1m", cap="1h"), jitter=Jitter.none())
FLAGS = Retry(attempts=4, backoff=Backoff.exponential("2m", cap="1h"), jitter=Jitter.plus("30s"))
PULSE = Retry(attempts=3, backoff=Backoff.none(), jitter=Jitter.none())
POLLS = Retry(
    attempts=None, backoff=Backoff.table("5s", "15s", "45s", "2m", "5m"), jitter=Jitter.ratio(0.2), within="10m"
)
AUDITS = Retry(attempts=3, backoff=Backoff.exponential("30s"), jitter=Jitter.none())
WEBHOOKS = Retry(attempts=5, backoff=Backoff.table(30, 60, 300, 900), jitter=Jitter.ratio(0.2))


def seconds(plan: list[PlannedAt]) -> list[tuple[float, float]]:
    return [((step.earliest - SINCE).total_seconds(), (step.latest - SINCE).total_seconds()) for step in plan]


def at(*points: float) -> list[tuple[float, float]]:
    return [(point, point) for point in points]


@pytest.mark.parametrize(
    ("policy", "expected", "then"),
    [
        (NOTIFICATIONS, at(0, 60, 180, 420, 900), Reason.EXHAUSTED),
        (FLAGS, [(0, 0), (120, 150), (360, 420), (840, 930)], Reason.EXHAUSTED),
        (PULSE, at(0, 0, 0), Reason.EXHAUSTED),
        (
            POLLS,
            [(0, 0), (4, 6), (16, 24), (52, 78), (148, 222), (388, 582), (600, 600)],
            Reason.OUT_OF_TIME,
        ),
        (AUDITS, at(0, 30, 90), Reason.EXHAUSTED),
        (WEBHOOKS, [(0, 0), (24, 36), (72, 108), (312, 468), (1032, 1548)], Reason.EXHAUSTED),
    ],
    ids=["A notifications", "B flags", "C pulse", "D polls", "E audits", "E webhooks"],
)
def test_f1_every_policy_of_the_table_has_its_timeline(
    policy: Retry, expected: list[tuple[float, float]], then: Reason
) -> None:
    plan = preview(policy, SINCE)
    assert seconds(plan) == expected
    assert [step.attempt for step in plan] == list(range(1, len(plan) + 1))
    assert [step.then for step in plan] == [None] * (len(plan) - 1) + [then]


def test_b14_a_job_that_has_failed_before_is_followed_from_its_next_attempt_on() -> None:
    due = SINCE + timedelta(minutes=9)
    plan = preview(FLAGS, SINCE, failures=2, due=due)
    assert plan == [
        PlannedAt(3, due, due),
        PlannedAt(4, due + timedelta(minutes=8), due + timedelta(minutes=8, seconds=30), Reason.EXHAUSTED),
    ]
    assert preview(FLAGS, SINCE, failures=2) == preview(FLAGS, SINCE)[2:]


def test_b14_the_time_limit_counts_from_the_first_attempt() -> None:
    policy = Retry(attempts=None, backoff=Backoff.fixed("5m"), jitter=Jitter.none(), within="8m")
    assert seconds(preview(policy, SINCE, 1, due=SINCE + timedelta(minutes=6))) == at(360, 480)
    late = preview(policy, SINCE, 1, due=SINCE + timedelta(hours=1))
    assert late == [PlannedAt(2, SINCE + timedelta(hours=1), SINCE + timedelta(hours=1), Reason.OUT_OF_TIME)]


def test_b14_a_job_with_more_failures_than_attempts_has_one_more() -> None:
    """Its limit was lowered meanwhile: it is due, so it runs."""
    assert [(step.attempt, step.then) for step in preview(PULSE, SINCE, failures=7)] == [(8, Reason.EXHAUSTED)]


def test_b14_backoff_by_error_has_its_own_timeline() -> None:
    policy = Retry(
        attempts=3,
        jitter=Jitter.none(),
        permanent=ValueError,
        by_error={OSError: Backoff.fixed("10s"), ConnectionError: Retry(attempts=2, jitter=Jitter.none())},
    )
    assert seconds(preview(policy, SINCE, error=KeyError)) == seconds(preview(policy, SINCE)) == at(0, 15, 75)
    assert seconds(preview(policy, SINCE, error=FileNotFoundError)) == at(0, 10, 20)
    assert seconds(preview(policy, SINCE, error=ConnectionResetError)) == at(0, 15)
    assert preview(policy, SINCE, error=UnicodeError) == [PlannedAt(1, SINCE, SINCE, Reason.PERMANENT)]
    assert preview(policy, SINCE, 1, error=UnicodeError)[0].earliest == SINCE + timedelta(seconds=15)


def test_b14_without_a_limit_the_first_few_are_reported_and_none_of_them_is_the_last() -> None:
    endless = Retry(attempts=None, jitter=Jitter.none())
    assert len(preview(endless, SINCE)) == 20
    assert [step.then for step in preview(endless, SINCE, most=3)] == [None] * 3


def test_b14_dates_stay_dates_however_long_the_waits_are() -> None:
    endless = Retry(attempts=None, backoff=Backoff.fixed("36500d"))
    assert preview(endless, SINCE, 1000, most=50)[-1].latest == SINCE + timedelta(days=36_500)


@given(st.sampled_from([NOTIFICATIONS, FLAGS, POLLS, WEBHOOKS]), st.randoms(use_true_random=False))
def test_b14_what_happens_lies_within_what_was_foreseen(policy: Retry, random: Random) -> None:
    elapsed, failures, plan = timedelta(0), 0, policy.preview()
    while True:
        assert plan[failures].earliest <= elapsed <= plan[failures].latest
        wait = None if policy.is_last(failures) else policy.wait(failures, elapsed, random)
        if wait is None:
            break
        assert plan[failures].then is None
        elapsed, failures = elapsed + wait, failures + 1


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"most": 0}, "most"), ({"failures": -1}, "failures"), ({"due": SINCE.replace(tzinfo=None)}, "due")],
)
def test_bad_questions_are_refused_by_name(wrong: dict[str, int], field: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        preview(FLAGS, SINCE, **wrong)  # type: ignore[arg-type]
    assert refused.value.field == field
    with pytest.raises(ArgumentError, match=r"^since must have a time zone"):
        preview(FLAGS, SINCE.replace(tzinfo=None))
