"""G5: what a handler writes through `ctx.transaction()` commits together with its acknowledgement, or not at all."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest
from tests.support.builders.jobs import start
from tests.support.programs.effects import QUICK, TWICE, at_work, insertion, write, written
from tests.support.waiting import until

from perdure import App, ConflictError, Context, Finish, Handle, Job, JobNotSuccessful, JobState, Snooze
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.transition import crashed
from perdure.events import Event, HandlerStuck, StaleWrites
from perdure.storage.records import CancelRequest
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.attempt.outcomes import AttemptInterrupted


class OopsError(Exception):
    """Something went wrong in a handler."""


async def until_failed(handle: Handle[None]) -> None:
    """Wait until a failed attempt of the job is recorded."""
    async with asyncio.timeout(20):
        while not (await handle.view()).failures:
            await asyncio.sleep(0.01)


def a_writer(app: App, url: str, mode: str, fail: Any = None, **options: Any) -> tuple[Job[[], str], list[int]]:
    """A job that writes a row and then does what `fail` says, in a task or in a thread; and its attempts so far."""
    attempts: list[int] = []

    async def in_task(ctx: Context) -> str:
        attempts.append(ctx.attempt)
        async with ctx.transaction() as connection:
            await write(connection, insertion(url, "row"))
        assert written(url) == []
        if fail is not None:
            fail(ctx)
        return "done"

    def in_thread(ctx: Context) -> str:
        attempts.append(ctx.attempt)
        with ctx.transaction() as connection:
            connection.execute(insertion(url, "row"))
        assert written(url) == []
        if fail is not None:
            fail(ctx)
        return "done"

    declared: Job[[], str] = app.job(name="writer", **options)(in_task if mode == "task" else in_thread)
    return declared, attempts


@pytest.mark.parametrize("mode", ["task", "thread"])
async def test_g5_writes_commit_together_with_the_acknowledgement(app: App, url: str, mode: str) -> None:
    job, _ = a_writer(app, url, mode)
    async with at_work(app) as worker:
        handle = await job.enqueue()
        assert await handle.result(timeout="20s") == "done"
        assert written(url) == ["row"]
        assert (await handle.view()).state is JobState.SUCCEEDED
    assert (worker.acknowledged, worker.stale_writes, worker.finished) == (1, 0, 1)


@pytest.mark.parametrize("mode", ["task", "thread"])
async def test_g5_a_failed_attempt_leaves_nothing_and_the_next_one_writes_once(app: App, url: str, mode: str) -> None:
    def fail(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise OopsError

    job, attempts = a_writer(app, url, mode, fail, retry=TWICE)
    async with at_work(app):
        handle = await job.enqueue()
        await handle.result(timeout="20s")
    assert attempts == [1, 2]
    assert written(url) == ["row"]
    assert (await handle.view()).failures == 1


@pytest.mark.parametrize("mode", ["task", "thread"])
async def test_g5_finish_commits_and_snooze_does_not(app: App, url: str, mode: str) -> None:
    verdicts = iter([Snooze("0s"), Finish("with a warning")])

    def fail(_: Context) -> None:
        raise next(verdicts)

    job, attempts = a_writer(app, url, mode, fail)
    async with at_work(app):
        handle = await job.enqueue()
        await handle.result(timeout="20s")
    assert len(attempts) == 2
    assert written(url) == ["row"]
    assert (await handle.view()).warnings == ("with a warning",)


@pytest.mark.parametrize("mode", ["task", "thread"])
async def test_g5_a_lost_claim_rolls_back_and_is_counted_as_stale(app: App, url: str, mode: str) -> None:
    """The claim is taken away before the handler writes; what it then writes is gone, and the next attempt's stays."""
    events: list[Event] = []
    app.subscribe(events.append)
    store, loop = await app.store(), asyncio.get_running_loop()
    attempts: list[int] = []

    async def rob(ctx: Context) -> None:
        attempts.append(ctx.attempt)
        if ctx.attempt == 1:
            await store.acknowledge([crashed(ctx._claim, Failure("Death", "the worker was declared dead"))])

    async def in_task(ctx: Context) -> None:
        await rob(ctx)
        async with ctx.transaction() as connection:
            await write(connection, insertion(url, f"attempt {ctx.attempt}"))

    def in_thread(ctx: Context) -> None:
        asyncio.run_coroutine_threadsafe(rob(ctx), loop).result(20)
        with ctx.transaction() as connection:
            connection.execute(insertion(url, f"attempt {ctx.attempt}"))

    job: Job[[], None] = app.job(name="robbed")(in_task if mode == "task" else in_thread)
    async with at_work(app) as worker:
        handle = await job.enqueue()
        await handle.result(timeout="20s")
        await until(lambda: worker.stale_writes)  # the robbed attempt may end after the one that came after it
        assert worker.stale_writes == 1
    assert attempts == [1, 2]
    assert written(url) == ["attempt 2"]
    assert [event.job_ids for event in events if isinstance(event, StaleWrites)] == [(handle.id,)]


