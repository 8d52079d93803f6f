"""Verdicts that a handler raises."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.builders.views import NOON

from perdure.domain.duration import LONGEST_DURATION
from perdure.domain.jobs.verdicts import Finish, Pause, Pending, Permanent, Release, RetryAfter, Snooze
from perdure.errors import ArgumentError


def test_a_wait_is_a_span_or_an_instant_and_never_negative() -> None:
    assert Snooze("90s").after(NOON) == timedelta(seconds=90)
    assert RetryAfter(NOON + timedelta(hours=1)).after(NOON) == timedelta(hours=1)
    assert RetryAfter(NOON - timedelta(hours=1)).after(NOON) == timedelta(0)
    assert RetryAfter().after(NOON) is None
    assert Release().after(NOON) is None


def test_a_wait_that_an_outside_system_asks_for_can_be_capped() -> None:
    assert Pending("2h", at_most="1h").after(NOON) == timedelta(hours=1)
    assert RetryAfter(datetime(9999, 1, 1, tzinfo=UTC)).after(NOON) == LONGEST_DURATION


def test_a_wait_that_cannot_be_meant_is_refused_where_it_is_raised() -> None:
    with pytest.raises(ArgumentError, match="wait must say its time zone"):
        Snooze(datetime(2026, 1, 1))  # noqa: DTZ001 - it is refused
    for wrong in ("soon", -1, True):
        with pytest.raises(ArgumentError, match=r"^wait "):
            Pause("closed", wrong)
    with pytest.raises(ArgumentError, match=r"^at_most "):
        Pending("1s", at_most="soon")


def test_a_verdict_as_text_is_what_it_says_of_the_job() -> None:
    said = [Finish("a", "b"), Permanent("gone"), RetryAfter("1s", "busy"), Pause("closed", "1h"), Finish()]
    assert [str(verdict) for verdict in said] == ["a; b", "gone", "busy", "closed", ""]
