"""Schedules that do not fire."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.support.builders.jobs import DAY, MINUTE, SECOND
from tests.support.builders.views import NOON

from perdure.domain.schedule import Origin, Schedule, ScheduleView
from perdure.operate.health.schedule_health import judge_schedules
from perdure.storage.operate.diagnosis import Severity


def a_schedule(name: str = "nightly", *, late: timedelta = -MINUTE, **changes: Any) -> ScheduleView:
    expression = changes.pop("expression", "@daily")
    plain: dict[str, Any] = {
        "schedule": Schedule(name=name, kind="greet", expression=expression, tz=changes.pop("tz", "UTC")),
        "origin": Origin.DECLARED,
        "version": 1,
        "next_at": NOON - late,
        "last_at": None,
        "last_job_id": None,
        "paused_at": None,
        "paused_until": None,
        "created_at": NOON,
        "changed_at": NOON,
        "declared_at": NOON,
    }
    return ScheduleView(**plain | changes)


def judged(*views: ScheduleView) -> list[tuple[Severity, str]]:
    return [(found.severity, found.seen) for found in judge_schedules(views, NOON)]


def test_schedules_in_time_are_fine_and_paused_ones_are_named() -> None:
    assert judged() == [(Severity.OK, "none")]
    paused = a_schedule("weekly", next_at=None, paused_at=NOON)
    assert judged(a_schedule(late=MINUTE), paused) == [(Severity.OK, "1 in time, paused: 'weekly'")]


def test_a_schedule_that_no_process_fires_is_a_problem_after_a_minute() -> None:
    [(severity, seen)] = judged(a_schedule(late=MINUTE + SECOND), a_schedule("hourly", late=2 * MINUTE))
    assert severity is Severity.PROBLEM
    assert seen == "overdue, the longest by 2m, as no process fires them: 'nightly', 'hourly'"


def test_one_that_the_code_may_have_dropped_is_only_a_warning() -> None:
    gone = a_schedule(late=2 * DAY, declared_at=NOON - DAY - SECOND)
    [(severity, seen)] = judged(gone)
    assert severity is Severity.WARNING
    assert "declared by no process" in seen
    made = a_schedule(late=2 * DAY, origin=Origin.MADE, declared_at=None)
    assert judged(made)[0][0] is Severity.PROBLEM


def test_one_that_cannot_be_read_is_a_problem_and_reported_once() -> None:
    for broken in ({"expression": "every now and then"}, {"tz": "Mars/Olympus"}):
        [(severity, seen)] = judged(a_schedule(late=DAY, **broken))
        assert severity is Severity.PROBLEM
        assert seen.startswith("cannot be read, and do not fire: 'nightly': ")


def test_one_that_was_handled_for_the_future_reports_a_clock_that_was_set_back() -> None:
    [(severity, seen)] = judged(a_schedule(last_at=NOON + 2 * MINUTE))
    assert (severity, seen) == (Severity.WARNING, "already handled for future times: 'nightly'")
    assert judged(a_schedule(last_at=NOON + MINUTE))[0][0] is Severity.OK