async def test_g5_a_stopped_attempt_leaves_nothing(app: App, url: str) -> None:
    reached = asyncio.Event()

    @app.job(retry=TWICE)
    async def slow(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await write(connection, insertion(url, "row"))
            reached.set()
            await asyncio.sleep(60)

    async with at_work(app) as worker:
        handle = await slow.enqueue()
        await asyncio.wait_for(reached.wait(), 20)
        [running] = worker._parts.attempts.executor.running
        worker._parts.requests._stop_job(CancelRequest(handle.id, running.claim.token))
        with pytest.raises(JobNotSuccessful, match="cancelled"):
            await handle.result(timeout="20s")
    assert written(url) == []


async def test_g5_a_thread_that_is_given_up_holds_no_lock_and_writes_nothing_more(app: App, url: str) -> None:
    free, events, refused = threading.Event(), list[Event](), list[Exception]()
    app.subscribe(events.append)

    @app.job(timeout="100ms")
    def stuck(ctx: Context) -> None:
        with ctx.transaction() as connection:
            connection.execute(insertion(url, "row"))
            with suppress(AttemptInterrupted):
                free.wait(60)
            try:
                connection.execute(insertion(url, "too late"))
            except Exception as error:
                refused.append(error)
                raise

    async with at_work(app):
        handle = await stuck.enqueue()
        await until(lambda: any(isinstance(event, HandlerStuck) for event in events))
        try:
            await until_failed(handle)
            async with asyncio.timeout(20):
                await stuck.using(delay="1h").enqueue()
        finally:
            free.set()
        await until(lambda: refused)
    assert written(url) == []


@pytest.mark.parametrize("mode", ["task", "thread"])
async def test_g5_a_block_that_raises_undoes_itself_and_no_more(app: App, url: str, mode: str) -> None:
    async def in_task(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await write(connection, insertion(url, "first"))
        with suppress(OopsError):
            async with ctx.transaction() as connection:
                await write(connection, insertion(url, "undone"))
                raise OopsError
        async with ctx.transaction() as connection:
            await write(connection, insertion(url, "last"))

    def in_thread(ctx: Context) -> None:
        with ctx.transaction() as connection:
            connection.execute(insertion(url, "first"))
        with suppress(OopsError), ctx.transaction() as connection:
            connection.execute(insertion(url, "undone"))
            raise OopsError
        with ctx.transaction() as connection:
            connection.execute(insertion(url, "last"))

    job: Job[[], None] = app.job(name="blocks")(in_task if mode == "task" else in_thread)
    async with at_work(app):
        await (await job.enqueue()).result(timeout="20s")
    assert written(url) == ["first", "last"]


async def test_g5_jobs_enqueued_through_it_exist_only_if_the_attempt_counts(app: App, url: str) -> None:
    @app.job
    async def child(number: int) -> None: ...

    @app.job(retry=TWICE)
    async def parent(ctx: Context) -> JobId:
        async with ctx.transaction() as connection:
            handle = await child.using(connection=connection).enqueue(ctx.attempt)
        if ctx.attempt == 1:
            raise OopsError
        return handle.id

    @app.job(retry=TWICE)
    def parent_in_thread(ctx: Context) -> JobId:
        with ctx.transaction() as connection:
            handle = child.using(connection=connection).enqueue_sync(ctx.attempt)
        if ctx.attempt == 1:
            raise OopsError
        return handle.id

    async with at_work(app):
        for job in (parent, parent_in_thread):
            child_id = await (await job.enqueue()).result(timeout="20s")
            view = await (await app.store()).job(child_id)
            assert view is not None
            assert view.args == '{"number":2}'
    counts = await (await app.store()).counts()
    assert sum(count.jobs for count in counts) == 4


async def test_g5_many_attempts_at_once_each_write_once(app: App, url: str) -> None:
    @app.job
    async def in_task(ctx: Context, number: int) -> None:
        async with ctx.transaction() as connection:
            await write(connection, insertion(url, f"{number:03}"))
            await asyncio.sleep(0)

    @app.job
    def in_thread(ctx: Context, number: int) -> None:
        with ctx.transaction() as connection:
            connection.execute(insertion(url, f"{number:03}"))

    calls = [(in_task if number % 2 else in_thread).call(number) for number in range(40)]
    handles = await app.enqueue_many(calls)
    async with at_work(app):
        for handle in handles:
            await handle.result(timeout="40s")
    assert written(url) == [f"{number:03}" for number in range(40)]


@pytest.mark.parametrize("sql", ["COMMIT", "ROLLBACK"])
async def test_g5_a_handler_that_ends_the_transaction_itself_gets_an_error(app: App, url: str, sql: str) -> None:
    @app.job
    async def impatient(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await write(connection, insertion(url, "row"))
            await write(connection, sql)

    async with at_work(app):
        handle = await impatient.enqueue()
        await until_failed(handle)
    error = (await handle.view()).last_error
    assert error is not None
    assert "transaction" in error.lower()


async def test_rows_are_read_as_the_handler_wants_them_without_harm_to_the_acknowledgement(app: App, url: str) -> None:
    @app.job
    async def particular(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            if hasattr(connection, "row_trace"):
                connection.row_trace = lambda _cursor, row: {"row": row}
            else:
                connection.row_factory = lambda *_: lambda *_: {"row": None}
            await write(connection, insertion(url, "row"))

    async with at_work(app, QUICK):
        await (await particular.enqueue()).result(timeout="20s")
    assert written(url) == ["row"]


async def test_a_handler_in_a_process_of_its_own_is_refused(app: App) -> None:
    [claim] = [await start(await app.store())]
    with pytest.raises(ConflictError, match="cannot be used with isolate=True"):
        Context(claim, StopFlag()).transaction()


async def test_each_kind_of_handler_is_notified_in_its_own_way(app: App) -> None:
    @app.job
    async def in_task(ctx: Context) -> str:
        with pytest.raises(Exception, match="write `async with`"), ctx.transaction():
            pass
        return "told"

    @app.job
    def in_thread(ctx: Context) -> str:
        with pytest.raises(Exception, match="write `with`"):
            asyncio.run(ctx.transaction().__aenter__())
        return "told"

    async with at_work(app):
        for job in (in_task, in_thread):
            assert await (await job.enqueue()).result(timeout="20s") == "told"


async def test_g5_a_thread_given_up_in_the_middle_of_a_statement_holds_no_lock(app: App, url: str) -> None:
    events: list[Event] = []
    app.subscribe(events.append)

    @app.job(timeout="100ms")
    def busy(ctx: Context) -> None:
        with ctx.transaction() as connection:
            connection.execute(insertion(url, "row"))
            connection.execute(a_long_time(url))

    async with at_work(app):
        handle = await busy.enqueue()
        await until(lambda: any(isinstance(event, HandlerStuck) for event in events))
        await until_failed(handle)
        async with asyncio.timeout(20):
            await busy.using(delay="1h").enqueue()
    assert written(url) == []


def a_long_time(url: str) -> str:
    """A statement that goes on until it is stopped."""
    if url.startswith("postgresql"):
        return "SELECT pg_sleep(60)"
    return "SELECT count(*) FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)"
