"""Events of every attempt: started, succeeded, failed with the exception itself; only for those who name them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.hooks.conftest import AtWork
from tests.support.waiting import until

from perdure import (
    App,
    ArgumentError,
    Backoff,
    Context,
    Event,
    JobDied,
    JobFailed,
    JobNotSuccessful,
    JobRetrying,
    JobStarted,
    JobSucceeded,
    Retry,
)


async def test_those_who_name_them_hear_of_each_attempt(app: App, at_work: AtWork) -> None:
    heard: list[Any] = []
    app.subscribe(heard.append, JobStarted, JobSucceeded, JobFailed)

    @app.job
    async def soon(fail: bool) -> None:
        if fail:
            raise LookupError("gone")

    @app.job
    def blocking(fail: bool) -> None:
        if fail:
            raise LookupError("gone")

    async with at_work():
        for job in (soon, blocking):
            heard.clear()
            done = await job.enqueue(fail=False)
            await done.result("30s")
            failed = await job.enqueue(fail=True)
            with pytest.raises(JobNotSuccessful):
                await failed.result("30s")
            started, succeeded, again, broken = heard
            name = job.kind.name
            assert (started.job_id, started.kind, started.queue, started.attempt) == (done.id, name, "default", 1)
            assert isinstance(succeeded, JobSucceeded)
            assert succeeded.seconds >= 0
            assert isinstance(again, JobStarted)
            assert isinstance(broken, JobFailed)
            assert isinstance(broken.exception, LookupError)
            assert broken.exception.__traceback__ is not None
            assert (broken.job_id, broken.will_retry, broken.error) == (failed.id, False, "LookupError: gone")


async def test_a_failure_that_is_retried_says_so(app: App, at_work: AtWork) -> None:
    heard: list[Any] = []
    app.subscribe(heard.append, JobFailed)

    @app.job(retry=Retry(attempts=2, backoff=Backoff.fixed(0)))
    async def soon() -> None:
        raise LookupError("gone")

    async with at_work():
        with pytest.raises(JobNotSuccessful):
            await (await soon.enqueue()).result("30s")
    assert [(event.attempt, event.will_retry) for event in heard] == [(1, True), (2, False)]


async def test_events_of_a_job_show_its_ref_and_metadata(app: App, at_work: AtWork) -> None:
    heard: list[Any] = []
    app.subscribe(heard.append, JobStarted, JobSucceeded, JobFailed, JobRetrying, JobDied)

    @app.job(retry=Retry(attempts=2, backoff=Backoff.fixed("50ms")))
    async def soon(fail: bool) -> None:
        if fail:
            raise LookupError("gone")

    async with at_work():
        await (await soon.using(ref="S-1", meta={"flag": "dark"}).enqueue(fail=False)).result("30s")
        failed = await soon.using(ref="S-2", meta={"flag": "light"}).enqueue(fail=True)
        with pytest.raises(JobNotSuccessful):
            await failed.result("30s")
        attempts = (await (await app.desk("test")).job("S-2")).attempts
        await (await soon.enqueue(fail=False)).result("30s")
    told = {(type(event).__name__, event.ref, event.meta.get("flag")) for event in heard}
    assert told >= {("JobStarted", "S-1", "dark"), ("JobSucceeded", "S-1", "dark"), ("JobSucceeded", None, None)}
    assert told >= {(name, "S-2", "light") for name in ("JobStarted", "JobFailed", "JobRetrying", "JobDied")}
    [retrying] = [event for event in heard if isinstance(event, JobRetrying)]
    assert attempts[0].next_at is not None
    assert retrying.next_at is not None
    assert abs((attempts[0].next_at - retrying.next_at).total_seconds()) < 5


async def test_a_success_that_commits_with_the_handlers_own_writes_is_reported(app: App, at_work: AtWork) -> None:
    heard: list[Any] = []
    app.subscribe(heard.append, JobStarted, JobSucceeded, JobFailed)

    @app.job
    async def book(ctx: Context) -> None:
        async with ctx.transaction():
            pass

    async with at_work():
        handle = await book.enqueue()
        await handle.result("30s")
        await until(lambda: len(heard) > 1)
    assert [(type(event), event.job_id) for event in heard] == [(JobStarted, handle.id), (JobSucceeded, handle.id)]


async def test_listeners_without_types_get_no_event_of_each_attempt(app: App, at_work: AtWork) -> None:
    heard: list[Event] = []
    app.subscribe(heard.append)
    assert not app.events.follows_attempts

    @app.job
    async def soon() -> None: ...

    async with at_work():
        await (await soon.enqueue()).result("30s")
    assert heard
    assert not [event for event in heard if isinstance(event, JobStarted | JobSucceeded | JobFailed)]


def test_attempts_are_followed_only_while_there_is_a_subscriber(app: App) -> None:
    stop = app.subscribe(lambda _: None, JobSucceeded)
    assert app.events.follows_attempts
    stop()
    assert not app.events.follows_attempts


def test_a_type_that_is_no_event_is_refused(app: App) -> None:
    with pytest.raises(ArgumentError, match="types must be classes of events such as JobFailed, got 'JobFailed'"):
        app.subscribe(lambda _: None, "JobFailed")  # type: ignore[arg-type] # that is the point
