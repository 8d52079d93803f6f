"""G10: a database that the next release has migrated is worked on by this one, as if nothing had happened."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from tests.support.builders.gate_requests import budget, claims_of, passed
from tests.support.builders.jobs import (
    A_FAILURE,
    DAY,
    HOUR,
    MINUTE,
    a_job,
    a_key,
    apply,
    claim_one,
    claim_some,
    employ,
    enqueue,
    only,
    second_comer,
    show,
    start,
    state_of,
)
from tests.support.builders.schedules import a_schedule, by_hand, extra, fire_next, make, stands, step
from tests.support.databases.behind import query

from perdure.app.connect import store_for
from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Intake, OnConflict
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Fate
from perdure.domain.worker import Phase
from perdure.engines.shared.database.migrations import RELEASE
from perdure.errors import SchemaError
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Keep, Page, Wanted
from perdure.storage.schedules import Timed


def migrate_to(release: int, url: str) -> None:
    """What a migration of another release may do: add tables, and columns to every table.

    The columns have every name that some other table has, so that a statement of ours that leaves it open whose column
    it means does not work any more.
    """
    tables = sorted(name for (name,) in query(url, _TABLES[_engine(url)]))
    columns = {table: [name for (name,) in query(url, _COLUMNS[_engine(url)].format(table))] for table in tables}
    every = sorted({name for names in columns.values() for name in names} | {"hold", "wanted", "worker", "added"})
    more = {table: [name for name in every if name not in columns[table]] for table in tables}
    is_sqlite = _engine(url) == "sqlite"
    now = "0" if is_sqlite else "now()"
    if is_sqlite:
        widen_sqlite(url, {table: (columns[table][-1], more[table]) for table in tables})
        steps = []
    else:
        added = {table: ", ".join(f'ADD COLUMN "{name}" text' for name in more[table]) for table in tables}
        steps = [f"ALTER TABLE {table} {added[table]}" for table in tables]
    steps.append("CREATE TABLE {novelty} (id integer PRIMARY KEY, kind text)")
    steps.append(
        "INSERT INTO {migration} (number, name, release, checksum, applied_at)"
        f" VALUES (9999, '9999_more', {release}, 'of a file that we have never seen', {now})"
    )
    query(url, "BEGIN;" + ";".join(steps) + ";COMMIT")
    for table in tables:
        assert {name for (name,) in query(url, _COLUMNS[_engine(url)].format(table))} >= set(every)


def widen_sqlite(url: str, more: dict[str, tuple[str, list[str]]]) -> None:
    """Add columns after the last one of each table.

    SQLite reads the whole schema again for each column that it adds: thousands of them would take minutes. So this
    writes what ALTER TABLE would write.
    """
    steps = []
    for table, (last, names) in more.items():
        [(sql,)] = query(url, f"SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = '{table}'")
        end = _end_of_column(sql, last)
        wider = sql[:end] + "".join(f', "{name}" text' for name in names) + sql[end:]
        quoted = wider.replace("'", "''")
        steps.append(f"UPDATE sqlite_schema SET sql = '{quoted}' WHERE type = 'table' AND name = '{table}'")
    [(version,)] = query(url, "PRAGMA schema_version")
    query(url, f"PRAGMA writable_schema = ON; BEGIN; {'; '.join(steps)}; PRAGMA schema_version = {version + 1}; COMMIT")


def _end_of_column(sql: str, name: str) -> int:
    """Where the definition of a column ends: at a comma or at the bracket that ends the table."""
    depth = 0
    for at in range(re.search(rf"[(,]\s*\"?{name}\b", sql).end(), len(sql)):  # type: ignore[union-attr]
        depth += {"(": 1, ")": -1}.get(sql[at], 0)
        if depth < 0 or (depth == 0 and sql[at] == ","):
            return at
    raise AssertionError(f"{name} does not end in {sql}")


_TABLES = {
    "sqlite": "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'perdure_%'",
    "postgresql": "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'",
}
_COLUMNS = {
    "sqlite": "SELECT name FROM pragma_table_info('{}')",
    "postgresql": "SELECT attname FROM pg_attribute WHERE attrelid = '{}'::regclass AND attnum > 0",
}


def _engine(url: str) -> str:
    return url.partition(":")[0]


@asynccontextmanager
async def opened(url: str, clock: ManualClock) -> AsyncIterator[Store]:
    """A process of this release that starts after the migration."""
    store = store_for(url, clock)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def live(store: Store, clock: ManualClock) -> None:
    """The whole life of jobs: in, run, failed, retried, dead, requeued, called off, rescued, looked at, forgotten.

    And what is done for them: checkpoints, quiet workers, schedules, leadership, budgets.
    """
    await check_intake(store)
    await check_failures(store, clock)
    await check_commands(store)
    await check_rescue(store, clock)
    await check_checkpoints(store, clock)
    await check_workers(store)
    await check_budgets(store, clock)
    await check_schedules(store, clock)
    await check_leadership(store, clock)
    await check_views(store)
    await check_pruning(store, clock)


async def check_intake(store: Store) -> None:
    worker_id = await employ(store)
    one = await enqueue(store, tags=("a", "b"), meta='{"x":1}')
    many = await store.insert([a_job(queue="bulk") for _ in range(300)])
    assert {receipt.intake for receipt in many} == {Intake.NEW}
    [again] = await store.insert([a_job(id=one)])
    assert again.intake is Intake.EXISTING
    unique = await enqueue(store, unique=a_key())
    assert await second_comer(store) == (unique, Intake.EXISTING)
    assert await second_comer(store, OnConflict.REPLACE) == (unique, Intake.REPLACED)
    claims = await store.claim(worker_id, [Wanted("default", 10), Wanted("bulk", 1_000)])
    assert len(claims) == 302
    assert claims[0].tags == ("a", "b")
    await apply(store, *(transition.succeeded(claim, "1", ("so so",)) for claim in claims if claim.unique))
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in claims if not claim.unique))
    assert await store.beat(worker_id)


async def check_failures(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    job_id = await enqueue(store, unique=a_key(dead_for=HOUR))
    claim = await claim_one(store, worker_id)
    await apply(store, transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE))
    stale = await store.acknowledge([transition.succeeded(claim, None, ())])
    assert stale.stale == (claim,)
    assert (await store.promote(10)).next_due == clock.now() + MINUTE
    clock.move(MINUTE)
    assert (await store.promote(10)).by_queue == {"default": 1}
    again = await claim_one(store, worker_id)
    assert (again.failures, again.attempt) == (1, 2)
    await apply(store, transition.died(again, Reason.EXHAUSTED, A_FAILURE))
    assert [attempt.number for attempt in await store.attempts(job_id)] == [1, 2]
    assert await second_comer(store) == (job_id, Intake.EXISTING)
    puzzle = await start(store, kind="unheard of")
    await apply(store, transition.paused(puzzle, Reason.UNKNOWN_KIND, MINUTE))
    assert await store.run_now(only(puzzle.job_id), By("ada"), 10) == [puzzle.job_id]
    assert (await claim_one(store, worker_id)).unknown_since == clock.now()
    await store.retire(worker_id)


async def check_commands(store: Store) -> None:
    dead = JobFilter(states=frozenset({JobState.DEAD}), error="no such host")
    [reborn] = await store.requeue(dead, By("ada"), 10)
    view = await show(store, reborn)
    assert (view.state, view.failures, view.last_error) == (JobState.READY, 0, None)
    worker_id = await employ(store)
    claim = await claim_one(store, worker_id)
    assert claim.job_id == reborn
    later = await enqueue(store, delay=HOUR)
    ready = await enqueue(store)
    which = JobFilter(ids=(reborn, later, ready))
    assert sorted(await store.cancel(which, By("ada", "not needed"), 10)) == sorted([reborn, later, ready])
    [request] = await store.cancel_requests(worker_id)
    assert (request.job_id, request.why) == (reborn, "not needed")
    await apply(store, transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE))
    for job_id in (reborn, later, ready):
        view = await show(store, job_id)
        assert (view.state, view.reason) == (JobState.CANCELLED, "cancelled: not needed")
    assert await store.purge(only(ready), By("ada"), 10) == [ready]


async def check_rescue(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    clock.move(MINUTE)
    assert await store.bury_silent(timedelta(seconds=30))
    orphans = {orphan.claim.job_id: orphan for orphan in await store.orphans(100)}
    assert orphans[claim.job_id].worker == "worker-1"
    await apply(store, *(transition.crashed(orphan.claim, A_FAILURE) for orphan in orphans.values()))
    assert await state_of(store, claim.job_id) is JobState.READY
    back = await claim_some(store, await employ(store))
    await apply(store, *(transition.succeeded(each, None, ()) for each in back))


async def check_checkpoints(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    assert await store.checkpoint(claim, '{"page":7}')
    await apply(store, transition.released(claim))
    again = await claim_one(store, await employ(store))
    assert (again.cursor, again.attempt) == ('{"page":7}', 1)
    assert not await store.checkpoint(claim, "8")
    clock.move(MINUTE)
    await store.bury_silent(timedelta(seconds=30))
    [orphan] = await store.orphans(100)
    await apply(store, transition.returning(transition.crashed(orphan.claim, A_FAILURE), MINUTE))
    assert await store.last_return("default") == clock.now() + MINUTE
    assert await store.reschedule(only(again.job_id), clock.now() + HOUR, By("ada"), 10) == [again.job_id]
    assert await store.run_now(only(again.job_id), By("ada"), 10) == [again.job_id]
    last = await claim_one(store, await employ(store))
    assert (last.cursor, last.attempt) == ('{"page":7}', 2)
    await apply(store, transition.succeeded(last, None, ()))


async def check_workers(store: Store) -> None:
    worker_id = await employ(store)
    await store.report(worker_id, Phase.OPENING)
    assert await store.quiet([worker_id], By("ada"), quiet=True) == [worker_id]
    assert await store.wants_quiet(worker_id)
    [view] = [worker for worker in await store.workers() if worker.id == worker_id]
    assert view.phase is Phase.OPENING
    assert view.quiet_at is not None
    await store.retire(worker_id)


async def check_schedules(store: Store, clock: ManualClock) -> None:
    """Declared and made, due, fired once, overlapped, paused, resumed, looked at and forgotten."""
    await store.declare_schedules([Timed(a_schedule("nightly"), clock.now() + MINUTE)])
    await make(store, clock.now() + MINUTE)
    clock.move(MINUTE)
    due = await store.due_schedules(10, {"nightly"})
    assert {view.name for view in due.due} == {"nightly", "report"}
    fires = await store.fire([step(view) for view in due.due])
    assert [fire.fate for fire in fires] == [Fate.FIRED, Fate.FIRED]
    assert await store.fire([step(view) for view in due.due]) == []
    clock.move(MINUTE)
    assert (await fire_next(store)).fate is Fate.OVERLAPPED
    view = await stands(store)
    byhand = by_hand(view, clock.now() + timedelta(seconds=1), regardless=True)
    [extra_fire] = await store.fire([extra(view, byhand)])
    assert [fire.fate for fire in await store.fires("report", 10)] == [Fate.FIRED, Fate.OVERLAPPED, Fate.FIRED]
    assert (await stands(store)).last_job_id == extra_fire.job_id
    assert await store.pause_schedule("report", By("ada"), until=clock.now() + HOUR, next_at=clock.now() + HOUR)
    assert await store.resume_schedule("report", By("ada"), clock.now() + MINUTE)
    made = await claim_some(store, await employ(store))
    assert len(made) == 3
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in made))
    clock.move(MINUTE)
    assert (await fire_next(store)).fate is Fate.FIRED
    await apply(store, transition.succeeded(await claim_one(store, await employ(store)), None, ()))
    for name in ("nightly", "report"):
        assert await store.delete_schedule(name, By("ada"))
    assert await store.schedules() == []


async def check_leadership(store: Store, clock: ManualClock) -> None:
    lease = timedelta(seconds=15)
    first = await store.lead("reports", "a", lease)
    assert (await store.lead("reports", "b", lease)).holder == "a"
    clock.move(lease)
    second = await store.lead("reports", "b", lease)
    assert (second.is_ours, second.term) == (True, first.term + 1)
    assert [leader.holder for leader in await store.leaders()] == ["b"]
    await store.step_down("reports", "b")
    assert await store.leaders() == []


async def check_budgets(store: Store, clock: ManualClock) -> None:
    """Estimated, spent, summed, refused and forgotten."""
    claims = await claims_of(store, 3)
    assert await passed(store, claims, **budget(5, 2)) == claims[:2]
    assert await store.spend(claims[0], "ai", 1)
    for _ in range(2):
        assert await store.spent("ai", clock.now() - DAY) == 3
        assert await passed(store, claims[2:], **budget(4, 2)) == []
        clock.move(MINUTE)
        await store.sum_spends(10)
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in claims))
    clock.move(33 * DAY)
    while await store.forget_gates(100):
        pass
    assert await store.spent("ai", clock.now() - 32 * DAY) == 0


async def check_views(store: Store) -> None:
    await enqueue(store, delay=HOUR)
    await enqueue(store, queue="aside")
    claim = await start(store)
    for state in (JobState.SCHEDULED, JobState.READY, JobState.RUNNING, JobState.SUCCEEDED, JobState.CANCELLED):
        which = JobFilter(states=frozenset({state}), kind="greet")
        views = await store.jobs(which, Page(5))
        assert views
        assert {view.state for view in views} == {state}
    counted = {count.state: count.jobs for count in await store.counts() if count.queue == "default"}
    assert counted[JobState.RUNNING] == 1
    assert {waiting.queue for waiting in await store.waiting()} == {"aside"}
    assert any(worker.running == 1 for worker in await store.workers())
    await store.diagnose()
    await apply(store, transition.succeeded(claim, None, ()))
    assert len(await store.cancel(JobFilter(), By("ada"), 10)) == 2


async def check_pruning(store: Store, clock: ManualClock) -> None:
    clock.move(100 * DAY)
    while await store.prune(Keep(succeeded=DAY, cancelled=DAY, dead=DAY), 1_000):
        pass
    assert not await store.jobs(JobFilter(), Page())


async def test_g10_a_process_of_this_release_goes_on_after_the_next_has_migrated(
    store: Store, clock: ManualClock, engine_url: str
) -> None:
    """Statements that it has prepared before are used again afterwards."""
    await live(store, clock)
    migrate_to(RELEASE + 1, engine_url)
    await live(store, clock)


async def test_g10_a_process_of_this_release_can_be_started_after_the_next_has_migrated(
    store: Store, clock: ManualClock, engine_url: str
) -> None:
    migrate_to(RELEASE + 1, engine_url)
    async with opened(engine_url, clock) as late:
        assert await late.migrate() == []
        await late.check_schema()
        await live(late, clock)


async def test_g10_a_release_that_is_no_neighbour_is_refused(store: Store, engine_url: str) -> None:
    migrate_to(RELEASE + 2, engine_url)
    wrong = rf"release {RELEASE + 2} .*release {RELEASE} .*upgrade perdure"
    with pytest.raises(SchemaError, match=wrong):
        await store.check_schema()
    with pytest.raises(SchemaError, match=wrong):
        await store.migrate()
