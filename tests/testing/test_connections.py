"""Enqueueing in a transaction of one's own, inside a sandbox."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from perdure import App, ArgumentError, Backoff, Context, Jitter, JobState, Retry
from perdure.testing import Sandbox


@pytest.fixture
def connection(tmp_path: Path) -> sqlite3.Connection:
    """The connection of an app to a database that is no sandbox's."""
    return sqlite3.connect(tmp_path / "shop.db")


async def test_in_a_temporary_database_the_job_is_stored_at_once(
    app: App, box: Sandbox, connection: sqlite3.Connection
) -> None:
    @app.job
    async def work(n: int) -> int:
        return n

    handle = await work.using(connection=connection).enqueue(1)
    work.using(connection=connection).enqueue_sync(2)
    await app.enqueue_many([work.call(3)], connection=connection)
    connection.rollback()
    connection.close()

    box.assert_enqueued_times(3, work)
    assert (await box.drain()).succeeded == 3
    assert await box.result(handle) == 1


async def test_what_is_no_connection_is_refused_as_ever(app: App, box: Sandbox) -> None:
    @app.job
    async def work() -> None: ...

    with pytest.raises(ArgumentError, match="connection"):
        await work.using(connection="shop.db").enqueue()


async def test_what_a_handler_writes_commits_with_its_end_and_so_does_what_it_enqueues(app: App, box: Sandbox) -> None:
    @app.job(retry=Retry(attempts=2, backoff=Backoff.fixed("1m"), jitter=Jitter.none()))
    async def book(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            connection.execute("CREATE TABLE booking (attempt INTEGER)")
            connection.execute("INSERT INTO booking VALUES (?)", (ctx.attempt,))
            await confirm.using(connection=connection).enqueue(ctx.attempt)
        if ctx.attempt == 1:
            raise ValueError("too early")

    @app.job
    def confirm(ctx: Context, attempt: int) -> list[tuple[int]]:
        with ctx.transaction() as connection:
            return list(connection.execute("SELECT attempt FROM booking"))

    await book.enqueue()
    assert (await box.drain()).retrying == 1
    drained = await box.drain(travel=True)

    assert [(job.kind, job.state, job.result) for job in drained.jobs] == [
        ("book", "succeeded", None),
        ("confirm", "succeeded", "[[2]]"),
    ]


def test_inline_and_in_the_tests_own_thread_it_is_the_same(app: App) -> None:
    done: list[int] = []

    @app.job
    def book(ctx: Context) -> None:
        with ctx.transaction() as connection:
            confirm.using(connection=connection, queue="mail").enqueue_sync(ctx.attempt)

    @app.job
    def confirm(attempt: int) -> None:
        done.append(attempt)

    with Sandbox(app, inline=True) as box:
        book.enqueue_sync()
        box.assert_enqueued_once(confirm.using(queue="mail"), 1)
    assert done == [1]


def test_inline_it_is_run_at_once_as_well(app: App, connection: sqlite3.Connection) -> None:
    done: list[int] = []

    @app.job
    def work(n: int) -> None:
        done.append(n)

    with Sandbox(app, inline=True):
        work.using(connection=connection).enqueue_sync(1)
    connection.close()
    assert done == [1]


async def test_in_a_database_of_ones_own_it_is_stored_with_the_commit(app: App, tmp_path: Path) -> None:
    @app.job
    async def work() -> None: ...

    file = tmp_path / "shared.db"
    async with Sandbox(app, url=f"sqlite:///{file}?driver=sqlite3", inline=True) as box:
        connection = sqlite3.connect(file)
        connection.execute("BEGIN IMMEDIATE")
        lost = await work.using(connection=connection).enqueue()
        connection.rollback()
        connection.execute("BEGIN IMMEDIATE")
        kept = await work.using(connection=connection).enqueue()
        connection.commit()
        connection.close()

        box.assert_enqueued_times(2, work)
        assert await (await app.store()).job(lost.id) is None
        assert (await box.job(kept)).state is JobState.READY
        assert (await box.drain()).succeeded == 1
    assert file.exists()
