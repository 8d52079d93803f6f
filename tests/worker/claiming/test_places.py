"""Workers and places in line: what a stop, a crash or a wait interrupts runs next, not last."""

from __future__ import annotations

import asyncio
from datetime import datetime

from tests.support.builders.jobs import a_job, a_worker
from tests.support.waiting import until
from tests.support.working import at_work, seen

from perdure import App, Backoff, Context, Jitter, JobState, Retry, Snooze
from perdure.domain.jobs.ids import JobId
from perdure.domain.worker import ProcessIdentity
from perdure.events import JobsRescued
from perdure.lifecycle.process.identity import this_process
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page, Wanted

UNUSED = "sqlite:///unused.db"
BACKLOG = 200


async def fill(store: Store, number: int = BACKLOG) -> None:
    await store.insert([a_job(kind="work", args=f'{{"n":{n}}}') for n in range(number)])


async def all_run(store: Store, app: App, ran: list[int], number: int = BACKLOG) -> None:
    async with at_work(store, app, concurrency=1):
        await until(lambda: len(ran) >= number)


async def test_c1_what_a_stop_gave_back_runs_first(real_time_store: Store) -> None:
    """A deploy in front of a backlog does not send the interrupted jobs to its end."""
    app = App(UNUSED)
    begun: list[int] = []
    ran: list[int] = []
    holding = True

    @app.job
    async def work(ctx: Context, n: int) -> None:
        begun.append(n)
        if holding:
            await asyncio.sleep(60)
        ran.append(n)

    await fill(real_time_store)
    async with at_work(real_time_store, app, concurrency=4, stop_timeout="1s", grace="900ms") as shift:
        await until(lambda: len(begun) == 4)
        await shift.stopped()
    holding = False
    await all_run(real_time_store, app, ran)
    assert sorted(begun[:4]) == [0, 1, 2, 3]
    assert ran == list(range(BACKLOG))


async def test_g4_what_a_dead_process_held_runs_next(real_time_store: Store) -> None:
    app = App(UNUSED)
    ran: list[int] = []
    is_rescued = asyncio.Event()

    @app.job
    async def work(n: int) -> None:
        await is_rescued.wait()
        ran.append(n)

    gone = ProcessIdentity(this_process().host, 2**22 + 1, 1)
    dead = await real_time_store.register(a_worker(name="dead", process=gone))
    await fill(real_time_store)
    assert len(await real_time_store.claim(dead, [Wanted("default", 5)])) == 5
    async with at_work(real_time_store, app, concurrency=1) as shift:
        await until(lambda: shift.told(JobsRescued))
        is_rescued.set()
        await until(lambda: len(ran) == BACKLOG)
    assert ran == [5, 0, 1, 2, 3, 4, *range(6, BACKLOG)]


async def test_a_job_that_waited_goes_on_before_the_backlog(real_time_store: Store) -> None:
    app = App(UNUSED)
    ran: list[int] = []
    ids: list[JobId] = []

    @app.job
    async def work(ctx: Context, n: int) -> None:
        if n == 0 and not ids:
            ids.append(ctx.job_id)
            raise Snooze("5ms")
        if n == 1:
            await seen(real_time_store, ids[0], JobState.READY)
        ran.append(n)

    await fill(real_time_store)
    await all_run(real_time_store, app, ran)
    assert ran == [1, 0, *range(2, BACKLOG)]


async def test_b2_a_retry_runs_before_jobs_that_came_after_it_was_due(real_time_store: Store) -> None:
    """Although no worker was there when it became due."""
    app = App(UNUSED)
    ran: list[int] = []

    @app.job(retry=Retry(attempts=2, backoff=Backoff.fixed("300ms"), jitter=Jitter.none()))
    async def work(ctx: Context, n: int) -> None:
        if n == 0 and ctx.attempt == 1:
            raise ValueError(n)
        if n == 1:  # it may be claimed before the promoter has come round
            await seen(real_time_store, job_id, JobState.READY, JobState.SUCCEEDED)
        ran.append(n)

    await fill(real_time_store, 1)
    async with at_work(real_time_store, app, concurrency=1) as shift:
        [job_id] = [view.id for view in await real_time_store.jobs(JobFilter(), Page())]
        due_at = (await seen(real_time_store, job_id, JobState.RETRYING)).due_at
        await shift.stopped()
    assert due_at is not None
    await until_the_store_says(real_time_store, due_at)
    await real_time_store.insert([a_job(kind="work", args=f'{{"n":{n}}}') for n in range(1, BACKLOG)])
    await all_run(real_time_store, app, ran)
    assert sorted(ran[:2]) == [0, 1]
    assert ran[2:] == list(range(2, BACKLOG))


async def until_the_store_says(store: Store, when: datetime) -> None:
    while await store.now() <= when:
        await asyncio.sleep(0.01)
