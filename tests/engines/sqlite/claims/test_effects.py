"""However a handler leaves its connection, its transaction ends, and the next one has its turn."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.support.builders.jobs import start, state_of

from perdure.domain.jobs import transition
from perdure.domain.jobs.states import JobState
from perdure.engines.sqlite.store import SqliteStore

SOON = 10.0
ENDLESS = "WITH RECURSIVE n (i) AS (SELECT note_begun() UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
SEVERAL = {"apsw": "SELECT 1; SELECT 2", "sqlite3": "SELECT 1 UNION SELECT 2"}  # sqlite3 takes one statement at a time


@pytest.fixture(params=["apsw", "sqlite3"])
async def store(request: pytest.FixtureRequest, path: str) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, driver=request.param)
    await store.open()
    await store.migrate()
    yield store
    await store.close()


def leave_a_cursor_open(connection: Any) -> Any:
    return connection.cursor().execute(SEVERAL[type(connection).__module__])


def define_function(connection: Any, name: str, function: Callable[[], int]) -> None:
    if type(connection).__module__ == "apsw":
        connection.create_scalar_function(name, function, 0)
    else:
        connection.create_function(name, 0, function)


def close_it(connection: Any) -> None:
    connection.close()


def add_function(connection: Any, name: str, function: Callable[[], None]) -> None:
    """Let SQL call a function without arguments, through either library."""
    if isinstance(connection, sqlite3.Connection):
        connection.create_function(name, 0, function)
    else:
        connection.create_scalar_function(name, function, 0)


async def takes_its_turn(store: SqliteStore) -> None:
    """Another handler gets the lock, and lets go of it."""
    following = await asyncio.wait_for(store.begin_effects(), SOON)
    await following.undo()


async def test_g5_a_cursor_left_open_does_not_keep_the_job_from_its_end(store: SqliteStore) -> None:
    claim = await start(store)
    effects = await store.begin_effects()
    async with effects.block() as connection:
        cursor = leave_a_cursor_open(connection)
    answer = await effects.commit_with(transition.succeeded(claim, None, ()))
    assert (answer.applied, cursor is None) == (1, False)
    assert await state_of(store, claim.job_id) is JobState.SUCCEEDED
    await takes_its_turn(store)


async def test_g5_a_commit_that_is_called_off_midway_goes_on_to_its_end(store: SqliteStore) -> None:
    """A program that ends cancels all its tasks, also that of an attempt whose end is being written in a thread."""
    claim = await start(store)
    effects = await store.begin_effects()
    loop, midway, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def pause() -> int:
        loop.call_soon_threadsafe(midway.set)
        go_on.wait(SOON)
        return 0

    define_function(effects.connection, "pause", pause)
    effects.connection.execute(
        "CREATE TEMP TRIGGER pausing AFTER INSERT ON main.perdure_finished BEGIN SELECT pause(); END"
    )
    committing = asyncio.create_task(effects.commit_with(transition.succeeded(claim, None, ())))
    await midway.wait()
    committing.cancel()
    loop.call_later(0.05, go_on.set)
    assert (await committing).applied == 1
    assert await state_of(store, claim.job_id) is JobState.SUCCEEDED
    await takes_its_turn(store)


async def test_a_commit_waits_for_no_thread_of_asyncios(store: SqliteStore, no_free_thread: None) -> None:
    """It holds the lock: while handlers block all those threads, no other could write, and workers would be lost."""
    claim = await start(store)
    effects = await store.begin_effects()
    committing = asyncio.create_task(effects.commit_with(transition.succeeded(claim, None, ())))
    await asyncio.wait({committing}, timeout=SOON)
    assert committing.done()
    await takes_its_turn(store)


async def test_a_transaction_in_the_middle_of_a_statement_is_undone_though_a_cursor_was_left_open(
    store: SqliteStore,
) -> None:
    """What the libraries call an interrupt would last for as long as the cursor is open, and refuse the rollback."""
    effects = await store.begin_effects(blocking=True)
    left = leave_a_cursor_open(effects.connection)
    begun, stopped = threading.Event(), list[BaseException]()
    add_function(effects.connection, "note_begun", begun.set)

    def work() -> None:
        try:
            effects.connection.cursor().execute(ENDLESS).fetchall()
        except Exception as error:  # noqa: BLE001 - of either library
            stopped.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert begun.wait(SOON)  # from now on the statement runs
    await effects.undo(forced=True)
    await takes_its_turn(store)
    thread.join(SOON)
    assert "interrupt" in str(stopped[0]).lower()
    await effects.undo()
    del left


@pytest.mark.parametrize("leave", [leave_a_cursor_open, close_it])
@pytest.mark.parametrize("forced", [False, True])
async def test_undoing_raises_nothing_and_passes_the_turn(
    store: SqliteStore, leave: Callable[[Any], Any], forced: bool
) -> None:
    effects = await store.begin_effects()
    left = leave(effects.connection)
    await effects.undo(forced=forced)
    await takes_its_turn(store)
    await effects.undo()
    del left
