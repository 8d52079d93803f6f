"""The writer: all waiting callers share one commit, and no caller gets another's error."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
import warnings
from typing import Any

import apsw
import pytest
from tests.support.builders.jobs import a_job, a_key, enqueue

from perdure.domain.jobs.job import Intake, OnConflict
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.lanes import lock_waits as patience
from perdure.engines.sqlite.lanes import wal as log
from perdure.engines.sqlite.lanes import writer
from perdure.engines.sqlite.store import SqliteStore
from perdure.errors import ArgumentError, DuplicateJobError, ForkError, StoreLocked, StoreUnavailable
from perdure.storage.records import JobFilter, Page


def commits(store: SqliteStore) -> int:
    lane = store._database._writer
    assert lane is not None
    return lane._commits


async def with_the_writer_busy(store: SqliteStore, path: str, *work: Any) -> list[Any]:
    """Begin all this work while another connection holds the lock, so that it piles up."""
    other = apsw.Connection(path)
    other.execute("BEGIN IMMEDIATE")
    first = asyncio.ensure_future(store._database.write(lambda _: None))
    tasks = [asyncio.ensure_future(one) for one in work]
    await asyncio.sleep(0)
    other.execute("COMMIT")
    other.close()
    await first
    return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)


async def test_all_who_wait_share_one_commit(sqlite: SqliteStore, path: str) -> None:
    before = commits(sqlite)
    receipts = await with_the_writer_busy(sqlite, path, *(sqlite.insert([a_job()]) for _ in range(64)))
    assert [receipt.intake for [receipt] in receipts] == [Intake.NEW] * 64
    assert commits(sqlite) - before <= 2
    assert len(await sqlite.jobs(JobFilter(), Page(limit=100))) == 64


async def test_the_same_id_from_two_callers_is_one_job(sqlite: SqliteStore, path: str) -> None:
    job = a_job()
    first, second = await with_the_writer_busy(sqlite, path, sqlite.insert([job]), sqlite.insert([job]))
    assert [first[0].intake, second[0].intake] == [Intake.NEW, Intake.EXISTING]


async def test_a_refused_operation_does_not_harm_its_neighbours(sqlite: SqliteStore, path: str) -> None:
    await enqueue(sqlite, unique=a_key())
    rejected = a_job(unique=a_key(on_conflict=OnConflict.REJECT))
    good, bad, also_good = await with_the_writer_busy(
        sqlite,
        path,
        sqlite.insert([a_job()]),
        sqlite.insert([a_job(), rejected]),
        sqlite.insert([a_job(unique=a_key("other"))]),
    )
    assert isinstance(bad, DuplicateJobError)
    assert [good[0].intake, also_good[0].intake] == [Intake.NEW, Intake.NEW]
    assert len(await sqlite.jobs(JobFilter(), Page())) == 3


async def test_a_spoilt_job_does_not_harm_those_it_was_collected_with(sqlite: SqliteStore, path: str) -> None:
    good, bad, also_good = await with_the_writer_busy(
        sqlite, path, sqlite.insert([a_job()]), sqlite.insert([a_job(kind="half \ud800")]), sqlite.insert([a_job()])
    )
    assert isinstance(bad, ArgumentError)
    assert [good[0].intake, also_good[0].intake] == [Intake.NEW, Intake.NEW]


async def test_work_whose_caller_gave_up_is_not_begun(sqlite: SqliteStore, path: str) -> None:
    begun: list[str] = []

    async def give_up() -> None:
        future = sqlite._database.write(lambda _: begun.append("given up"))
        future.cancel()

    async def go_on() -> None:
        await sqlite._database.write(lambda _: begun.append("done"))

    await with_the_writer_busy(sqlite, path, give_up(), go_on())
    assert begun == ["done"]


async def test_a_lock_held_too_long_is_reported_with_what_to_do(
    sqlite: SqliteStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every waiting caller gets an answer, and the store works again afterwards."""
    monkeypatch.setattr(patience, "LOCK_WAIT_LIMIT_SECONDS", 0.05)
    other = apsw.Connection(path)
    other.execute("BEGIN IMMEDIATE")
    work = [sqlite.insert([a_job()]), sqlite.insert([a_job()]), sqlite.insert([a_job() for _ in range(200)])]
    answers = await asyncio.wait_for(asyncio.gather(*work, return_exceptions=True), 30)
    other.close()
    assert [type(answer) for answer in answers] == [StoreLocked] * 3
    assert "waited 0.05 s" in str(answers[0])
    assert await sqlite.jobs(JobFilter(), Page()) == []
    await enqueue(sqlite)


