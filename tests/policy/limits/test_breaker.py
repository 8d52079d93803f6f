"""When an outside system is called, left alone, and called again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure.domain.gate import BreakerCheck, BreakerReport, BreakerState, BreakerView, Held
from perdure.domain.jobs.ids import JobId
from perdure.policy.limits.breaker import admit, close_by_hand, note_failure, note_reports, note_success, open_by_hand

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
CHECK = BreakerCheck("digicert", 3, MINUTE, 2 * MINUTE, 1)
FRESH = BreakerView(name="digicert")
A, B, C = JobId("a"), JobId("b"), JobId("c")


def failed(*after: timedelta, check: BreakerCheck = CHECK, retry_after: timedelta | None = None) -> BreakerView:
    view = FRESH
    for span in after:
        view = note_failure(view, check, A, NOW + span, retry_after)
    return view


OPEN = failed(timedelta(0), SECOND, 2 * SECOND)
TRIED = NOW + 2 * SECOND + 2 * MINUTE


def half_open(check: BreakerCheck = CHECK) -> BreakerView:
    view, held = admit(OPEN, check, A, TRIED)
    assert held is None
    return view


def test_b14_enough_failures_within_the_window_open_it() -> None:
    opened = failed(timedelta(0), SECOND, 2 * SECOND)
    assert (opened.state, opened.changed_at, opened.until) == (BreakerState.OPEN, NOW + 2 * SECOND, TRIED)
    assert (opened.failures, opened.note) == ((), "3 failures within 1m")


def test_b14_failures_that_have_left_the_window_are_forgotten() -> None:
    view = failed(timedelta(0), SECOND, MINUTE)
    assert view.state is BreakerState.CLOSED
    assert view.failures == (NOW + SECOND, NOW + MINUTE)
    assert failed(*(n * MINUTE for n in range(100))).state is BreakerState.CLOSED


def test_b14_while_it_is_open_its_jobs_are_held_until_its_time_is_over() -> None:
    view, held = admit(OPEN, CHECK, B, NOW + 10 * SECOND)
    assert view is OPEN
    note = "digicert: 3 failures within 1m, until 2026-01-01T00:02:02+00:00"
    assert held == Held("circuit breaker open", note, 112 * SECOND, key="digicert")


@pytest.mark.parametrize(
    ("asked", "away"),
    [
        (None, 2 * MINUTE),
        (SECOND, 2 * MINUTE),
        (5 * MINUTE, 5 * MINUTE),
        (timedelta(days=400), timedelta(days=1)),
    ],
)
def test_b14_it_stays_open_for_as_long_as_the_outside_system_asks(asked: timedelta | None, away: timedelta) -> None:
    assert failed(timedelta(0), SECOND, 2 * SECOND, retry_after=asked).until == NOW + 2 * SECOND + away


def test_b14_a_straggler_can_lengthen_the_pause_but_not_shorten_it() -> None:
    assert note_failure(OPEN, CHECK, B, NOW + 3 * SECOND) is OPEN
    assert note_failure(OPEN, CHECK, B, NOW, MINUTE) is OPEN
    assert note_failure(OPEN, CHECK, B, NOW + 3 * SECOND, HOUR).until == NOW + 3 * SECOND + HOUR
    assert note_success(OPEN, B, NOW + 3 * SECOND) is OPEN


def test_b14_then_a_few_trials_run_and_the_others_wait() -> None:
    view = half_open()
    assert (view.state, view.trials, view.until) == (BreakerState.HALF_OPEN, (A,), TRIED + 2 * MINUTE)
    same, held = admit(view, CHECK, B, TRIED + SECOND)
    assert same is view
    assert held is not None
    assert held.note == "digicert: 1 of 1 trials under way"
    assert SECOND <= held.wait <= MINUTE
    assert admit(view, CHECK, A, TRIED + SECOND)[1] is None  # the trial itself, rescued and back

    two = replace(CHECK, half_open=2)
    assert admit(half_open(two), two, B, TRIED + SECOND)[0].trials == (A, B)


def test_b14_a_trial_that_succeeds_closes_it_and_one_that_fails_opens_it_again() -> None:
    view = half_open()
    assert note_success(view, B, TRIED) is view
    assert note_failure(view, CHECK, B, TRIED) is view
    closed = note_success(view, A, TRIED + SECOND)
    assert closed == BreakerView(name="digicert", changed_at=TRIED + SECOND, note="the trial succeeded")
    opened = note_failure(view, CHECK, A, TRIED + SECOND, HOUR)
    assert (opened.state, opened.until, opened.trials) == (BreakerState.OPEN, TRIED + SECOND + HOUR, ())


def test_b14_a_trial_that_is_never_heard_of_again_is_given_up() -> None:
    view = half_open()
    assert admit(view, CHECK, B, TRIED + 2 * MINUTE - SECOND)[1] is not None
    next_view, held = admit(view, CHECK, B, TRIED + 2 * MINUTE)
    assert held is None
    assert next_view.trials == (B,)
    assert note_success(next_view, A, TRIED + 3 * MINUTE) is next_view


def test_b14_once_closed_it_is_drained_slowly() -> None:
    """1 job in the first second, 2 in the next, 4, 8 … for ten seconds, then all; the held wait to the next second."""
    view, passed = note_success(half_open(), A, TRIED), list[int]()
    for second in range(10):
        now, count = TRIED + second * SECOND + SECOND / 4, 0
        while True:
            view, held = admit(view, CHECK, B, now)
            if held is not None:
                break
            count += 1
        assert held.wait == SECOND * 0.75
        passed.append(count)
    assert passed == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    for _ in range(3):
        assert admit(view, CHECK, B, TRIED + 10 * SECOND) == (view, None)


def test_b14_while_it_is_closed_nothing_needs_to_be_written() -> None:
    assert admit(FRESH, CHECK, A, NOW) == (FRESH, None)
    assert note_success(FRESH, A, NOW) is FRESH


def test_b14_opened_by_hand_it_stays_open_until_closed_by_hand() -> None:
    view = open_by_hand(failed(SECOND), NOW, "maintenance")
    assert admit(view, CHECK, A, NOW + 1000 * HOUR)[0] is view
    held = admit(view, CHECK, A, NOW)[1]
    assert held is not None
    assert held.note == "digicert: opened by hand: maintenance, until it is closed by hand"
    assert note_success(view, A, NOW) is view
    assert note_failure(view, CHECK, A, NOW, HOUR) is view

    closed = close_by_hand(view, NOW + HOUR)
    assert closed == BreakerView(name="digicert", changed_at=NOW + HOUR)
    assert close_by_hand(half_open(), NOW).trials == ()


def test_b14_opened_by_hand_for_a_while_it_says_by_whom_until_when_and_why() -> None:
    by_hand = open_by_hand(FRESH, NOW, "maintenance", "ada")
    held = admit(replace(by_hand, by_hand=False, until=NOW + HOUR), CHECK, A, NOW)[1]
    assert held is not None
    assert held.note == "digicert: opened by ada: maintenance, until 2026-01-01T01:00:00+00:00"


def test_b14_reports_change_only_what_they_change() -> None:
    other = replace(CHECK, name="sectigo", failures=1)
    reports = [
        (CHECK, BreakerReport("digicert", A, succeeded=False)),
        (CHECK, BreakerReport("digicert", B, succeeded=False)),
        (CHECK, BreakerReport("entrust", C, succeeded=True)),
        (other, BreakerReport("sectigo", C, succeeded=False, retry_after=HOUR)),
    ]
    met = {"digicert": failed(-SECOND), "globalsign": OPEN}
    changed = {view.name: view for view in note_reports(reports)(NOW, met)}
    assert {name: view.state for name, view in changed.items()} == {
        "digicert": BreakerState.OPEN,
        "sectigo": BreakerState.OPEN,
    }
    assert changed["sectigo"].until == NOW + HOUR
    assert note_reports([])(NOW, met) == []


STEPS = st.tuples(st.sampled_from(["ask", "failure", "success"]), st.sampled_from([A, B, C]), st.integers(0, 200))


@given(st.lists(STEPS, max_size=60), st.integers(1, 3), st.integers(1, 3))
def test_b14_in_any_order_of_events_trials_are_few_and_a_held_job_gets_through_in_the_end(
    steps: list[tuple[str, JobId, int]], failures: int, half_open: int
) -> None:
    check = BreakerCheck("digicert", failures, MINUTE, 2 * MINUTE, half_open)
    view, now = FRESH, NOW
    for what, job, seconds in steps:
        now += seconds * SECOND
        if what == "ask":
            view, _ = admit(view, check, job, now)
        elif what == "failure":
            view = note_failure(view, check, job, now)
        else:
            view = note_success(view, job, now)
        assert len(view.trials) <= half_open
        assert (view.state is BreakerState.HALF_OPEN) == bool(view.trials)
        assert len(view.failures) < failures
    for _ in range(20):
        view, held = admit(view, check, JobId("patient"), now)
        if held is None:
            break
        assert held.wait > timedelta(0)
        now += held.wait
    assert held is None
