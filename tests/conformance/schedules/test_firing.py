"""ScheduleStore.fire: one winner for each nominal time, however many try and however often (G6, B10)."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.conftest import OpenStore
from tests.support.builders.jobs import (
    DAY,
    HOUR,
    INSTANT,
    MINUTE,
    SECOND,
    apply,
    claim_one,
    claim_some,
    employ,
    ending_in,
    show,
    state_of,
)
from tests.support.builders.schedules import by_hand, extra, fire_next, job_for, make, stands, step
from tests.support.crew import SIZE, Crew, Ready
from tests.support.databases.behind import query

from perdure.app.connect import store_for
from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import ACTIVE, FINAL, JobState
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Cause, Fate, Fire, Firing, Overlap
from perdure.storage.port import Store
from perdure.storage.records import CancelRequest, JobFilter, Keep, Page

STEPS = 40


async def test_a_step_makes_the_job_the_record_and_the_next_time(store: Store, clock: ManualClock) -> None:
    view = await make(store, clock.now(), queue="mail")
    clock.move(SECOND)
    taken = step(view)
    [firing] = taken.firings
    assert firing.job is not None
    [fire] = await store.fire([taken])
    assert fire == Fire(
        schedule="report",
        nominal_at=firing.nominal_at,
        fate=Fate.FIRED,
        cause=Cause.TIME,
        at=clock.now(),
        job_id=firing.job.id,
        queue="mail",
    )
    moved = await stands(store)
    assert (moved.next_at, moved.last_at, moved.version) == (taken.next_at, firing.nominal_at, 1)
    assert moved.last_job_id == firing.job.id
    assert [outline(one) for one in await store.fires("report", 10)] == [outline(fire)]
    claim = await claim_one(store, await employ(store), "mail")
    assert claim.job_id == firing.job.id


async def test_nothing_to_do_is_done(store: Store) -> None:
    assert await store.fire([]) == []


async def test_b10_of_two_processes_with_the_same_step_one_takes_it(store: Store, other_store: OpenStore) -> None:
    second = await other_store()
    view = await make(store, await store.now() - HOUR)
    assert [fire.fate for fire in await store.fire([step(view)])] == [Fate.FIRED]
    assert await second.fire([step(view)]) == []
    assert len(await store.jobs(JobFilter(), Page())) == 1
    view = await stands(store)
    told = await asyncio.gather(*(one.fire([step(view)]) for one in (store, second) * 4))
    assert sorted(len(fires) for fires in told) == [0] * 7 + [1]
    assert len(await store.fires("report", 10)) == 2


async def test_b10_two_processors_never_run_one_schedule_twice(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    """Four processes take the steps of ten schedules at once: each nominal time has one job."""
    start = (await real_time_store.now()).replace(microsecond=0) - DAY
    for number in range(10):
        await make(real_time_store, start, name=f"s{number}", overlap=Overlap.ALLOW)
    told = await asyncio.to_thread(crew.together, fire_steps, [(engine_url,)] * SIZE)
    fired = Counter(each for process in told for each in process)
    expected = {(f"s{number}", start + turn * MINUTE) for number in range(10) for turn in range(STEPS)}
    assert set(fired) == expected
    assert set(fired.values()) == {1}
    assert len(await real_time_store.jobs(JobFilter(), Page(limit=1_000))) == len(expected)


async def test_g6_a_step_is_taken_only_where_the_schedule_stands(store: Store, clock: ManualClock) -> None:
    view = await make(store, clock.now())
    assert await store.fire([step(view, expected=clock.now() - INSTANT)]) == []
    assert await store.fire([step(view, version=2)]) == []
    assert await store.fire([replace(step(view), name="unheard of")]) == []
    assert await stands(store) == view
    assert await store.jobs(JobFilter(), Page()) == []
    assert await store.fires("report", 10) == []


async def test_g6_a_step_does_not_undo_what_an_operator_did_meanwhile(store: Store, clock: ManualClock) -> None:
    view = await make(store, clock.now())
    paused = await store.pause_schedule("report", By("ops"), until=None, next_at=None)
    assert await store.fire([step(view)]) == []
    assert await stands(store) == paused
    resumed = await store.resume_schedule("report", By("ops"), clock.now())
    assert resumed is not None
    changed = await make(store, clock.now(), args="[]")
    assert await store.fire([step(resumed)]) == []
    assert await stands(store) == changed
    await store.delete_schedule("report", By("ops"))
    assert await store.fire([step(changed), extra(changed, by_hand(changed, clock.now()))]) == []
    assert await store.schedules() == []
    assert await store.jobs(JobFilter(), Page()) == []


async def test_g6_nominal_times_are_never_doubled_after_the_clock_was_put_back(
    store: Store, clock: ManualClock
) -> None:
    start = clock.now()
    await make(store, start, overlap=Overlap.ALLOW)
    for _ in range(3):
        await fire_next(store)
        clock.move(MINUTE)
    clock.move(-HOUR)
    ahead = await stands(store)
    assert await store.fire([step(ahead, next_at=start, firings=())]) == []
    back = await stands(store)
    assert (back.next_at, back.last_at, back.version) == (start, None, ahead.version)
    clock.move(HOUR)
    fires = await store.fire([step(back, times=4)])
    assert [fire.nominal_at for fire in fires] == [start + 3 * MINUTE]
    assert len(await store.jobs(JobFilter(), Page())) == 4
    assert (await stands(store)).last_at == start + 3 * MINUTE


async def test_g6_a_time_dealt_with_already_still_moves_the_schedule_on(store: Store, clock: ManualClock) -> None:
    view = await make(store, clock.now())
    await store.fire([extra(view, by_hand(view, clock.now()))])
    first = await stands(store)
    assert (first.next_at, first.last_at) == (clock.now(), None)
    assert await store.fire([step(first)]) == []
    moved = await stands(store)
    assert (moved.next_at, moved.last_at) == (clock.now() + MINUTE, clock.now())
    assert moved.last_job_id == first.last_job_id


async def test_the_latest_time_dealt_with_never_goes_back(store: Store, clock: ManualClock) -> None:
    start = clock.now() - HOUR
    view = await make(store, start, overlap=Overlap.ALLOW)
    await store.fire([step(view, times=3, next_at=start + SECOND)])
    await fire_next(store)
    assert (await stands(store)).last_at == start + 2 * MINUTE


async def test_g6_a_step_seen_before_the_clock_was_put_back_is_not_taken(store: Store, clock: ManualClock) -> None:
    """Or the schedule would be ahead of the clock again, and silent, after everybody has looked."""
    clock.move(HOUR)
    view = await make(store, clock.now())
    clock.move(-HOUR)
    assert await store.fire([step(view)]) == []
    assert await stands(store) == view
    assert await store.jobs(JobFilter(), Page()) == []
    assert await store.fire([extra(view, by_hand(view, clock.now() + HOUR))]) != [], "whoever asks by name gets it"
    clock.move(HOUR - INSTANT)
    assert await store.fire([step(view)]) == []
    clock.move(INSTANT)
    await store.fire([step(view)])
    assert (await stands(store)).last_at == clock.now()


async def test_a_nominal_time_named_twice_is_one(store: Store, clock: ManualClock) -> None:
    view = await make(store, clock.now(), overlap=Overlap.ALLOW)
    twice = (by_hand(view, clock.now()), by_hand(view, clock.now()))
    [fire] = await store.fire([extra(view, *twice)])
    assert twice[0].job is not None
    assert fire.job_id == twice[0].job.id
    assert len(await store.jobs(JobFilter(), Page())) == 1


async def test_many_steps_are_one_batch_and_answered_in_order(store: Store, clock: ManualClock) -> None:
    start = clock.now() - HOUR
    views = [await make(store, start, name=name, queue=name) for name in ("b", "a", "c")]
    stale = step(views[1], version=9)
    fires = await store.fire([step(views[0]), stale, step(views[2], times=2), extra(views[1]), step(views[1])])
    assert [(fire.schedule, fire.nominal_at - start, fire.queue) for fire in fires] == [
        ("b", 0 * MINUTE, "b"),
        ("c", 0 * MINUTE, "c"),
        ("c", MINUTE, None),
        ("a", 0 * MINUTE, "a"),
    ]


async def test_a_job_with_jitter_waits_for_its_time(store: Store, clock: ManualClock) -> None:
    view = await make(store, clock.now())
    job = job_for(view, run_at=clock.now() + 3 * SECOND)
    [fire] = await store.fire([step(view, firings=(Firing(nominal_at=clock.now(), job=job),))])
    assert fire.job_id == job.id
    seen = await show(store, job.id)
    assert (seen.state, seen.due_at) == (JobState.SCHEDULED, clock.now() + 3 * SECOND)


async def test_a_missed_time_has_a_record_and_no_job(store: Store, clock: ManualClock) -> None:
    start = clock.now()
    view = await make(store, start)
    clock.move(DAY)
    lost = tuple(Firing(nominal_at=start + number * MINUTE, job=None) for number in range(3))
    fires = await store.fire([step(view, next_at=clock.now(), firings=lost)])
    assert [(fire.fate, fire.job_id, fire.queue) for fire in fires] == [(Fate.MISSED, None, None)] * 3
    assert [outline(fire) for fire in await store.fires("report", 10)] == [outline(fire) for fire in reversed(fires)]
    assert (await stands(store)).last_at == start + 2 * MINUTE
    assert await store.jobs(JobFilter(), Page()) == []


@pytest.mark.parametrize("state", sorted(ACTIVE))
async def test_skip_lets_a_time_go_while_the_last_job_is_not_finished(
    store: Store, clock: ManualClock, state: JobState
) -> None:
    last_job = await job_of_a_schedule(store, clock, state, Overlap.SKIP)
    fire = await fire_next(store)
    assert (fire.fate, fire.job_id, fire.queue) == (Fate.OVERLAPPED, None, None)
    assert (await stands(store)).last_job_id == last_job
    assert [view.id for view in await store.jobs(JobFilter(), Page())] == [last_job]
    assert [one.fate for one in await store.fires("report", 10)] == [Fate.OVERLAPPED, Fate.FIRED]


@pytest.mark.parametrize("overlap", sorted(Overlap))
@pytest.mark.parametrize("state", sorted(FINAL))
async def test_a_finished_job_does_not_overlap(
    store: Store, clock: ManualClock, state: JobState, overlap: Overlap
) -> None:
    last_job = await job_of_a_schedule(store, clock, state, overlap)
    fire = await fire_next(store)
    assert fire.fate is Fate.FIRED
    assert await state_of(store, last_job) is state
    assert (await stands(store)).last_job_id == fire.job_id


async def test_a_deleted_job_does_not_overlap(store: Store, clock: ManualClock) -> None:
    await job_of_a_schedule(store, clock, JobState.SUCCEEDED, Overlap.SKIP)
    await store.purge(JobFilter(), By("ops"), 10)
    assert (await fire_next(store)).fate is Fate.FIRED


@pytest.mark.parametrize("state", sorted(ACTIVE - {JobState.RUNNING}))
async def test_cancel_calls_off_a_last_job_that_waits(
    store: Store, clock: ManualClock, engine_url: str, state: JobState
) -> None:
    last_job = await job_of_a_schedule(store, clock, state, Overlap.CANCEL)
    fire = await fire_next(store)
    assert fire.fate is Fate.FIRED
    gone = await show(store, last_job)
    assert (gone.state, gone.reason) == (JobState.CANCELLED, "cancelled: the schedule's next run has come")
    assert (await stands(store)).last_job_id == fire.job_id != last_job
    trail = query(engine_url, "SELECT actor, action, job_id FROM {audit} WHERE action = 'cancel'")
    assert [(actor, action, str(job_id)) for actor, action, job_id in trail] == [
        ("schedule report", "cancel", last_job)
    ]


async def test_cancel_asks_a_last_job_that_runs_to_stop(store: Store, clock: ManualClock) -> None:
    view = await make(store, clock.now() - HOUR, overlap=Overlap.CANCEL)
    await store.fire([step(view)])
    worker_id = await employ(store)
    claim = await claim_one(store, worker_id)
    fire = await fire_next(store)
    assert fire.fate is Fate.FIRED
    assert await store.cancel_requests(worker_id) == [
        CancelRequest(claim.job_id, claim.token, "the schedule's next run has come")
    ]
    assert (await claim_one(store, worker_id)).job_id == fire.job_id


async def test_cancel_holds_among_the_times_of_one_step(store: Store, clock: ManualClock) -> None:
    """The last one is left."""
    view = await make(store, clock.now() - HOUR, overlap=Overlap.CANCEL)
    fires = await store.fire([step(view, times=3)])
    assert [fire.fate for fire in fires] == [Fate.FIRED] * 3
    states = [await state_of(store, fire.job_id) for fire in fires if fire.job_id is not None]
    assert states == [JobState.CANCELLED, JobState.CANCELLED, JobState.READY]
    assert (await stands(store)).last_job_id == fires[-1].job_id


async def test_skip_holds_among_the_times_of_one_step(store: Store, clock: ManualClock) -> None:
    view = await make(store, clock.now() - HOUR, overlap=Overlap.SKIP)
    fires = await store.fire([step(view, times=3)])
    assert [fire.fate for fire in fires] == [Fate.FIRED, Fate.OVERLAPPED, Fate.OVERLAPPED]
    assert (await stands(store)).last_job_id == fires[0].job_id


async def test_allow_lets_jobs_run_side_by_side(store: Store, clock: ManualClock) -> None:
    await make(store, clock.now() - HOUR, overlap=Overlap.ALLOW)
    worker_id = await employ(store)
    running = []
    for _ in range(3):
        fire = await fire_next(store)
        running.append((await claim_one(store, worker_id)).job_id)
        assert running[-1] == fire.job_id
    assert {await state_of(store, job_id) for job_id in running} == {JobState.RUNNING}


async def test_queue_lets_the_next_job_run_after_the_last_one(store: Store, clock: ManualClock) -> None:
    await make(store, clock.now() - HOUR, overlap=Overlap.QUEUE)
    first = await fire_next(store)
    worker_id = await employ(store)
    claim = await claim_one(store, worker_id)
    second = await fire_next(store)
    assert (second.fate, claim.job_id) == (Fate.FIRED, first.job_id)
    assert second.job_id not in {None, first.job_id}
    assert await claim_some(store, worker_id) == []
    await apply(store, transition.succeeded(claim, None, ()))
    clock.move(MINUTE)
    await store.promote(10)
    assert (await claim_one(store, worker_id)).job_id == second.job_id


async def test_queue_lines_up_all_times_of_one_step(store: Store, clock: ManualClock) -> None:
    view = await make(store, clock.now() - HOUR, overlap=Overlap.QUEUE)
    fires = await store.fire([step(view, times=3)])
    assert [fire.fate for fire in fires] == [Fate.FIRED] * 3
    assert (await stands(store)).last_job_id == fires[-1].job_id
    assert len(await claim_some(store, await employ(store))) == 1
    assert len(await store.jobs(JobFilter(), Page())) == 3


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.CANCEL])
async def test_a_regardless_firing_asks_for_nothing(store: Store, clock: ManualClock, overlap: Overlap) -> None:
    last_job = await job_of_a_schedule(store, clock, JobState.READY, overlap)
    view = await stands(store)
    firing = by_hand(view, clock.now() - INSTANT, regardless=True, cause=Cause.BACKFILL)
    [fire] = await store.fire([extra(view, firing)])
    assert (fire.fate, fire.cause) == (Fate.FIRED, Cause.BACKFILL)
    assert await state_of(store, last_job) is JobState.READY
    after = await stands(store)
    assert after == replace(view, last_job_id=fire.job_id)


async def test_a_firing_by_hand_works_on_a_paused_schedule(store: Store, clock: ManualClock) -> None:
    await make(store, clock.now())
    paused = await store.pause_schedule("report", By("ops"), until=None, next_at=None)
    assert paused is not None
    [fire] = await store.fire([extra(paused, by_hand(paused, clock.now()))])
    assert (fire.fate, fire.cause) == (Fate.FIRED, Cause.HAND)
    assert await stands(store) == replace(paused, last_job_id=fire.job_id)


async def test_records_are_forgotten_after_90_days(store: Store, clock: ManualClock) -> None:
    await make(store, clock.now(), overlap=Overlap.ALLOW)
    await fire_next(store)
    clock.move(MINUTE)
    await fire_next(store)
    clock.move(90 * DAY - SECOND - MINUTE)
    await store.prune(Keep(), 100)
    assert len(await store.fires("report", 10)) == 2
    clock.move(2 * SECOND)
    await store.prune(Keep(), 100)
    assert [fire.nominal_at for fire in await store.fires("report", 10)] == [clock.now() - 90 * DAY - SECOND + MINUTE]


async def test_g6_a_backfill_of_long_ago_is_remembered_as_long_as_any_other(store: Store, clock: ManualClock) -> None:
    """Or asking for the same range again would run it again."""
    view = await make(store, clock.now())
    backfill = by_hand(view, clock.now() - 365 * DAY, cause=Cause.BACKFILL, regardless=True)
    assert len(await store.fire([extra(view, backfill)])) == 1
    clock.move(89 * DAY)
    await store.prune(Keep(), 100)
    assert await store.fire([extra(view, backfill)]) == []
    clock.move(2 * DAY)
    await store.prune(Keep(), 100)
    assert await store.fires("report", 10) == []


async def job_of_a_schedule(store: Store, clock: ManualClock, state: JobState, overlap: Overlap) -> JobId:
    """A schedule whose last job is in this state, and which is due."""
    view = await make(store, clock.now(), overlap=overlap)
    delay = timedelta(hours=1) if state is JobState.SCHEDULED else None
    job = job_for(view, delay=delay)
    await store.fire([step(view, firings=(Firing(nominal_at=clock.now(), job=job),))])
    if state not in {JobState.SCHEDULED, JobState.READY}:
        claim = await claim_one(store, await employ(store))
        if state is not JobState.RUNNING:
            await apply(store, ending_in(state, claim))
    clock.move(MINUTE)
    return job.id


def outline(fire: Fire) -> tuple[object, ...]:
    return (fire.schedule, fire.nominal_at, fire.fate, fire.cause, fire.at, fire.job_id)


def fire_steps(ready: Ready, url: str) -> list[tuple[str, datetime]]:
    """Be a scheduler: take the next steps at the same instant as the others, who have seen the same ones."""

    async def work(store: Store) -> list[tuple[str, datetime]]:
        fired: list[tuple[str, datetime]] = []
        for _ in range(STEPS):
            steps = [step(view) for view in (await store.due_schedules(100, ())).due]
            await asyncio.to_thread(ready)
            fired += [(fire.schedule, fire.nominal_at) for fire in await store.fire(steps)]
        return fired

    async def main() -> list[tuple[str, datetime]]:
        store = store_for(url)
        await store.open()
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(main())
