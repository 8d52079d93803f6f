"""Many needs of one type become one."""

from __future__ import annotations

from datetime import timedelta

from tests.support.builders.views import NOON

from perdure.operate.attention.groups import grouped
from perdure.operate.attention.need import Need
from perdure.storage.operate.diagnosis import Severity


def a_need(about: str, number: int = 0, severity: Severity = Severity.PROBLEM) -> Need:
    name = f"{about}-{number}"
    since = NOON - timedelta(minutes=number)
    return Need(severity=severity, about=about, name=name, subject=name, what="is wrong", since=since)


def test_up_to_three_of_one_type_are_named_each() -> None:
    needs = [a_need("queue", number) for number in range(3)] + [a_need("worker", number) for number in range(3)]
    assert grouped(needs) == needs


def test_more_become_one_that_stands_where_the_first_stood() -> None:
    needs = [a_need("breaker"), *(a_need("queue", number) for number in range(2)), a_need("schedule")]
    needs += [a_need("queue", number) for number in range(2, 5)]
    breaker, queues, schedule = grouped(needs)
    assert (breaker.about, schedule.about) == ("breaker", "schedule")
    assert queues.sentence == "5 queues have jobs and no worker: queue-0, queue-1, queue-2 and 2 more"
    assert queues.since == NOON - timedelta(minutes=4)


def test_queues_that_are_only_slow_are_not_joined() -> None:
    needs = [a_need("queue", number, Severity.WARNING) for number in range(9)]
    assert grouped(needs) == needs


def test_lost_workers_are_a_problem_while_one_of_them_may_still_hold_jobs() -> None:
    gone = [a_need("worker", number, Severity.WARNING) for number in range(4)]
    [joined] = grouped(gone)
    assert joined.severity is Severity.WARNING
    [joined] = grouped([*gone, a_need("worker", 4)])
    assert (joined.severity, joined.subject) == (Severity.PROBLEM, "5 workers")