async def test_reading_does_not_wait_for_writing(sqlite: SqliteStore, path: str) -> None:
    job_id = await enqueue(sqlite)
    other = apsw.Connection(path)
    other.execute("BEGIN IMMEDIATE")
    other.execute("DELETE FROM perdure_job")
    view = await asyncio.wait_for(sqlite.job(job_id), 5)
    other.close()
    assert view is not None


async def test_an_empty_look_writes_nothing(sqlite: SqliteStore, path: str) -> None:
    """An idle house takes no write lock: nothing due, no silent worker, nothing to migrate."""
    other = apsw.Connection(path)
    other.execute("BEGIN IMMEDIATE")
    try:
        assert (await asyncio.wait_for(sqlite.promote(100), 5)).total == 0
        assert await asyncio.wait_for(sqlite.orphans(100), 5) == []
    finally:
        other.close()


async def test_a_broken_connection_is_opened_again(sqlite: SqliteStore) -> None:
    """Its owner learns that it failed; the next one does not even notice."""

    def break_it(transaction: Transaction) -> None:
        getattr(transaction.run, "__self__").close()  # noqa: B009 - the connection behind the method
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the one from above
        await sqlite._database.write(break_it)
    await enqueue(sqlite)


async def test_what_was_committed_is_reported_even_if_a_neighbour_breaks_the_connection(
    sqlite: SqliteStore, path: str
) -> None:
    """A refused operation sends all into transactions of their own; there the second one cannot even be rolled back."""
    runs = 0

    async def break_it() -> None:
        def work(transaction: Transaction) -> None:
            nonlocal runs
            runs += 1
            if runs > 1:
                getattr(transaction.run, "__self__").close()  # noqa: B009 - the connection behind the method
            raise ValueError

        await sqlite._database.write(work)

    good, bad = await with_the_writer_busy(sqlite, path, sqlite.insert([a_job()]), break_it())
    assert good[0].intake is Intake.NEW
    assert isinstance(bad, ValueError)
    assert len(await sqlite.jobs(JobFilter(), Page())) == 1


async def test_trouble_with_the_log_does_not_end_the_writer(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> None:
        raise OSError("the log is gone")

    monkeypatch.setattr(log, "touch", fail)
    await enqueue(sqlite)
    await asyncio.wait_for(enqueue(sqlite), 10)


async def test_trouble_while_idle_does_not_end_the_writer(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Event()

    def fail(_: str) -> int:
        tried.set()
        raise OSError("the log is gone")

    monkeypatch.setattr(writer, "_IDLE_AFTER_SECONDS", 0.001)
    monkeypatch.setattr(log, "size", fail)
    await enqueue(sqlite)
    assert await asyncio.to_thread(tried.wait, 10)
    await asyncio.wait_for(enqueue(sqlite), 10)


@pytest.mark.parametrize("lane", ["read", "write"])
async def test_a_store_whose_closing_was_called_off_is_closed_by_the_next_who_asks(path: str, lane: str) -> None:
    """It is closed when its threads have let go of the file, not before: who forks then, or opens it anew, may."""
    store = SqliteStore(path)
    await store.open()
    go_on = threading.Event()
    working = getattr(store._database, lane)(lambda _: go_on.wait(30))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(store.close(), 0.1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(store.close(), 0.1)
    go_on.set()
    await store.close()
    assert await working


async def test_a_closed_store_says_so(path: str) -> None:
    store = SqliteStore(path)
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.insert([a_job()])
    await store.open()
    await store.close()
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="closed"):
            await store.insert([a_job()])


async def test_use_after_a_fork_is_refused(sqlite: SqliteStore) -> None:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking among threads is what this is about
        child = context.Process(target=_use, args=(sqlite, theirs))
        child.start()
    assert await asyncio.to_thread(ours.poll, 30)
    assert ours.recv() == "ForkError"
    await asyncio.to_thread(child.join, 30)
    await enqueue(sqlite)


def _use(store: SqliteStore, answer: Any) -> None:
    try:
        store._database.write(_never)
    except ForkError:
        answer.send("ForkError")
    else:
        answer.send("no error")
    os._exit(0)


def _never(_: Transaction) -> None:
    raise AssertionError
