"""BulkStore: a bulk command is done once, in batches, whoever runs it and whatever becomes of its runners."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.builders.jobs import (
    DAY,
    MINUTE,
    SECOND,
    a_job,
    a_key,
    apply,
    claim_some,
    employ,
    ending_in,
    enqueue,
    state_of,
)

from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.operate.bulk import planning
from perdure.operate.bulk.batches import BulkBatches
from perdure.operate.desk import Desk
from perdure.storage.operate.bulk import BulkState, BulkView
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Keep, Page

DEAD = JobFilter(states="dead")


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store, "ada", "cli")


async def some_dead(store: Store, count: int) -> list[JobId]:
    """So many dead letters, made and ended in batches."""
    worker = await employ(store)
    made = [receipt.job_id for receipt in await store.insert([a_job() for _ in range(count)])]
    for start in range(0, count, 500):
        claims = await claim_some(store, worker, min(500, count - start))
        await apply(store, *(ending_in(JobState.DEAD, claim) for claim in claims))
    return made


async def started(desk: Desk, action: str = "requeue", which: JobFilter = DEAD, why: str | None = None) -> BulkView:
    return await desk.start_bulk(await desk.plan(action, which), why=why)


async def finish(desk: Desk, bulk_id: str) -> BulkView:
    views = [view async for view in desk.work_on_bulk(bulk_id)]
    return views[-1]


async def test_a_bulk_command_is_planned_confirmed_done_and_recorded(store: Store, desk: Desk) -> None:
    dead = await some_dead(store, 5)
    other = await enqueue(store)
    plan = await desk.plan("requeue", JobFilter())
    assert (plan.jobs, plan.capped, plan.able, plan.action, plan.filter) == (5, False, 5, "requeue", DEAD)
    view = await desk.start_bulk(plan.token, why="the bank is back")
    assert (view.state, view.jobs, view.seen, view.actor, view.why) == ("running", 5, 0, "ada", "the bank is back")
    done = await finish(desk, view.id)
    assert (done.state, done.seen, done.done, done.skipped, done.samples) == ("done", 5, 5, 0, ())
    assert done.finished_at is not None
    assert await desk.bulk(view.id) == done
    assert (await desk.bulks()).bulks == (done,)
    assert {job.id for job in await store.jobs(JobFilter(states="ready"), Page(10))} == {*dead, other}
    trail = (await desk.audit(bulk=view.id)).entries
    assert {(entry.actor, entry.why, entry.source, entry.bulk) for entry in trail} == {
        ("ada", "the bank is back", "cli", view.id)
    }
    assert [(entry.action, entry.jobs) for entry in trail if entry.job_id is None] == [
        ("bulk.end", 5),
        ("bulk.requeue", 5),
    ]
    assert sorted(entry.job_id for entry in trail if entry.job_id) == sorted(dead)


async def test_another_runner_goes_on_behind_the_last_batch_of_one_that_died(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    """Each job is requeued once, also one that has died again behind the cursor."""
    dead = await some_dead(store, 10)
    view = await started(desk)
    first = BulkBatches(store, "first", size=4)
    hold = await first.take()
    assert hold is not None
    assert (hold := await first.do_next(hold)) is not None
    [claim] = await claim_some(store, await employ(store), 1)
    await apply(store, ending_in(JobState.DEAD, claim))
    second = BulkBatches(store, "second", size=4)
    assert await second.take() is None, "the lease of the first still holds"
    clock.move(MINUTE)
    taken = await second.take()
    assert taken is not None
    assert (taken.view.seen, taken.view.done, taken.view.id) == (4, 4, view.id)
    assert await first.do_next(hold) is None, "the first has lost it, and changes nothing"
    while taken is not None and taken.view.state is BulkState.RUNNING:
        taken = await second.do_next(taken)
    assert taken is not None
    assert (taken.view.state, taken.view.done, taken.view.seen) == ("done", 10, 10)
    assert await state_of(store, claim.job_id) is JobState.DEAD, "it died again, and is not requeued twice"
    requeued = [entry.job_id for entry in (await desk.audit(action="requeue", limit=100)).entries]
    assert sorted(map(str, requeued)) == sorted(dead)


async def test_two_runners_that_race_do_each_job_once(store: Store, desk: Desk) -> None:
    dead = await some_dead(store, 60)
    view = await started(desk)
    other = store.sibling()
    await other.open()
    try:

        async def run(where: Store, name: str) -> int:
            batches, done = BulkBatches(where, name, size=7), 0
            while (await desk.bulk(view.id)).state is BulkState.RUNNING:
                hold = await batches.take()
                while hold is not None and hold.view.state is BulkState.RUNNING:
                    hold = await batches.do_next(hold)
                    done += 1
                await asyncio.sleep(0)
            return done

        await asyncio.gather(run(store, "one"), run(other, "two"))
    finally:
        await other.close()
    end = await desk.bulk(view.id)
    assert (end.state, end.done, end.seen) == ("done", 60, 60)
    requeued = [entry.job_id for entry in (await desk.audit(action="requeue", limit=100)).entries]
    assert sorted(map(str, requeued)) == sorted(dead)


async def test_a_stopped_command_ends_after_the_batch_under_way(store: Store, desk: Desk) -> None:
    await some_dead(store, 10)
    view = await started(desk)
    batches = BulkBatches(store, "one", size=3)
    hold = await batches.take(view.id)
    assert hold is not None
    hold = await batches.do_next(hold)
    assert hold is not None
    stopped = await desk.stop_bulk(view.id, why="wrong filter")
    assert (stopped.state, stopped.done) == ("stopped", 3)
    assert await batches.do_next(hold) is None
    assert await batches.take(view.id) is None
    assert (await desk.count(DEAD)).jobs == 7
    [entry] = (await desk.audit(action="bulk.stop")).entries
    assert (entry.why, entry.jobs, entry.bulk, entry.details["after"]["done"]) == ("wrong filter", 3, view.id, 3)
    with pytest.raises(ConflictError, match="is stopped already"):
        await desk.stop_bulk(view.id)
    with pytest.raises(NotFoundError, match="no bulk command 'nope'"):
        await desk.stop_bulk("nope")


async def test_a_filter_that_matches_nothing_ends_at_once(desk: Desk) -> None:
    plan = await desk.plan("purge", JobFilter(kind="nothing"))
    assert (plan.jobs, plan.able, plan.notes) == (0, 0, ())
    done = await finish(desk, (await desk.start_bulk(plan)).id)
    assert (done.state, done.seen, done.done, done.error) == ("done", 0, 0, None)


async def test_a_dry_run_without_notes_does_not_say_how_far_it_looked(
    store: Store, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "JOBS_SAMPLED", 2)
    await some_dead(store, 3)
    assert (await desk.plan("requeue", DEAD)).notes == ()


async def test_jobs_made_after_the_start_are_left_alone(store: Store, desk: Desk) -> None:
    await some_dead(store, 3)
    view = await started(desk)
    later = await some_dead(store, 2)
    assert (await finish(desk, view.id)).done == 3
    assert {job.id for job in await store.jobs(DEAD, Page(10))} == set(later)


async def test_what_was_skipped_is_counted_and_named(store: Store, desk: Desk) -> None:
    """A dry run foresees it; the command says which jobs, and why."""
    [dead] = await some_dead(store, 1)
    worker = await employ(store)
    for _ in range(2):  # the second takes the key that the first has left
        await store.insert([a_job(unique=a_key())])
        [claim] = await claim_some(store, worker, 1)
        await apply(store, ending_in(JobState.DEAD, claim))
    plan = await desk.plan("requeue", DEAD)
    assert (plan.jobs, plan.able) == (3, 2)
    assert plan.notes == ("1 job skipped: another job holds their unique key.",)
    done = await finish(desk, (await desk.start_bulk(plan)).id)
    assert (done.done, done.skipped, done.reasons) == (2, 1, {"another job holds its unique key": 1})
    assert [sample.why for sample in done.samples] == ["another job holds its unique key"]
    assert await state_of(store, dead) is JobState.READY


@pytest.mark.parametrize("action", ["cancel", "run_now", "reschedule", "mark", "delete"])
async def test_every_action_is_done_in_bulk(store: Store, desk: Desk, clock: ManualClock, action: str) -> None:
    ids = [await enqueue(store, delay=MINUTE) for _ in range(3)]
    params: dict[str, dict[str, Any]] = {"mark": {"mark": "seen"}, "reschedule": {"run_at": DAY}}
    plan = await desk.plan(action, JobFilter(states="scheduled"), **params.get(action, {}))
    done = await finish(desk, (await desk.start_bulk(plan)).id)
    assert (done.done, done.skipped) == (3, 0)
    found = [await store.job(job_id) for job_id in ids]
    expected = {
        "cancel": ("cancelled", None, None),
        "run_now": ("ready", None, None),
        "reschedule": ("scheduled", None, clock.now() + DAY),
        "mark": ("scheduled", "seen", clock.now() + MINUTE),
    }
    assert [job and (job.state, job.mark, job.due_at) for job in found] == [expected.get(action)] * 3


async def test_a_limit_means_the_newest_jobs(store: Store, desk: Desk) -> None:
    dead = await some_dead(store, 5)
    plan = await desk.plan("purge", DEAD, limit=2)
    assert (plan.jobs, plan.notes) == (2, ("This cannot be undone.",))
    assert (await finish(desk, (await desk.start_bulk(plan)).id)).done == 2
    assert {job.id for job in await store.jobs(DEAD, Page(10))} == set(sorted(dead)[:3])


async def test_a_confirmation_holds_for_what_was_planned_and_for_ten_minutes(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    await some_dead(store, 3)
    plan, other = await desk.plan("requeue", DEAD), await desk.plan("purge", JobFilter(states="dead", kind="x"))
    for wrong in (replace(plan, token=other.token), replace(plan, jobs=2), replace(plan, filter=JobFilter())):
        with pytest.raises(ConflictError, match="confirms another plan"):
            await desk.start_bulk(wrong)
    for forged in ("", "x", plan.token[:-3], "A" + plan.token[1:], plan.token + "AAAA", "\udcff", "ä"):
        with pytest.raises(ConflictError, match="this token is not valid here"):
            await desk.start_bulk(forged)
    view = await desk.start_bulk(plan)
    with pytest.raises(ConflictError, match=f"started already: it is {view.id}"):
        await desk.start_bulk(plan.token)
    clock.move(10 * MINUTE + SECOND)
    with pytest.raises(ConflictError, match="older than 10m"):
        await desk.start_bulk(other)
    assert [one.id for one in (await desk.bulks()).bulks] == [view.id]


async def test_a_count_that_has_changed_a_lot_asks_for_another_look(store: Store, desk: Desk) -> None:
    await some_dead(store, 3)
    plan = await desk.plan("requeue", DEAD)
    await some_dead(store, 11)
    with pytest.raises(ConflictError, match="found 3 jobs, now 14 match"):
        await desk.start_bulk(plan)
    assert (await desk.bulks()).bulks == ()


async def test_a_plan_that_makes_no_sense_is_refused_by_name(desk: Desk) -> None:
    with pytest.raises(ArgumentError, match="action must be one of cancel, delete, mark, purge"):
        await desk.plan("explode", DEAD)
    with pytest.raises(ArgumentError, match="state"):
        await desk.plan("requeue", JobFilter(states="running"))
    with pytest.raises(ArgumentError, match="run_at is missing"):
        await desk.plan("reschedule", JobFilter())
    with pytest.raises(ArgumentError, match="limit"):
        await desk.plan("cancel", JobFilter(), limit=0)


async def test_ten_thousand_jobs_take_short_transactions(store: Store, desk: Desk) -> None:
    """No batch changes more than 200 jobs, and every job is done once."""
    await some_dead(store, 10_000)
    view = await started(desk)
    seen = [one.done async for one in desk.work_on_bulk(view.id)]
    assert seen[-1] == 10_000
    assert max(after - before for before, after in pairwise(seen)) <= 200
    assert (await desk.count(JobFilter(states="ready"), cap=20_000)).jobs == 10_000


async def test_what_has_ended_is_forgotten_after_90_days(store: Store, desk: Desk, clock: ManualClock) -> None:
    await some_dead(store, 1)
    old = await started(desk, "mark")
    running = await desk.start_bulk(await desk.plan("mark", DEAD))
    await finish(desk, old.id)
    clock.move(91 * DAY)
    await store.prune(Keep(), 100)
    assert [view.id for view in (await desk.bulks()).bulks] == [running.id]


async def test_all_bulk_commands_are_listed_page_by_page(store: Store, desk: Desk, clock: ManualClock) -> None:
    """Also where several began in one instant: each is on exactly one page."""
    await some_dead(store, 1)
    made = []
    for number in range(7):
        if number % 3 == 0:
            clock.move(SECOND)
        made.append(await started(desk, "mark"))
    first = await desk.bulks(3)
    rest = await desk.bulks(3, first.next)
    last = await desk.bulks(3, rest.next)
    pages = [first.bulks, rest.bulks, last.bulks]
    assert [len(page) for page in pages] == [3, 3, 1]
    listed = [view for page in pages for view in page]
    assert listed == sorted(made, key=lambda view: (view.created_at, view.id), reverse=True)
    assert last.next is None
    with pytest.raises(NotFoundError, match="there is no bulk command 'gone'"):
        await desk.bulks(3, "gone")
