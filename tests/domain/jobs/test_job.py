"""A claim of a job."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace
from tests.support.builders.views import NOON, a_claim

MINUTE = timedelta(minutes=1)
CLAIM = a_claim()


def test_earlier_failures_and_crashes_count_as_attempts() -> None:
    assert CLAIM.attempt == 1
    assert replace(CLAIM, failures=2, crashes=1).attempt == 4


def test_a_fresh_job_waited_since_it_was_enqueued_and_another_since_it_came_due_again() -> None:
    claim = replace(CLAIM, claimed_at=NOON + MINUTE)
    assert replace(claim, is_fresh=True).waited == MINUTE
    assert replace(claim, due_at=NOON + MINUTE / 2).waited == MINUTE / 2
    assert claim.waited is None


def test_gates_are_passed_for_one_attempt_of_one_life() -> None:
    """A requeue begins a new life, and a failure a new attempt: both pass the gates again."""
    passed = replace(CLAIM, gates_passed=CLAIM.start)
    assert passed.has_passed
    assert replace(passed, token=9, claimed_at=NOON + MINUTE).has_passed
    assert not replace(passed, failures=1).has_passed
    assert not replace(passed, since=NOON + MINUTE).has_passed
    assert not CLAIM.has_passed
