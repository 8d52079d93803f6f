"""An app with its jobs, on a temporary database and a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self, TypeVar, cast

from perdure.app.app import App
from perdure.app.connect import store_for
from perdure.clock import ManualClock, SystemClock
from perdure.domain.alerts.alert import Notice
from perdure.domain.duration import Duration, parse_duration
from perdure.domain.jobs.ids import JobId, as_job_id
from perdure.domain.jobs.job import Attempt, Intake, JobView, NewJob, Receipt
from perdure.domain.jobs.states import FINAL, JobState
from perdure.enqueue.handle import Handle
from perdure.enqueue.job import Prepared
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.kinds.options import checked_instant
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page
from perdure.testing.alerts import look_for_alerts
from perdure.testing.calendar import NotedFires
from perdure.testing.caller import LendingPortal
from perdure.testing.drained import Drained
from perdure.testing.drainer import Drainer, SandboxOptions, refuse_too_deep
from perdure.testing.enqueued import Enqueued, read
from perdure.testing.expectation import Expectation
from perdure.testing.intake import SandboxBorrowing, SandboxGroupCommit, SandboxStores
from perdure.testing.keeper import Keeper
from perdure.worker.settings import WorkerSettings

R = TypeVar("R")
ATTEMPTS_LIMIT: Final = 1_000


class Sandbox:
    """Your own app on an empty SQLite file until the block ends: `async with Sandbox(app) as box:`, or `with`.

    Jobs that your code enqueues are stored, and run only in `drain`. `inline` runs them inside `enqueue` instead, with
    all other ready jobs; `raising` says whether the error of such a job is raised there, or only recorded.

    The clock stands still at `start` (default: now) until you `travel`. A `drain` fires due schedules and calls
    functions of `@app.every` (`periodic=False`: it does not). Jitter comes from `seed`. Handlers with `isolate=True`
    run in this process, unless `isolate` is given here too. `url` stores the jobs in a database of your choice;
    `settings` are those of the worker that runs them (default: the app's).
    """

    def __init__(
        self,
        app: App,
        *,
        inline: bool = False,
        raising: bool = True,
        start: datetime | None = None,
        seed: int = 0,
        isolate: bool = False,
        periodic: bool = True,
        url: str | None = None,
        settings: WorkerSettings | None = None,
    ) -> None:
        self.app = app
        self.clock = ManualClock(SystemClock().now() if start is None else checked_instant("start", start))
        self._inline, self._raising = inline, raising
        self._url = url
        self._options = SandboxOptions(isolate=isolate, seed=seed, periodic=periodic)
        self._settings = settings or app.worker_settings
        self._portal = LendingPortal()
        self._stack = ExitStack()
        self._entered: tuple[Store, Drainer] | None = None
        self._enqueued: dict[JobId, Enqueued] = {}

    def __enter__(self) -> Self:
        self._enqueued = {}
        with ExitStack() as stack:
            url = self._url
            if url is None:
                folder = stack.enter_context(TemporaryDirectory(prefix="perdure-", ignore_cleanup_errors=True))
                url = f"sqlite:///{Path(folder) / 'sandbox.db'}"
            keeper = Keeper(store_for(url, self.clock))
            store = cast("Store", NotedFires(keeper.open(), self._note))
            stack.callback(keeper.close)
            group_commit = SandboxGroupCommit(store, refuse_too_deep, self._stored)
            diversion = self.app.diverted(
                url=url,
                clock=self.clock,
                stores=SandboxStores(store, group_commit),
                unopened=SandboxBorrowing(store, group_commit, self._portal, self._note, strict=self._url is not None),
                portal=self._portal,
            )
            stack.enter_context(diversion)
            drainer = Drainer(
                self.app,
                store,
                self.clock,
                self._settings,
                self._options,
            )
            keeper.call(drainer.calendar.declare())
            keeper.call(store.declare_kinds(tuple(self.app.kind_records.values())))
            self._entered = store, drainer
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._entered = None
        self._stack.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    @property
    def now(self) -> datetime:
        """The time in the sandbox."""
        return self.clock.now()

    def travel(self, by: Duration) -> datetime:
        """Move the clock forward; the next `drain` runs jobs that fell due meanwhile, at the new time."""
        return self.clock.move(parse_duration("by", by))

    def travel_to(self, when: datetime) -> datetime:
        """Move the clock forward to an instant; a past one is refused."""
        if checked_instant("when", when) < self.now:
            raise ArgumentError("when", f"lies in the past: it is {self.now} in the sandbox, got {when}")
        return self.clock.move(when - self.now)

    @contextmanager
    def inline(self, *, raising: bool = True) -> Iterator[None]:
        """Run jobs inside `enqueue` until the block ends."""
        before = self._inline, self._raising
        self._inline, self._raising = True, raising
        try:
            yield
        finally:
            self._inline, self._raising = before

    async def drain(
        self,
        queue: str | None = None,
        *,
        travel: bool | Duration = False,
        until: Callable[[], bool] | None = None,
        concurrency: int = 1,
        limit: int = ATTEMPTS_LIMIT,
        raising: bool = False,
    ) -> Drained:
        """Run due jobs, in one queue or in all, and the jobs that they enqueue, until none is left.

        It runs one job at a time, by priority and age, unless `concurrency` is more. With `travel` the clock jumps to
        the next due time, again and again, until all jobs are final; a span such as "1h" limits how far. Schedules and
        periodic functions fire on the way at their times. Without a span, only those due at the beginning fire, because
        they never end.
        `until` ends the drain early, once it holds after a job. `limit` bounds the attempts, and the jumps. `raising`
        raises the error of the first failed job, or of a periodic function.
        """
        if queue is not None:
            self.app.check_queue(queue)
        return await self._drainer.drain(
            queue,
            travel=travel if isinstance(travel, bool) else parse_duration("travel", travel),
            until=until or (lambda: False),
            concurrency=concurrency,
            limit=limit,
            raising=raising,
        )

    def drain_sync(
        self,
        queue: str | None = None,
        *,
        travel: bool | Duration = False,
        until: Callable[[], bool] | None = None,
        limit: int = ATTEMPTS_LIMIT,
        raising: bool = False,
    ) -> Drained:
        """Blocking version of `drain`; sync handlers run in the calling thread."""
        return self._portal.call(self.drain(queue, travel=travel, until=until, limit=limit, raising=raising))

    async def result(self, handle: Handle[R]) -> R:
        """The result of a job; a job that has not ended is run first by a `drain`.

        Raises JobNotSuccessful if it died or was cancelled.
        """
        view = await handle.view()
        if view.state not in FINAL:
            await self.drain()
            view = await handle.view()
        if view.state not in FINAL:
            due = f", due at {view.due_at}" if view.due_at else ""
            raise AssertionError(
                f"job {view.kind} {view.id} has no result, it is {view.state}: {view.last_error or view.reason}{due}; "
                f"it is {self.now} in the sandbox: travel there, or drain(travel=True)"
            )
        return await handle.result()

    def result_sync(self, handle: Handle[R]) -> R:
        """Blocking version of `result`."""
        return self._portal.call(self.result(handle))

    async def job(self, job: Handle[Any] | str) -> JobView:
        """One job in its current state."""
        job_id = _id_of(job)
        view = await self._store.job(job_id)
        if view is None:
            raise NotFoundError(f"there is no job {job_id} in the sandbox")
        return view

    def job_sync(self, job: Handle[Any] | str) -> JobView:
        """Blocking version of `job`."""
        return self._portal.call(self.job(job))

    async def attempts(self, job: Handle[Any] | str) -> list[Attempt]:
        """The attempts of a job that did not succeed, oldest first."""
        return await self._store.attempts(_id_of(job))

    def attempts_sync(self, job: Handle[Any] | str) -> list[Attempt]:
        """Blocking version of `attempts`."""
        return self._portal.call(self.attempts(job))

    async def dead(self) -> list[JobView]:
        """The dead letters, in the order of enqueue; at most a thousand."""
        dead = JobFilter(states=frozenset({JobState.DEAD}))
        return (await self._store.jobs(dead, Page(1_000)))[::-1]

    async def look_for_alerts(self) -> tuple[Notice, ...]:
        """Evaluate the app's alert rules once, as a worker does every second; returns the notices to be sent.

        The first evaluation learns what has failed before. A `drain` delivers the notices.
        """
        return await look_for_alerts(self.app, self._store, self.clock)

    def dead_sync(self) -> list[JobView]:
        """Blocking version of `dead`."""
        return self._portal.call(self.dead())

    def enqueued(self, job: Prepared[..., Any] | str | None = None, /, *args: Any, **kwargs: Any) -> list[Enqueued]:
        """All jobs enqueued since the sandbox began, in order, in any state; duplicates are left out.

        Filter by a job (or its name), by all or some arguments, and by options: `send.using(queue="mail")`.
        """
        everything = list(self._enqueued.values())
        if job is None:
            return everything
        return self._expectation(job, args, kwargs).matches(everything)

    def assert_enqueued(self, job: Prepared[..., Any] | str, /, *args: Any, **kwargs: Any) -> list[Enqueued]:
        """Assert that at least one such job was enqueued; returns them."""
        return self._assert(lambda found: found > 0, "have been enqueued", self._expectation(job, args, kwargs))

    def assert_enqueued_once(self, job: Prepared[..., Any] | str, /, *args: Any, **kwargs: Any) -> Enqueued:
        """Assert that exactly one such job was enqueued; returns it."""
        return self._assert(lambda found: found == 1, "have been enqueued once", self._expectation(job, args, kwargs))[
            0
        ]

    def assert_enqueued_times(
        self, times: int, job: Prepared[..., Any] | str, /, *args: Any, **kwargs: Any
    ) -> list[Enqueued]:
        """Assert that exactly this many such jobs were enqueued; returns them."""
        return self._assert(
            lambda found: found == times, f"have been enqueued {times} times", self._expectation(job, args, kwargs)
        )

    def assert_not_enqueued(self, job: Prepared[..., Any] | str, /, *args: Any, **kwargs: Any) -> None:
        """Assert that no such job was enqueued."""
        self._assert(lambda found: found == 0, "not have been enqueued", self._expectation(job, args, kwargs))

    def _assert(self, is_right: Callable[[int], bool], should: str, expected: Expectation) -> list[Enqueued]:
        everything = list(self._enqueued.values())
        found = expected.matches(everything)
        if not is_right(len(found)):
            raise AssertionError(expected.report(should, len(found), everything))
        return found

    def _expectation(self, job: Prepared[..., Any] | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Expectation:
        return Expectation(self.app.job_named(job) if isinstance(job, str) else job, args, kwargs)

    def _note(self, jobs: Sequence[NewJob], receipts: Sequence[Receipt]) -> list[JobId]:
        """Record enqueued jobs; returns those that are not duplicates."""
        fresh: list[JobId] = []
        for job, receipt in zip(jobs, receipts, strict=True):
            if receipt.intake is not Intake.EXISTING:
                fresh.append(receipt.job_id)
                self._enqueued.pop(receipt.job_id, None)
                kind = self.app.kinds.get(job.kind)
                self._enqueued[receipt.job_id] = read(job, receipt.job_id, kind, self.now)
        return fresh

    async def _stored(self, jobs: Sequence[NewJob], receipts: Sequence[Receipt]) -> None:
        fresh = self._note(jobs, receipts)
        if self._inline and fresh:
            await self._drainer.run_inline(fresh, limit=ATTEMPTS_LIMIT, raising=self._raising)

    @property
    def _drainer(self) -> Drainer:
        return self._open[1]

    @property
    def _store(self) -> Store:
        return self._open[0]

    @property
    def _open(self) -> tuple[Store, Drainer]:
        if self._entered is None:
            raise ConflictError("the sandbox is not open: use it inside its `with` block")
        return self._entered


def _id_of(job: Handle[Any] | str) -> JobId:
    return job.id if isinstance(job, Handle) else as_job_id(job)
