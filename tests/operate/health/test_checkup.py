"""The check-up: what is well is said to be well, and what is not says what to do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.support.builders.jobs import DAY, HOUR, INSTANT, MINUTE, SECOND, a_job, apply, employ, enqueue, job_in, start
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Advance, Firing, Schedule, ScheduleView
from perdure.domain.worker import Phase
from perdure.operate.health.checkup import Checkup
from perdure.storage.operate.diagnosis import Finding, Severity
from perdure.storage.port import Store
from perdure.storage.schedules import Timed


async def examined(store: Store, clock: ManualClock, check: str) -> list[Finding]:
    findings = await Checkup(store, clock).examine()
    return [finding for finding in findings if finding.check == check]


async def the(store: Store, clock: ManualClock, check: str) -> Finding:
    [finding] = await examined(store, clock, check)
    return finding


async def test_a_system_at_work_is_well(store: Store, clock: ManualClock) -> None:
    await start(store)
    findings = await Checkup(store, clock).examine()
    ours = {
        "clock",
        "schema",
        "workers",
        "orphans",
        "queues",
        "waits",
        "overdue",
        "schedules",
        "unknown kinds",
        "dead letters",
    }
    assert {finding.check for finding in findings} > ours
    assert {finding.severity for finding in findings if finding.check in ours} == {Severity.OK}


async def test_each_problem_says_what_to_do(store: Store, clock: ManualClock) -> None:
    await job_in(JobState.DEAD, store)
    await enqueue(store, queue="nobody")
    clock.move(HOUR)
    findings = await Checkup(store, clock).examine()
    assert all(finding.advice for finding in findings if finding.severity is not Severity.OK)
    assert sum(finding.severity is not Severity.OK for finding in findings) >= 4


async def test_no_worker_is_worth_a_warning(store: Store, clock: ManualClock) -> None:
    assert (await the(store, clock, "workers")).severity is Severity.WARNING


async def test_a_silent_worker_is_a_problem(store: Store, clock: ManualClock) -> None:
    await employ(store, name="sleepy")
    clock.move(timedelta(seconds=31))
    await employ(store)
    silent, alive = await examined(store, clock, "workers")
    assert (silent.severity, alive.severity) == (Severity.PROBLEM, Severity.OK)
    assert "sleepy" in silent.seen
    assert "31s" in silent.seen


async def test_a_longer_lease_allows_longer_silence(store: Store, clock: ManualClock) -> None:
    await employ(store)
    clock.move(timedelta(seconds=31))
    findings = await Checkup(store, clock, lease=MINUTE).examine()
    assert [finding.severity for finding in findings if finding.check == "workers"] == [Severity.OK]


async def test_jobs_of_dead_workers_are_reported(store: Store, clock: ManualClock) -> None:
    await start(store)
    clock.move(MINUTE)
    await store.bury_silent(timedelta(seconds=30))
    finding = await the(store, clock, "orphans")
    assert (finding.severity, finding.seen.split()[:2]) == (Severity.WARNING, ["1", "job"])


async def test_a_queue_without_a_worker_is_a_problem_when_jobs_are_ready(store: Store, clock: ManualClock) -> None:
    await enqueue(store, queue="mail")
    await enqueue(store, queue="reports", delay=HOUR)
    ready, later = await examined(store, clock, "queues")
    assert (ready.severity, later.severity) == (Severity.PROBLEM, Severity.WARNING)
    assert "'mail'" in ready.seen
    assert "--queues reports" in later.advice


async def test_the_longest_wait_is_reported_and_warned_of(store: Store, clock: ManualClock) -> None:
    await enqueue(store)
    clock.move(timedelta(minutes=2))
    await enqueue(store, queue="mail")
    calm = await the(store, clock, "waits")
    assert (calm.severity, "2m" in calm.seen, "'default'" in calm.seen) == (Severity.OK, True, True)
    clock.move(timedelta(minutes=4))
    assert (await the(store, clock, "waits")).severity is Severity.WARNING


async def test_a_job_made_long_ago_and_due_only_now_has_not_waited(store: Store, clock: ManualClock) -> None:
    await enqueue(store, delay=HOUR)
    clock.move(HOUR)
    await store.promote(10)
    assert (await the(store, clock, "waits")).severity is Severity.OK


async def test_f6_kinds_that_no_worker_handles_are_named(store: Store, clock: ManualClock) -> None:
    claim = await start(store, kind="newer")
    await apply(store, transition.paused(claim, Reason.UNKNOWN_KIND, HOUR))
    await job_in(JobState.PAUSED, store, queue="other")
    finding = await the(store, clock, "unknown kinds")
    assert (finding.severity, "'newer' (1)" in finding.seen) == (Severity.WARNING, True)


async def test_dead_letters_are_counted(store: Store, clock: ManualClock) -> None:
    await job_in(JobState.DEAD, store)
    assert "1 job" in (await the(store, clock, "dead letters")).seen


@pytest.mark.parametrize(
    ("ahead", "severity"),
    [(1, Severity.OK), (-1, Severity.OK), (5, Severity.WARNING), (-5, Severity.WARNING), (90, Severity.PROBLEM)],
)
async def test_clocks_that_disagree_are_reported(
    store: Store, clock: ManualClock, ahead: int, severity: Severity
) -> None:
    ours = ManualClock(clock.now() - timedelta(seconds=ahead))
    finding = await the(store, ours, "clock")
    assert finding.severity is severity
    if severity is not Severity.OK:
        assert ("ahead of" if ahead > 0 else "behind") in finding.seen


async def test_without_a_schema_the_rest_is_still_looked_at(store: Store, clock: ManualClock, engine_url: str) -> None:
    table = "perdure_migration" if engine_url.startswith("sqlite") else "migration"
    query(engine_url, f"DROP TABLE {table}")
    findings = await Checkup(store, clock).examine()
    checks = {finding.check: finding for finding in findings}
    assert checks["schema"].severity is Severity.PROBLEM
    assert "perdure migrate" in checks["schema"].seen + checks["schema"].advice
    assert "durability" in checks
    assert "workers" not in checks


async def test_a_table_gone_missing_spoils_its_own_checks_only(
    store: Store, clock: ManualClock, engine_url: str
) -> None:
    table = "perdure_parked" if engine_url.startswith("sqlite") else "parked"
    query(engine_url, f"DROP TABLE {table}")
    findings = {finding.check: finding for finding in await Checkup(store, clock).examine()}
    assert findings["unknown kinds"].severity is Severity.PROBLEM
    assert findings["workers"].severity is Severity.WARNING


async def test_waiting_shows_the_oldest_of_each_queue(store: Store, clock: ManualClock) -> None:
    began = clock.now()
    await store.insert([a_job(), a_job(queue="mail")])
    clock.move(MINUTE)
    await store.insert([a_job(), a_job(queue="mail")])
    assert [(one.queue, one.since) for one in await store.waiting()] == [("default", began), ("mail", began)]


def hourly(clock: ManualClock, **changes: Any) -> Timed:
    """A schedule whose next time is one second away."""
    plain = {"name": "report", "kind": "greet", "expression": "@hourly"}
    return Timed(Schedule(**(plain | changes)), clock.now() + SECOND)


async def make(store: Store, clock: ManualClock, **changes: Any) -> ScheduleView:
    return await store.save_schedule(hourly(clock, **changes), By("ada"))


async def test_c13_schedules_in_time_are_well_and_paused_ones_are_named(store: Store, clock: ManualClock) -> None:
    assert (await the(store, clock, "schedules")).seen == "none"
    await make(store, clock)
    await make(store, clock, name="idle")
    await store.pause_schedule("idle", By("ada"), until=None, next_at=None)
    clock.move(MINUTE)
    finding = await the(store, clock, "schedules")
    assert (finding.severity, finding.seen) == (Severity.OK, "1 in time, paused: 'idle'")


async def test_c13_a_schedule_that_no_process_fires_is_a_problem(store: Store, clock: ManualClock) -> None:
    await make(store, clock)
    await store.declare_schedules([hourly(clock, name="ours")])
    clock.move(3 * MINUTE + SECOND)
    finding = await the(store, clock, "schedules")
    assert (finding.severity, "'report'" in finding.seen, "'ours'" in finding.seen) == (Severity.PROBLEM, True, True)
    assert "by 3m," in finding.seen
    assert "start a worker" in finding.advice


async def test_c13_a_schedule_that_no_process_declares_any_more_is_a_warning(store: Store, clock: ManualClock) -> None:
    """The code has dropped it; what runs is not at risk."""
    await store.declare_schedules([hourly(clock)])
    clock.move(DAY + MINUTE)
    finding = await the(store, clock, "schedules")
    assert (finding.severity, "'report'" in finding.seen) == (Severity.WARNING, True)
    assert "perdure schedules delete" in finding.advice


@pytest.mark.parametrize("wrong", [{"expression": "61 * * * *"}, {"tz": "Europe/Atlantis"}])
async def test_c13_a_schedule_that_cannot_be_read_is_a_problem(
    store: Store, clock: ManualClock, wrong: dict[str, str]
) -> None:
    await make(store, clock, **wrong)
    clock.move(HOUR)
    finding = await the(store, clock, "schedules")
    assert (finding.severity, "'report'" in finding.seen, bool(finding.advice)) == (Severity.PROBLEM, True, True)


async def test_c13_schedules_that_are_ahead_of_the_clock_are_reported(store: Store, clock: ManualClock) -> None:
    view = await make(store, clock)
    assert view.next_at is not None
    step = Advance(
        name=view.name,
        version=view.version,
        overlap=view.schedule.overlap,
        expected=view.next_at,
        next_at=view.next_at + HOUR,
        firings=(Firing(nominal_at=view.next_at, job=a_job()),),
    )
    clock.move(SECOND)
    await store.fire([step])
    assert (await the(store, clock, "schedules")).severity is Severity.OK
    clock.move(-HOUR)
    finding = await the(store, clock, "schedules")
    assert (finding.severity, "set back" in finding.advice) == (Severity.WARNING, True)


async def test_c13_quiet_workers_are_reported_with_the_way_to_end_it(store: Store, clock: ManualClock) -> None:
    asked = await employ(store, name="asked")
    signalled = await employ(store, name="signalled")
    await employ(store, name="busy")
    await store.quiet([asked], By("ada"), quiet=True)
    await store.report(signalled, Phase.QUIET)
    quiet, alive = await examined(store, clock, "workers")
    assert (quiet.severity, alive.severity) == (Severity.WARNING, Severity.OK)
    assert ("asked" in quiet.seen, "signalled" in quiet.seen, "busy" in quiet.seen) == (True, True, False)
    assert "perdure quiet --off" in quiet.advice


async def test_a8_jobs_parked_beyond_their_time_are_a_problem(store: Store, clock: ManualClock) -> None:
    late = await enqueue(store, delay=MINUTE)
    clock.move(2 * MINUTE - INSTANT)
    await employ(store)
    assert (await the(store, clock, "overdue")).severity is Severity.OK
    clock.move(INSTANT)
    finding = await the(store, clock, "overdue")
    assert (finding.severity, late in finding.seen, "1m" in finding.seen) == (Severity.PROBLEM, True, True)
    assert "could not be made ready" in finding.advice
    assert "perdure jobs cancel" in finding.advice


async def test_without_a_worker_overdue_jobs_need_one(store: Store, clock: ManualClock) -> None:
    for _ in range(5):
        await enqueue(store, delay=MINUTE)
    clock.move(HOUR)
    finding = await the(store, clock, "overdue")
    assert (finding.severity, "5 jobs" in finding.seen, "…" in finding.seen) == (Severity.WARNING, True, True)
    assert finding.advice.startswith("start a worker")
