"""Waiting for the ends of jobs: told by a bell, one query for all, bounded, and it outlasts a short outage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.waiting import until

from perdure.domain.jobs.ids import JobId, new_job_id
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.enqueue import endings as module
from perdure.enqueue.endings import JobEndings
from perdure.errors import NotFoundError, StoreRefused, StoreUnavailable
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

HOUR = 3_600.0


def a_view(job_id: JobId, state: JobState) -> JobView:
    return cast("JobView", SimpleNamespace(id=job_id, state=state))


class Jobs:
    """A store with jobs in the hands of the test, and a bell."""

    def __init__(self, *job_ids: JobId) -> None:
        self.states = dict.fromkeys(job_ids, JobState.RUNNING)
        self.asked: list[int] = []
        self.awaited: set[JobId] = set()
        self.bell = asyncio.Event()
        self.trouble: Exception | None = None
        self.listeners = 0

    async def jobs(self, which: JobFilter, _: Page) -> list[JobView]:
        ids = which.ids or ()
        self.asked.append(len(ids))
        if self.trouble is not None:
            raise self.trouble
        found = [a_view(job_id, self.states[job_id]) for job_id in ids if job_id in self.states]
        return [view for view in found if which.states is None or view.state in which.states]

    def await_ends(self, job_ids: Collection[JobId]) -> None:
        self.awaited.update(job_ids)

    @asynccontextmanager
    async def ends(self) -> AsyncIterator[AsyncIterator[None]]:
        self.listeners += 1
        try:
            yield self._bells()
        finally:
            self.listeners -= 1

    async def _bells(self) -> AsyncIterator[None]:
        while True:
            await self.bell.wait()
            self.bell.clear()
            yield None

    def end(self, job_id: JobId) -> None:
        self.states[job_id] = JobState.SUCCEEDED

    @property
    def store(self) -> Store:
        return cast("Store", self)


@pytest.fixture
def only_by_bell(monkeypatch: pytest.MonkeyPatch) -> None:
    """No timer helps."""
    monkeypatch.setattr(module, "_FIRST_RETRY_SECONDS", HOUR)
    monkeypatch.setattr(module, "_LONGEST_RETRY_SECONDS", HOUR)


@asynccontextmanager
async def watching(jobs: Jobs) -> AsyncIterator[JobEndings]:
    outcomes = JobEndings(jobs.store)
    try:
        yield outcomes
    finally:
        await outcomes.close()
    assert jobs.listeners == 0


async def quiet(jobs: Jobs, outcomes: JobEndings) -> None:
    """Wait until the watch rests."""
    await until(lambda: jobs.listeners and not outcomes._fresh and not outcomes._stir.is_set())
    await asyncio.sleep(0.02)  # past the gap


@pytest.mark.usefixtures("only_by_bell")
async def test_the_bell_wakes_the_caller_and_no_timer_is_needed() -> None:
    job_id = new_job_id()
    jobs = Jobs(job_id)
    async with watching(jobs) as outcomes:
        waiting = asyncio.create_task(outcomes.final(job_id))
        await quiet(jobs, outcomes)
        assert (jobs.awaited, waiting.done()) == ({job_id}, False)
        jobs.end(job_id)
        jobs.bell.set()
        assert (await asyncio.wait_for(waiting, 10)).state is JobState.SUCCEEDED


async def test_without_a_bell_the_timer_finds_it() -> None:
    job_id = new_job_id()
    jobs = Jobs(job_id)
    async with watching(jobs) as outcomes:
        waiting = asyncio.create_task(outcomes.final(job_id))
        await quiet(jobs, outcomes)
        jobs.end(job_id)
        await asyncio.wait_for(waiting, 10)


async def test_a_job_that_has_ended_takes_one_query_and_no_listener() -> None:
    job_id = new_job_id()
    jobs = Jobs(job_id)
    jobs.end(job_id)
    async with watching(jobs) as outcomes:
        await asyncio.wait_for(outcomes.final(job_id), 10)
        assert (jobs.asked, jobs.listeners, jobs.awaited) == ([1], 0, set())


@pytest.mark.usefixtures("only_by_bell")
async def test_all_callers_share_one_query() -> None:
    ids = [new_job_id() for _ in range(200)]
    jobs = Jobs(*ids)
    async with watching(jobs) as outcomes:
        waiting = [asyncio.create_task(outcomes.final(job_id)) for job_id in (*ids, ids[0])]
        await quiet(jobs, outcomes)
        assert set(jobs.asked) == {200}
        before = len(jobs.asked)
        for job_id in ids:
            jobs.end(job_id)
        jobs.bell.set()
        await asyncio.wait_for(asyncio.gather(*waiting), 10)
        assert len(jobs.asked) == before + 1


async def test_bells_that_never_stop_do_not_make_queries_without_end() -> None:
    """Never two within 5 ms, and fewer the longer none of them finds anything."""
    job_id = new_job_id()
    jobs = Jobs(job_id)
    async with watching(jobs) as outcomes:
        waiting = asyncio.create_task(outcomes.final(job_id))
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while loop.time() < begun + 0.5:
            jobs.bell.set()
            await asyncio.sleep(0)
        assert len(jobs.asked) <= 0.5 / 0.005 / 1.5
        jobs.end(job_id)
        await asyncio.wait_for(waiting, 10)


async def test_a_short_outage_is_waited_out() -> None:
    job_id = new_job_id()
    jobs = Jobs(job_id)
    async with watching(jobs) as outcomes:
        waiting = asyncio.create_task(outcomes.final(job_id))
        await quiet(jobs, outcomes)
        jobs.trouble = StoreUnavailable("restarting")
        seen = len(jobs.asked)
        await until(lambda: len(jobs.asked) > seen)
        jobs.end(job_id)
        jobs.trouble = None
        assert (await asyncio.wait_for(waiting, 10)).state is JobState.SUCCEEDED


@pytest.mark.parametrize(
    ("trouble", "away_for"), [(StoreUnavailable("gone"), 0.0), (StoreRefused("no rights"), HOUR)], ids=str
)
async def test_a_long_outage_and_a_refusal_are_reported_and_the_next_call_tries_again(
    trouble: Exception, away_for: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_OUTAGE_LIMIT_SECONDS", away_for)
    job_id = new_job_id()
    jobs = Jobs(job_id)
    jobs.trouble = trouble
    async with watching(jobs) as outcomes:
        with pytest.raises(type(trouble), match=str(trouble)):
            await asyncio.wait_for(outcomes.final(job_id), 10)
        jobs.trouble = None
        jobs.end(job_id)
        await asyncio.wait_for(outcomes.final(job_id), 10)


async def test_a_job_that_is_deleted_or_was_never_there_is_reported() -> None:
    job_id = new_job_id()
    jobs = Jobs(job_id)
    async with watching(jobs) as outcomes:
        with pytest.raises(NotFoundError, match=r"not in the database: it was pruned or deleted"):
            await asyncio.wait_for(outcomes.final(new_job_id()), 10)
        waiting = asyncio.create_task(outcomes.final(job_id))
        await quiet(jobs, outcomes)
        del jobs.states[job_id]
        with pytest.raises(NotFoundError):
            await asyncio.wait_for(waiting, 10)


async def test_a_caller_that_gives_up_leaves_the_others_waiting() -> None:
    job_id = new_job_id()
    jobs = Jobs(job_id)
    async with watching(jobs) as outcomes:
        leaving, staying = (asyncio.create_task(outcomes.final(job_id)) for _ in range(2))
        await quiet(jobs, outcomes)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        jobs.end(job_id)
        assert (await asyncio.wait_for(staying, 10)).id == job_id
        assert outcomes._awaited == {}


async def test_callers_do_not_hang_when_the_store_closes() -> None:
    job_id = new_job_id()
    jobs = Jobs(job_id)
    async with watching(jobs) as outcomes:
        waiting = asyncio.create_task(outcomes.final(job_id))
        await quiet(jobs, outcomes)
    with pytest.raises(StoreUnavailable, match="closed while"):
        await asyncio.wait_for(waiting, 10)


async def test_the_watch_ends_some_time_after_the_last_caller_and_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IDLE_LISTEN_SECONDS", 0.0)
    jobs = Jobs(first := new_job_id(), second := new_job_id())
    async with watching(jobs) as outcomes:
        for job_id in (first, second):
            waiting: asyncio.Task[Any] = asyncio.create_task(outcomes.final(job_id))
            await quiet(jobs, outcomes)
            jobs.end(job_id)
            await asyncio.wait_for(waiting, 10)
            await until(lambda: outcomes._task is None)
            assert jobs.listeners == 0


async def test_workers_are_reported_again_what_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """They forget, and new ones come."""
    monkeypatch.setattr(module, "_RENEW_INTERVAL_SECONDS", 0.0)
    job_id = new_job_id()
    jobs = Jobs(job_id)
    async with watching(jobs) as outcomes:
        waiting = asyncio.create_task(outcomes.final(job_id))
        await quiet(jobs, outcomes)
        jobs.awaited.clear()
        await until(lambda: jobs.awaited == {job_id})
        jobs.end(job_id)
        await asyncio.wait_for(waiting, 10)
