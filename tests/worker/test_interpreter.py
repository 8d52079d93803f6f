"""What only `perdure worker` changes about its own process; and that attempts leave nothing behind."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.builders.jobs import enqueue
from tests.support.waiting import until
from tests.support.working import at_work

from perdure import App
from perdure.storage.port import Store
from perdure.worker.interpreter import set_up_for_work


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    sys.setswitchinterval(interval)


async def greet(name: str) -> None:
    del name


def greet_in_thread(name: str) -> None:
    del name


def test_a_worker_of_its_own_searches_rarely_and_hands_the_interpreter_over_soon() -> None:
    app = App("sqlite:///unused.db")
    app.job(greet)
    set_up_for_work(app.kinds)
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == 20_000
    assert sys.getswitchinterval() == pytest.approx(0.0005)


def test_where_handlers_run_in_threads_these_are_not_hurried() -> None:
    app, before = App("sqlite:///unused.db"), sys.getswitchinterval()
    app.job(greet)
    app.job(greet_in_thread)
    set_up_for_work(app.kinds)
    assert sys.getswitchinterval() == before


async def test_a_worker_in_a_program_of_the_user_changes_nothing(tmp_path: Path) -> None:
    before = gc.get_threshold(), sys.getswitchinterval(), gc.get_freeze_count()
    async with App(f"sqlite:///{tmp_path}/jobs.db") as app:
        await app.worker()
    assert (gc.get_threshold(), sys.getswitchinterval(), gc.get_freeze_count()) == before


async def test_attempts_leave_nothing_that_only_a_search_would_find(real_time_store: Store) -> None:
    """What refers to itself in a circle is freed late, and by looking at everything that lives."""
    app, jobs = App("sqlite:///unused.db"), 300
    done = list[str]()

    @app.job(name="greet")
    async def note(name: str) -> None:
        done.append(name)

    for _ in range(jobs):
        await enqueue(real_time_store)
    async with at_work(real_time_store, app):
        gc.collect()
        gc.disable()
        try:
            await until(lambda: len(done) >= jobs)
            found = gc.collect()
        finally:
            gc.enable()
    assert found < jobs


async def test_calls_and_handles_of_many_jobs_are_not_searched(tmp_path: Path) -> None:
    async with App(f"sqlite:///{tmp_path}/jobs.db") as app:
        job = app.job(greet)
        calls = [job.call("ada"), job.call("eve")]
        handles = await app.enqueue_many(calls)
    assert not any(gc.is_tracked(each) for each in (*calls, *handles))
