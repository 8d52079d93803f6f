"""The check-up: what is well is said to be well, and what is not says what to do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.behind import query
from tests.support.jobs import HOUR, MINUTE, a_job, apply, employ, enqueue, job_in, start

from perdure.clock import ManualClock
from perdure.domain import transition
from perdure.domain.states import JobState, Reason
from perdure.operate.checkup import Checkup
from perdure.storage.diagnosis import Finding, Severity
from perdure.storage.port import Store


async def examined(store: Store, clock: ManualClock, check: str) -> list[Finding]:
    findings = await Checkup(store, clock).examine()
    return [finding for finding in findings if finding.check == check]


async def the(store: Store, clock: ManualClock, check: str) -> Finding:
    [finding] = await examined(store, clock, check)
    return finding


async def test_a_system_at_work_is_well(store: Store, clock: ManualClock) -> None:
    await start(store)
    findings = await Checkup(store, clock).examine()
    ours = {"clock", "schema", "workers", "orphans", "queues", "waits", "unknown kinds", "dead letters"}
    assert {finding.check for finding in findings} > ours
    assert {finding.severity for finding in findings if finding.check in ours} == {Severity.OK}


async def test_whatever_is_not_well_says_what_to_do(store: Store, clock: ManualClock) -> None:
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


async def test_jobs_of_dead_workers_are_told(store: Store, clock: ManualClock) -> None:
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


async def test_the_longest_wait_is_told_and_warned_of(store: Store, clock: ManualClock) -> None:
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


async def test_f6_kinds_that_nobody_handles_are_named(store: Store, clock: ManualClock) -> None:
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
async def test_clocks_that_disagree_are_told(store: Store, clock: ManualClock, ahead: int, severity: Severity) -> None:
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


async def test_waiting_tells_the_oldest_of_each_queue(store: Store, clock: ManualClock) -> None:
    began = clock.now()
    await store.insert([a_job(), a_job(queue="mail")])
    clock.move(MINUTE)
    await store.insert([a_job(), a_job(queue="mail")])
    assert [(one.queue, one.since) for one in await store.waiting()] == [("default", began), ("mail", began)]
