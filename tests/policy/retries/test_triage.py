"""One classifier turns what happened into F3's words, whatever was raised."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.jobs import outcome
from perdure.domain.jobs.outcome import Outcome
from perdure.domain.jobs.verdicts import (
    CancelJob,
    Finish,
    Pause,
    Pending,
    Permanent,
    Release,
    RetryAfter,
    Snooze,
    Verdict,
)
from perdure.errors import ArgumentError
from perdure.policy.failures import MESSAGE_LIMIT_CHARACTERS, TRACEBACK_LIMIT_CHARACTERS, failure_of, lineage, storable
from perdure.policy.retries.triage import LOOK_AGAIN, Triage, classify

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class NotReadyError(Exception):
    """An error that knows nothing of perdure."""


def happened(error: BaseException, triage: Triage | None = None) -> Outcome:
    """Classify it as it comes from a handler: raised."""
    try:
        raise error  # noqa: TRY301 - a traceback is what makes it real
    except BaseException as caught:  # noqa: BLE001 - the very thing that a worker does
        return classify(caught, triage, NOW)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Finish(), outcome.Done()),
        (Finish("no channel", "no mail"), outcome.Done(None, ("no channel", "no mail"))),
        (Pending("1m"), outcome.StillPending(MINUTE)),
        (Pending(), outcome.StillPending(LOOK_AGAIN)),
        (Snooze(60), outcome.Snoozed(MINUTE)),
        (Snooze(NOW + MINUTE), outcome.Snoozed(MINUTE)),
        (Snooze(NOW - MINUTE), outcome.Snoozed(timedelta(0))),
        (Release(), outcome.Released()),
        (Release("1m"), outcome.Released(MINUTE)),
        (Pause("budget_exceeded"), outcome.Paused("budget_exceeded")),
        (Pause("rate_limited", "1m"), outcome.Paused("rate_limited", MINUTE)),
        (CancelJob("order withdrawn"), outcome.Cancelled("order withdrawn")),
    ],
)
def test_f3_every_word_means_the_same_raised_or_returned(verdict: Verdict, expected: Outcome) -> None:
    assert happened(verdict) == expected
    assert happened(NotReadyError("x"), lambda _: verdict) == expected


def test_f3_retry_when() -> None:
    said = happened(RetryAfter("1m", "busy"))
    assert isinstance(said, outcome.Failed)
    assert said.retry_after == MINUTE
    assert said.failure.message == "busy"
    at = happened(RetryAfter(NOW + MINUTE))
    assert isinstance(at, outcome.Failed)
    assert at.retry_after == MINUTE


def test_f3_permanent() -> None:
    said = happened(Permanent("flag deleted"))
    assert isinstance(said, outcome.Permanent)
    assert said.failure.error_type == "perdure.Permanent"
    assert said.failure.message == "flag deleted"
    assert said.failure.traceback is not None
    assert "flag deleted" in said.failure.traceback


def test_any_other_error_is_a_failure_known_by_its_types() -> None:
    said = happened(ConnectionResetError("gone"))
    assert isinstance(said, outcome.Failed)
    assert said.retry_after is None
    assert not said.timed_out
    assert said.kinds == ("ConnectionResetError", "ConnectionError", "OSError", "Exception", "BaseException")
    assert said.failure.error_type == "ConnectionResetError"
    assert said.failure.message == "gone"


def test_a_triage_speaks_for_errors_that_it_knows_and_passes_over_others() -> None:
    def triage(error: BaseException) -> Verdict | None:
        return RetryAfter("1m") if isinstance(error, NotReadyError) else None

    known = happened(NotReadyError("soon"), triage)
    assert isinstance(known, outcome.Failed)
    assert (known.retry_after, known.failure.message, known.kinds) == (MINUTE, "soon", ())
    other = happened(KeyError("x"), triage)
    assert isinstance(other, outcome.Failed)
    assert other.kinds == lineage(KeyError)


def test_a_retry_without_a_time_leaves_it_to_the_policy_by_error() -> None:
    said = happened(NotReadyError("soon"), lambda _: RetryAfter(None))
    assert isinstance(said, outcome.Failed)
    assert said.retry_after is None
    assert said.kinds == lineage(NotReadyError)


def test_a_raised_verdict_is_not_judged_again() -> None:
    assert happened(Snooze("1m"), lambda _: Permanent()) == outcome.Snoozed(MINUTE)


def test_a_timeout_is_distinguished() -> None:
    said = classify(TimeoutError(), None, NOW, timed_out=True)
    assert isinstance(said, outcome.Failed)
    assert said.timed_out


def test_a_triage_that_fails_hides_nothing() -> None:
    def broken(error: BaseException) -> Verdict | None:
        raise ZeroDivisionError(str(error)[:0] + "oops")

    said = happened(NotReadyError("the real one"), broken)
    assert isinstance(said, outcome.Failed)
    assert said.failure.message == "the real one (its triage failed: ZeroDivisionError: oops)"
    assert said.kinds == lineage(NotReadyError)


def test_a_triage_that_returns_nonsense_is_reported_so() -> None:
    nonsense: Any = lambda _: "retry"  # noqa: E731 - typed as anything
    said = happened(NotReadyError("x"), nonsense)
    assert isinstance(said, outcome.Failed)
    assert "a triage returns a verdict or None, not 'retry'" in said.failure.message


def test_a_group_of_one_is_judged_as_that_one() -> None:
    group = ExceptionGroup("tasks", [ExceptionGroup("inner", [Permanent("no")])])
    said = happened(group)
    assert isinstance(said, outcome.Permanent)
    assert said.failure.message == "no"
    assert said.failure.traceback is not None
    assert "ExceptionGroup: tasks" in said.failure.traceback
    many = happened(ExceptionGroup("tasks", [Permanent("no"), KeyError("x")]))
    assert isinstance(many, outcome.Failed)
    assert many.failure.error_type == "ExceptionGroup"


def test_a_message_is_cut_in_the_middle_to_a_sane_size() -> None:
    failure = failure_of(ValueError("begin" + "x" * 1_000_000 + "end"))
    assert len(failure.message) <= MESSAGE_LIMIT_CHARACTERS
    assert failure.message.startswith("begin")
    assert failure.message.endswith("end")
    assert "characters cut" in failure.message
    assert failure.traceback is not None
    assert len(failure.traceback) <= TRACEBACK_LIMIT_CHARACTERS


def test_what_a_database_cannot_hold_is_taken_out_and_the_rest_kept() -> None:
    failure = failure_of(ValueError("a\x00b\x1b[31m\ud800"))
    assert failure.message == "ab\x1b[31m\\ud800"


def test_an_error_that_cannot_speak_is_still_recorded() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    said = happened(MuteError())
    assert isinstance(said, outcome.Failed)
    assert "could not be turned into text" in said.failure.message


@given(st.text(), st.integers(min_value=100, max_value=200))
def test_storable_text_is_short_and_encodes(text: str, limit: int) -> None:
    kept = storable(text, limit)
    assert b"\x00" not in kept.encode()
    if len(text) <= limit and "\x00" not in text:
        assert kept == text


@pytest.mark.parametrize(
    "verdict",
    [
        Finish("a"),
        Permanent("b"),
        CancelJob("c"),
        RetryAfter("1m", "d", at_most="30s"),
        Pending(),
        Snooze(5),
        Release(),
        Pause("e"),
    ],
)
def test_a_verdict_survives_the_way_between_processes(verdict: Verdict) -> None:
    for twin in (pickle.loads(pickle.dumps(verdict)), copy.copy(verdict)):  # noqa: S301 - our own bytes
        assert type(twin) is type(verdict)
        assert str(twin) == str(verdict)
        assert vars(twin) == vars(verdict)


def test_a_wait_that_makes_no_sense_is_refused_where_it_is_written() -> None:
    with pytest.raises(ArgumentError, match=r"^wait "):
        RetryAfter("soon")
    with pytest.raises(ArgumentError, match=r"^wait must say its time zone"):
        Snooze(datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake in question


def test_at_most_bounds_the_wait() -> None:
    assert RetryAfter("2d", at_most="1d").after(NOW) == timedelta(days=1)
    assert RetryAfter(datetime.max.replace(tzinfo=UTC)).after(NOW) == timedelta(days=36_500)
