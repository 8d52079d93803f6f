"""What a schedule owes when its time has come: prompt, missed, let go, and what is next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.domain.schedule import Missed, Schedule
from perdure.policy.schedules.agenda import Agenda, agenda
from perdure.policy.schedules.timetable import timetable

NOON = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def owed(
    missed: Missed,
    within: timedelta,
    now: datetime,
    next_at: datetime = NOON,
    expression: str = "0 * * * *",
) -> Agenda:
    schedule = Schedule(name="tidy", kind="tidy", expression=expression, missed=missed, within=within)
    return agenda(schedule, next_at, now, timetable(expression, "UTC"))


@pytest.mark.parametrize("missed", Missed)
def test_b11_a_due_time_on_an_exact_minute_is_taken(missed: Missed) -> None:
    assert owed(missed, MINUTE, NOON) == Agenda(fire=(NOON,), next_at=NOON + HOUR)


@pytest.mark.parametrize("missed", Missed)
def test_a_time_fires_until_it_is_exactly_as_old_as_it_may_be(missed: Missed) -> None:
    assert owed(missed, 20 * SECOND, NOON + 20 * SECOND).fire == (NOON,)
    late = owed(missed, 20 * SECOND, NOON + 20 * SECOND + TICK)
    assert late == Agenda(fire=(), let_go=(NOON,), missed=1, next_at=NOON + HOUR)


@pytest.mark.parametrize("missed", Missed)
def test_before_its_time_nothing_is_owed_and_nothing_is_moved(missed: Missed) -> None:
    assert owed(missed, HOUR, NOON - TICK) == Agenda(fire=(), next_at=NOON)
    assert owed(missed, HOUR, NOON - 3 * HOUR) == Agenda(fire=(), next_at=NOON)


def test_skip_lets_go_what_is_older_than_its_window() -> None:
    skipped = owed(Missed.SKIP, MINUTE, NOON + 3 * HOUR + 30 * SECOND)
    assert skipped.fire == (NOON + 3 * HOUR,)
    assert skipped.let_go == (NOON, NOON + HOUR, NOON + 2 * HOUR)
    assert skipped.missed == 3
    assert skipped.next_at == NOON + 4 * HOUR


def test_all_fires_every_missed_time_of_the_window_in_order() -> None:
    caught_up = owed(Missed.ALL, 3 * HOUR, NOON + 5 * HOUR)
    assert caught_up.fire == tuple(NOON + hours * HOUR for hours in (2, 3, 4, 5))
    assert caught_up.let_go == (NOON, NOON + HOUR)
    assert caught_up.next_at == NOON + 6 * HOUR


def test_all_fires_a_time_that_is_exactly_as_old_as_the_window() -> None:
    assert owed(Missed.ALL, 5 * HOUR, NOON + 5 * HOUR).fire[0] == NOON
    assert owed(Missed.ALL, 5 * HOUR, NOON + 5 * HOUR + TICK).let_go == (NOON,)


def test_once_lets_the_latest_missed_time_stand_for_all() -> None:
    once = owed(Missed.ONCE, DAY, NOON + 3 * HOUR + 30 * MINUTE)
    assert once.fire == (NOON + 3 * HOUR,)
    assert once.let_go == (NOON, NOON + HOUR, NOON + 2 * HOUR)
    assert once.missed == 3
    assert once.next_at == NOON + 4 * HOUR


def test_once_fires_a_prompt_time_beside_the_one_that_was_missed() -> None:
    once = owed(Missed.ONCE, DAY, NOON + 3 * HOUR + 10 * SECOND)
    assert once.fire == (NOON + 2 * HOUR, NOON + 3 * HOUR)
    assert once.let_go == (NOON, NOON + HOUR)


def test_once_calls_a_time_prompt_for_exactly_a_minute() -> None:
    prompt = owed(Missed.ONCE, DAY, NOON + 2 * MINUTE, expression="* * * * *")
    assert prompt.fire == (NOON, NOON + MINUTE, NOON + 2 * MINUTE)
    late = owed(Missed.ONCE, DAY, NOON + 2 * MINUTE + TICK, expression="* * * * *")
    assert late.fire == (NOON + MINUTE, NOON + 2 * MINUTE)
    assert late.let_go == (NOON,)


def test_once_counts_a_time_that_is_exactly_as_old_as_the_window() -> None:
    assert owed(Missed.ONCE, 30 * MINUTE, NOON + 30 * MINUTE).fire == (NOON,)
    too_old = owed(Missed.ONCE, 30 * MINUTE, NOON + 30 * MINUTE + TICK)
    assert too_old == Agenda(fire=(), let_go=(NOON,), missed=1, next_at=NOON + HOUR)


def test_once_takes_no_time_that_was_dealt_with_before() -> None:
    """The time before `next_at` is in the window, and has had its job."""
    on_time = owed(Missed.ONCE, DAY, NOON + 5 * SECOND)
    assert on_time == Agenda(fire=(NOON,), next_at=NOON + HOUR)


@pytest.mark.parametrize("missed", [Missed.SKIP, Missed.ALL])
def test_a_backlog_is_taken_in_batches_of_500_and_none_is_lost(missed: Missed) -> None:
    now = NOON + 1_199 * SECOND
    next_at: datetime | None = NOON
    batches = []
    while next_at is not None and next_at <= now:
        batch = owed(missed, HOUR, now, next_at, "@every 1s")
        assert batch.missed == 0
        batches.append(batch.fire)
        next_at = batch.next_at
    assert [len(batch) for batch in batches] == [500, 500, 200]
    assert [time for batch in batches for time in batch] == [NOON + n * SECOND for n in range(1_200)]
    assert next_at == now + SECOND


def test_a_batch_of_exactly_500_is_followed_by_what_is_next() -> None:
    batch = owed(Missed.ALL, HOUR, NOON + 499 * SECOND, expression="@every 1s")
    assert len(batch.fire) == 500
    assert batch.next_at == NOON + 500 * SECOND


@pytest.mark.parametrize(("missed", "fired"), [(Missed.SKIP, 2), (Missed.ONCE, 3), (Missed.ALL, 2)])
def test_a_clock_far_ahead_costs_no_more_than_a_bounded_look_back(missed: Missed, fired: int) -> None:
    """Ten years of minutes: they are counted up to a thousand, and the latest hundred are told."""
    now = NOON + 3_650 * DAY
    far = owed(missed, MINUTE if missed is not Missed.ONCE else DAY, now, expression="* * * * *")
    assert len(far.fire) == fired
    assert far.fire[-1] == now
    assert far.missed == 1_000
    assert len(far.let_go) == 100
    assert far.let_go[-1] == far.fire[0] - MINUTE
    assert list(far.let_go) == sorted(far.let_go)
    assert far.next_at == now + MINUTE


def test_a_next_time_that_is_no_nominal_time_any_more_is_only_where_to_begin() -> None:
    """The rules of a zone change with a new release of them; what was stored goes by the old ones."""
    stale = NOON - 30 * MINUTE
    assert owed(Missed.SKIP, MINUTE, NOON - 10 * MINUTE, stale) == Agenda(fire=(), next_at=NOON)
    assert owed(Missed.ONCE, HOUR, NOON - 10 * MINUTE, stale) == Agenda(fire=(), next_at=NOON)
    assert owed(Missed.ALL, HOUR, NOON, stale) == Agenda(fire=(NOON,), next_at=NOON + HOUR)
    assert owed(Missed.ONCE, HOUR, NOON + 2 * MINUTE, stale) == Agenda(fire=(NOON,), next_at=NOON + HOUR)


def test_a_schedule_that_has_no_time_left_has_no_next() -> None:
    class Over:
        def next_after(self, instant: datetime) -> datetime | None:
            return NOON if instant < NOON else None

        def last_before(self, instant: datetime) -> datetime | None:
            return NOON if instant > NOON else None

    schedule = Schedule(name="once", kind="once", expression="@yearly")
    assert agenda(schedule, NOON, NOON, Over()) == Agenda(fire=(NOON,), next_at=None)


@settings(deadline=None)
@given(
    st.sampled_from(Missed),
    st.timedeltas(min_value=SECOND, max_value=timedelta(hours=10)),
    st.timedeltas(min_value=timedelta(0), max_value=timedelta(hours=20)),
    st.sampled_from(["*/7 * * * *", "0 * * * *", "@every 400s"]),
)
def test_every_time_that_was_due_is_fired_or_let_go_and_never_both(
    missed: Missed, within: timedelta, late: timedelta, expression: str
) -> None:
    times = timetable(expression, "UTC")
    first = times.next_after(NOON)
    assert first is not None
    now = first + late
    due = list(times.between(first, now + TICK))
    found = owed(missed, within, now, first, expression)
    assert found.missed == len(due) - len(found.fire)
    assert [*found.let_go, *found.fire] == due[-len(found.let_go) - len(found.fire) :]
    assert all(now - time <= within for time in found.fire)
    assert found.next_at == times.next_after(now)
    if missed is not Missed.ONCE:
        assert all(now - time > within for time in found.let_go)
    else:
        late_ones = [time for time in due if MINUTE < now - time <= within]
        assert [time for time in found.fire if now - time > MINUTE] == late_ones[-1:]
