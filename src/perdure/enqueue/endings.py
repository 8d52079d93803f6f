"""Waits for the ends of jobs, for all callers of one event loop together.

A bell wakes it: workers ring for jobs that they know to be awaited, and a commit to an SQLite file is a bell too. A
bell is a hint. What counts is one query for all awaited jobs. A new caller, a bell or a timer starts it. The timer
begins with 5 ms after a caller has come and doubles to 250 ms: it catches ends without a bell, such as those by an
operator's command.

Queries are bounded: never two within 5 ms, and never more than half of the time. The more of them find nothing while
bells keep ringing, the longer the gap, up to 50 ms. So one event loop makes at most 200 queries a second, and 4 while
nothing rings, for any number of callers.

The watch, with its connection, stays for ten seconds after the last caller has left. While the database is away callers
wait, for up to 30 seconds; then they get the error.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import FINAL, JobState
from perdure.errors import NotFoundError, StoreUnavailable
from perdure.policy.outage_backoff import OutageBackoff
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

_JOBS_PER_QUERY: Final = 1_000
_FIRST_GAP_SECONDS: Final = 0.005
_LONGEST_GAP_SECONDS: Final = 0.05
_EMPTY_QUERIES_PER_DOUBLING: Final = 20  # queries without an end after which the gap has doubled
_FIRST_RETRY_SECONDS: Final = 0.005
_LONGEST_RETRY_SECONDS: Final = 0.25
_RENEW_INTERVAL_SECONDS: Final = 10.0  # seconds after which awaited ids are sent to workers again
_DELETED_CHECK_SECONDS: Final = 1.0  # seconds after which deleted jobs are noticed
_IDLE_LISTEN_SECONDS: Final = 10.0
_OUTAGE_LIMIT_SECONDS: Final = 30.0
_RELISTEN_SECONDS: Final = 1.0


class JobEndings:
    """The awaited jobs of one event loop, and the task that watches them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._awaited: dict[JobId, set[asyncio.Future[JobView]]] = {}
        self._fresh: set[JobId] = set()  # awaited, and not queried yet
        self._stir = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._pause = _FIRST_RETRY_SECONDS
        self._fruitless = 0
        self._looked_everywhere = self._asked_for_all = self._loop.time()
        self.queries = 0

    async def final(self, job_id: JobId) -> JobView:
        """The job, as soon as it is final. NotFoundError if it is deleted, StoreUnavailable if the store closes."""
        waiter: asyncio.Future[JobView] = self._loop.create_future()
        self._awaited.setdefault(job_id, set()).add(waiter)
        self._fresh.add(job_id)
        self._pause, self._fruitless = _FIRST_RETRY_SECONDS, 0
        self._stir.set()
        if self._task is None:
            self._begin()
        try:
            return await waiter
        finally:
            waiters = self._awaited.get(job_id, set())
            waiters.discard(waiter)
            if not waiters:
                self._awaited.pop(job_id, None)

    async def close(self) -> None:
        """Stop watching; callers that still wait get StoreUnavailable."""
        self._fail(StoreUnavailable("the app was closed while the end of the job was awaited"))
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._watch(), name="perdure outcomes")
        self._task.add_done_callback(self._watched)

    def _watched(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            for waiter in self._waiters():
                waiter.cancel()
        elif (error := task.exception()) is not None:
            self._fail(error)
        elif self._awaited:  # a caller came while the watch ended
            self._begin()

    async def _watch(self) -> None:
        """Query until no caller has waited for a while."""
        backoff, away_since = OutageBackoff(), None
        try:
            while await self._is_wanted():
                self._stir.clear()
                began = self._loop.time()
                try:
                    await self._look(began)
                except StoreUnavailable:
                    away_since = began if away_since is None else away_since
                    if began - away_since > _OUTAGE_LIMIT_SECONDS:
                        raise
                    await asyncio.sleep(backoff.failed().total_seconds())
                    continue
                away_since = None
                backoff.succeeded()
                await self._rest(self._loop.time() - began)
        finally:
            listening, self._listening = self._listening, None
            if listening is not None:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)

    async def _is_wanted(self) -> bool:
        if not self._awaited:
            self._stir.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_IDLE_LISTEN_SECONDS):
                    await self._stir.wait()
        return bool(self._awaited)

    async def _look(self, now: float) -> None:
        """Return jobs that are final to their callers; check for deleted jobs at first, and every second."""
        if now - self._looked_everywhere >= _DELETED_CHECK_SECONDS:
            self._looked_everywhere = now
            self._fresh |= self._awaited.keys()
        fresh, self._fresh = self._fresh & self._awaited.keys(), set()
        try:
            found = await self._find(tuple(self._awaited.keys() - fresh), FINAL) + await self._find(tuple(fresh), None)
        except BaseException:
            self._fresh |= fresh
            raise
        self._fruitless = 0 if found else self._fruitless + 1
        self._ask_for_bell(now, fresh & self._awaited.keys())

    async def _find(self, wanted: tuple[JobId, ...], states: frozenset[JobState] | None) -> int:
        """Query jobs in these states and hand final ones out; returns how many. None: any state, and missing jobs."""
        found = 0
        for start in range(0, len(wanted), _JOBS_PER_QUERY):
            self.queries += 1
            ids = wanted[start : start + _JOBS_PER_QUERY]
            views = {
                view.id: view
                for view in await self._store.jobs(JobFilter(ids=ids, states=states), Page(_JOBS_PER_QUERY))
            }
            for job_id in ids:
                view = views.get(job_id)
                if view is not None and view.state in FINAL:
                    found += 1
                    self._settle(job_id, view)
                elif view is None and states is None:
                    self._settle(
                        job_id,
                        NotFoundError(
                            f"job {job_id} is not in the database: it was pruned or deleted, or is not committed yet"
                        ),
                    )
        return found

    def _ask_for_bell(self, now: float, fresh: set[JobId]) -> None:
        """Ask workers to ring for jobs that had not ended at the first query; ask for all again after a while."""
        if now - self._asked_for_all >= _RENEW_INTERVAL_SECONDS:
            self._asked_for_all = now
            fresh = set(self._awaited)
        if fresh:
            self._store.await_ends(fresh)
            if self._listening is None:
                self._listening = self._loop.create_task(self._listen(), name="perdure listens for ends")

    async def _rest(self, took: float) -> None:
        """Wait for a bell, a caller or the timer, and for the gap in any case."""
        gap = max(
            min(_FIRST_GAP_SECONDS * (1 + self._fruitless / _EMPTY_QUERIES_PER_DOUBLING), _LONGEST_GAP_SECONDS), took
        )
        await asyncio.sleep(gap)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(self._pause - gap, 0)):
                await self._stir.wait()
                return
        self._pause = min(2 * self._pause, _LONGEST_RETRY_SECONDS)

    async def _listen(self) -> None:
        while True:
            with suppress(StoreUnavailable, OSError):  # without the bell it is slow, no more
                async with self._store.ends() as bells:
                    self._store.await_ends(list(self._awaited))
                    self._stir.set()
                    async for _ in bells:
                        self._stir.set()
            await asyncio.sleep(_RELISTEN_SECONDS)

    def _settle(self, job_id: JobId, answer: JobView | Exception) -> None:
        for waiter in self._awaited.pop(job_id, set()):
            if waiter.done():
                continue
            if isinstance(answer, Exception):
                waiter.set_exception(answer)
            else:
                waiter.set_result(answer)

    def _fail(self, error: BaseException) -> None:
        for waiter in self._waiters():
            waiter.set_exception(error)

    def _waiters(self) -> list[asyncio.Future[JobView]]:
        return [waiter for waiters in self._awaited.values() for waiter in waiters if not waiter.done()]
