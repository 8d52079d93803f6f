"""A drain runs what is due, and says what became of it."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime, timedelta

import pytest

from perdure import (
    App,
    ArgumentError,
    Backoff,
    CancelJob,
    Context,
    Finish,
    Jitter,
    JobNotSuccessful,
    JobState,
    Pause,
    Permanent,
    Retry,
    Snooze,
    current_context,
)
from perdure.events import Event, JobDied
from perdure.testing import Sandbox

EVERY_MINUTE = Retry(attempts=3, backoff=Backoff.fixed("1m"), jitter=Jitter.none())


async def test_it_runs_what_is_ready_and_what_that_enqueues(app: App, box: Sandbox) -> None:
    done: list[int] = []

    @app.job
    async def count_down(n: int) -> None:
        done.append(n)
        if n:
            await count_down.using(queue="mail").enqueue(n - 1)

    await count_down.enqueue(3)
    drained = await box.drain()

    assert done == [3, 2, 1, 0]
    assert (drained.succeeded, drained.attempts, drained.left) == (4, 4, 0)
    assert str(drained) == "4 succeeded in 4 attempts; 0 left"


async def test_e4_warnings_are_reported(app: App, box: Sandbox) -> None:
    @app.job
    async def audit(warn: bool) -> None:
        if warn:
            raise Finish("no screenshots")

    await audit.enqueue(warn=False)
    await audit.enqueue(warn=True)
    assert str(await box.drain()) == "2 succeeded (1 with warnings) in 2 attempts; 0 left"


@pytest.mark.parametrize("travel", [True, "3h"])
async def test_a_journey_stops_where_the_pause_of_a_queue_ends(app: App, box: Sandbox, travel: bool | str) -> None:
    ran: list[datetime] = []

    @app.job(queue="mail")
    async def send() -> None:
        ran.append(box.now)

    holds = (await app.desk("ops")).holds
    later = box.now + timedelta(hours=2)
    await holds.pause(queue="mail", until=box.now + timedelta(hours=1))
    await holds.pause(queue="mail", until=later)
    await holds.pause(queue="other", until=box.now + timedelta(hours=1))
    await send.enqueue()
    assert (await box.drain()).left == 1
    drained = await box.drain(travel=travel)
    assert (drained.left, ran) == (0, [later])


async def test_it_goes_by_priority_and_age(app: App, box: Sandbox) -> None:
    done: list[str] = []

    @app.job
    async def work(name: str) -> None:
        done.append(name)

    await work.enqueue("first")
    await work.enqueue("second")
    await work.using(priority=0).enqueue("urgent")
    drained = await box.drain()

    assert done == ["urgent", "first", "second"]
    assert [job.args for job in drained.jobs] == ['{"name":"urgent"}', '{"name":"first"}', '{"name":"second"}']


async def test_every_ending_is_counted_as_what_it_is(app: App, box: Sandbox) -> None:
    @app.job(retry=EVERY_MINUTE)
    async def end(how: str) -> None:
        endings = {
            "retrying": ValueError("later"),
            "dead": Permanent("no"),
            "waiting": Snooze("5m"),
            "paused": Pause("budget"),
            "cancelled": CancelJob("never mind"),
        }
        if how in endings:
            raise endings[how]

    for how in ("succeeded", "retrying", "dead", "waiting", "paused", "cancelled"):
        await end.enqueue(how)
    drained = await box.drain()

    assert {job.args.split('"')[3]: job.state.value for job in drained.jobs} == {
        how: how for how in ("succeeded", "retrying", "dead", "waiting", "paused", "cancelled")
    }
    assert (drained.succeeded, drained.retrying, drained.dead) == (1, 1, 1)
    assert (drained.waiting, drained.paused, drained.cancelled) == (1, 1, 1)
    assert drained.left == 3


async def test_it_does_not_travel_by_itself(app: App, box: Sandbox) -> None:
    @app.job
    async def work() -> None: ...

    await work.using(delay="10m").enqueue()
    assert (await box.drain()).left == 1
    box.travel("9m59s")
    assert (await box.drain()).attempts == 0
    box.travel("1s")
    assert (await box.drain()).succeeded == 1


async def test_with_travel_all_is_final_and_every_attempt_is_on_time(app: App, box: Sandbox) -> None:
    times: list[timedelta] = []
    began = box.now

    @app.job(retry=EVERY_MINUTE)
    async def work(ctx: Context) -> int:
        times.append(ctx.claimed_at - began)
        if ctx.attempt < 3:
            raise ValueError
        return ctx.attempt

    handle = await work.using(delay="1h").enqueue()
    drained = await box.drain(travel=True)

    assert times == [timedelta(minutes=60), timedelta(minutes=61), timedelta(minutes=62)]
    assert (drained.succeeded, drained.retrying, drained.attempts, drained.left) == (1, 0, 3, 0)
    assert await handle.result() == 3
    assert box.now == began + timedelta(minutes=62)


async def test_a_span_is_travelled_to_its_end_and_no_further(app: App, box: Sandbox) -> None:
    began = box.now

    @app.job
    async def tick(ctx: Context) -> None:
        raise Snooze("10m")

    await tick.enqueue()
    drained = await box.drain(travel="25m")

    assert drained.attempts == 3
    assert drained.waiting == 1
    assert box.now == began + timedelta(minutes=25)


async def test_a_queue_is_drained_alone_and_travels_for_itself_alone(app: App, box: Sandbox) -> None:
    @app.job
    async def work() -> None: ...

    began = box.now
    await work.enqueue()
    await work.using(delay="1d").enqueue()
    await work.using(queue="mail", delay="1h").enqueue()
    drained = await box.drain("mail", travel=True)

    assert (drained.succeeded, drained.left) == (1, 0)
    assert box.now == began + timedelta(hours=1)
    with pytest.raises(ArgumentError, match="queue 'male'"):
        await box.drain("male")


async def test_it_ends_early_once_until_holds(app: App, box: Sandbox) -> None:
    done: list[int] = []

    @app.job
    async def work(n: int) -> None:
        done.append(n)

    await app.enqueue_many(work.call(n) for n in range(5))
    drained = await box.drain(until=lambda: len(done) == 2, travel=True)

    assert done == [0, 1]
    assert drained.left == 3


async def test_a_job_that_is_ready_again_at_once_runs_again(app: App, box: Sandbox) -> None:
    @app.job(retry=Retry(attempts=3, backoff=Backoff.none(), jitter=Jitter.none()))
    async def fail() -> None:
        raise ValueError

    @app.job
    async def snooze(ctx: Context) -> None:
        if len(seen) < 3:
            seen.append(ctx.token)
            raise Snooze(0)

    seen: list[int] = []
    await fail.enqueue()
    await snooze.enqueue()
    drained = await box.drain()

    assert (drained.dead, drained.succeeded, drained.attempts) == (1, 1, 7)


async def test_a_drain_that_would_never_end_is_ended_and_says_who_keeps_it_going(app: App, box: Sandbox) -> None:
    @app.job
    async def again() -> None:
        await again.enqueue()

    await again.enqueue()
    with pytest.raises(AssertionError, match=r"20 attempts were made, and jobs are still ready: 1 again"):
        await box.drain(limit=20)


async def test_a_journey_that_would_never_end_is_ended_and_says_who_keeps_it_going(app: App, box: Sandbox) -> None:
    @app.job
    async def poll() -> None:
        raise Snooze("1m")

    await poll.enqueue()
    with pytest.raises(AssertionError, match=r"jobs are still (to come|ready): 1 poll"):
        await box.drain(travel=True, limit=20)


async def test_jobs_that_wait_for_each_other_need_concurrency(app: App, box: Sandbox) -> None:
    barrier = asyncio.Barrier(2)

    @app.job
    async def meet() -> None:
        async with asyncio.timeout(10):
            await barrier.wait()

    await meet.enqueue()
    await meet.using(queue="mail").enqueue()

    assert (await box.drain(concurrency=2)).succeeded == 2


async def test_sync_handlers_get_their_context_in_a_thread(app: App, box: Sandbox) -> None:
    @app.job
    def work(ctx: Context, n: int) -> tuple[int, bool]:
        current = current_context()
        return ctx.attempt + n, current is not None and current.job_id == ctx.job_id

    assert await box.result(await work.enqueue(41)) == (42, True)
    assert current_context() is None


def test_without_an_event_loop_sync_handlers_run_in_the_tests_own_thread(app: App) -> None:
    threads: list[int] = []

    @app.job
    def outer() -> None:
        threads.append(threading.get_ident())
        inner.enqueue_sync()

    @app.job
    def inner() -> None:
        threads.append(threading.get_ident())

    @app.job
    async def on_a_loop() -> None:
        outer.enqueue_sync()
        threads.append(threading.get_ident())

    with Sandbox(app) as box:
        handle = on_a_loop.enqueue_sync()
        assert box.drain_sync().succeeded == 3
        assert box.result_sync(handle) is None
        assert box.job_sync(handle).state is JobState.SUCCEEDED
        assert (box.attempts_sync(handle.id), box.dead_sync()) == ([], [])
    me = threading.get_ident()
    assert threads[0] != me
    assert threads[1:] == [me, me]
    assert current_context() is None


def test_a_sync_handler_that_takes_too_long_is_interrupted_in_the_tests_own_thread(app: App) -> None:
    @app.job(timeout="50ms", retry=Retry.none())
    def endless() -> None:
        while True:
            threading.Event().wait(0.001)

    with Sandbox(app) as box:
        handle = endless.enqueue_sync()
        assert box.drain_sync().dead == 1
        assert "time limit" in (box.job_sync(handle).last_error or "")


async def test_a_job_that_asks_for_a_process_runs_in_this_one(app: App, box: Sandbox) -> None:
    here: list[str] = []

    @app.job(isolate=True, memory=2**30)
    async def work() -> None:
        here.append("async")

    @app.job(isolate=True)
    def work_sync() -> None:
        here.append("sync")

    await work.enqueue()
    await work_sync.enqueue()
    assert (await box.drain()).succeeded == 2
    assert here == ["async", "sync"]


async def test_raising_raises_the_error_of_the_first_job_left_failed_once_all_have_run(app: App, box: Sandbox) -> None:
    error = ValueError("mine")

    @app.job
    async def fail() -> None:
        raise error

    @app.job
    async def work() -> None: ...

    handle = await fail.enqueue()
    other = await work.enqueue()
    with pytest.raises(ValueError, match="mine") as raised:
        await box.drain(raising=True)

    assert raised.value is error
    assert raised.value.__notes__ == [f"raised by job fail {handle.id} on attempt 1; it is retrying now"]
    assert (await box.job(other)).state is JobState.SUCCEEDED


async def test_raising_reports_a_failure_that_was_no_exception(app: App, box: Sandbox) -> None:
    @app.job(timeout="20ms", retry=Retry.none())
    async def slow() -> None:
        await asyncio.Event().wait()

    await slow.enqueue()
    with pytest.raises(JobNotSuccessful, match="time limit"):
        await box.drain(raising=True)


@pytest.mark.parametrize("sync", [True, False])
async def test_a_test_may_fail_from_inside_a_handler(app: App, box: Sandbox, *, sync: bool) -> None:
    @app.job
    async def work() -> None:
        pytest.fail("so not")

    @app.job
    def work_sync() -> None:
        pytest.fail("so not")

    handle = await (work_sync if sync else work).enqueue()
    with pytest.raises(pytest.fail.Exception, match="so not"):
        await box.drain()
    assert (await box.attempts(handle))[0].message == "Failed: so not"


async def test_a_result_is_there_after_the_job_had_its_chance(app: App, box: Sandbox) -> None:
    @app.job
    async def add(a: int, b: int) -> int:
        return a + b

    @app.job(retry=Retry.none())
    async def fail() -> None:
        raise ValueError("no")

    assert await box.result(await add.enqueue(1, 2)) == 3
    with pytest.raises(JobNotSuccessful, match="no"):
        await box.result(await fail.enqueue())
    with pytest.raises(AssertionError, match=r"has no result, it is scheduled.* due at .*travel"):
        await box.result(await add.using(delay="1h").enqueue(1, 2))


async def test_subscribers_of_the_app_are_reported(app: App, box: Sandbox) -> None:
    heard: list[Event] = []
    app.subscribe(heard.append)

    @app.job(retry=Retry.none())
    async def fail() -> None:
        raise ValueError("no")

    await fail.enqueue()
    await box.drain()
    assert [type(event) for event in heard] == [JobDied]


async def test_chance_is_the_same_every_time(app: App) -> None:
    @app.job(retry=Retry(attempts=4, backoff=Backoff.fixed("1m"), jitter=Jitter.full()))
    async def fail() -> None:
        raise ValueError

    async def journey(seed: int) -> timedelta:
        async with Sandbox(app, seed=seed) as box:
            began = box.now
            await fail.enqueue()
            await box.drain(travel=True)
            return box.now - began

    assert await journey(1) == await journey(1) != await journey(2)


async def test_b2_a_retry_runs_before_what_came_after_it_was_due(app: App, box: Sandbox) -> None:
    """And a job that waited takes its old place, as with a worker."""
    ran: list[str] = []

    @app.job(retry=EVERY_MINUTE)
    async def work(ctx: Context, name: str) -> None:
        ran.append(name)
        if name == "failed" and ctx.attempt == 1:
            raise ValueError(name)
        if name == "snoozed" and ran.count(name) == 1:
            raise Snooze("2h")

    for name in ("snoozed", "failed"):
        await work.enqueue(name)
    await box.drain()
    box.travel("90s")
    await work.enqueue("fresh")
    box.travel("3h")
    await work.enqueue("late")
    await box.drain()
    assert ran == ["snoozed", "failed", "snoozed", "failed", "fresh", "late"]
