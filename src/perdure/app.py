"""The public face, and the only place that joins the parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload

from perdure.clock import Clock, SystemClock
from perdure.domain.duration import Duration, parse_duration
from perdure.domain.ids import JobId
from perdure.domain.job import (
    DEFAULT_CRASH_LIMIT,
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    JobView,
    NewJob,
    Receipt,
)
from perdure.engines.connect import DEFAULT_URL, store_for
from perdure.errors import ArgumentError, ConflictError, NotFoundError, SettingsError
from perdure.events import Emitter, Listener, log_event
from perdure.handle import Handle
from perdure.job import Call, Job
from perdure.kinds.declared import note_declared
from perdure.kinds.kind import Kind, Mode, Registry, is_async
from perdure.kinds.signature import Signature
from perdure.lifecycle.at_once import at_once
from perdure.lifecycle.portal import Portal
from perdure.lifecycle.stores import Doorway, Stores
from perdure.options import checked_name, checked_names, checked_priority, refuse_misspelt
from perdure.policy.retry import DEFAULT_RETRY, RetrySource
from perdure.policy.triage import Triage
from perdure.policy.uniqueness import Unique
from perdure.storage.port import BorrowingStore, Store
from perdure.storage.supply import Supply
from perdure.worker.context import Context
from perdure.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from perdure.operate.desk import Desk
    from perdure.worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
_URL_VARIABLE = "PERDURE_URL"
_PAYLOAD_LIMIT = 64 * 1024


class JobDecorator(Protocol):
    """What `@app.job(...)` gives: it turns a handler into a Job with the handler's own parameters and result."""

    @overload
    def __call__(self, handler: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]]) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, Coroutine[Any, Any, R]]) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[Context, P], R]) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, R]) -> Job[P, R]: ...


class App:
    """A set of jobs and the database they live in.

    `url` is `sqlite:///file.db` or `postgresql://…`; without one PERDURE_URL is used, or `perdure.db` in the working
    directory. `queues` names the queues that may be used; without it any name will do. `migrate` brings the schema up
    to date when the database is first opened. `enqueue_patience` is how long an enqueue waits for a database that
    cannot be reached. `worker` are the settings of this app's workers, where nothing else is said. `clock` replaces
    the database's clock: for tests.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        queues: Iterable[str] | None = None,
        retry: RetrySource = DEFAULT_RETRY,
        payload_limit: int = _PAYLOAD_LIMIT,
        migrate: bool = True,
        enqueue_patience: Duration = "2s",
        worker: WorkerSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.url = url or os.environ.get(_URL_VARIABLE) or DEFAULT_URL
        self.queues = None if queues is None else checked_names("queues", queues)
        self.payload_limit = payload_limit
        self.worker_settings = worker or WorkerSettings()
        self.kinds: Registry = {}
        self.events = Emitter()
        self._retry = retry
        self._clock = clock
        self._stores = Stores(
            self._make_store,
            migrate=migrate,
            patience=parse_duration("enqueue_patience", enqueue_patience, error=SettingsError),
        )
        self._portal = Portal()
        self._is_diverted = False
        self._unopened: BorrowingStore = self._make_store()  # a bad URL is refused here, not at the first job

    @overload
    def job(self, handler: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def job(self, handler: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def job(self, handler: Callable[Concatenate[Context, P], R], /) -> Job[P, R]: ...
    @overload
    def job(self, handler: Callable[P, R], /) -> Job[P, R]: ...
    @overload
    def job(
        self,
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = DEFAULT_PRIORITY,
        retry: RetrySource | None = None,
        triage: Triage | None = None,
        unique: Unique | None = None,
        timeout: Duration | None = None,
        isolate: bool = False,
        memory: int | None = None,
        crashes: int = DEFAULT_CRASH_LIMIT,
    ) -> JobDecorator: ...
    def job(self, *handler: Any, **options: Any) -> Any:
        """Declare a job.

        `name` is what stored jobs are called (default: the function's). `crashes` is how many times the process may
        die under the job before it is dead. `isolate` runs each attempt in a process of its own; only there are
        `timeout` and `memory` (in bytes) enforced by killing.
        """

        def declare(function: Any) -> Job[Any, Any]:
            refuse_misspelt(function, options, self._declare)
            return self._declare(function, **options)

        return declare(*handler) if handler else declare

    def _declare(
        self,
        handler: Callable[..., Any],
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = DEFAULT_PRIORITY,
        retry: RetrySource | None = None,
        triage: Triage | None = None,
        unique: Unique | None = None,
        timeout: Duration | None = None,
        isolate: bool = False,
        memory: int | None = None,
        crashes: int = DEFAULT_CRASH_LIMIT,
    ) -> Job[Any, Any]:
        name = checked_name("name", name or handler.__name__)
        if name in self.kinds:
            raise SettingsError(f"job {name}", "is declared twice: give one of them another name")
        if memory is not None and not isolate:
            raise SettingsError(f"memory of job {name}", "can only be limited with isolate=True")
        if crashes < 1:
            raise SettingsError(f"crashes of job {name}", f"must be at least 1, got {crashes}")
        signature = Signature(handler, Context)
        if unique is not None:
            unique.check(signature.names)
        self.check_queue(queue)
        limit = None if timeout is None else parse_duration(f"timeout of job {name}", timeout, error=SettingsError)
        if limit is not None and limit <= timedelta(0):
            raise SettingsError(f"timeout of job {name}", f"must be longer than 0, got {timeout!r}")
        kind = Kind(
            name=name,
            handler=handler,
            signature=signature,
            mode=Mode.PROCESS if isolate else Mode.TASK if is_async(handler) else Mode.THREAD,
            retry=retry or self._retry,
            triage=triage,
            queue=checked_name("queue", queue),
            priority=checked_priority(priority),
            unique=unique,
            timeout=limit,
            memory=memory,
            crash_limit=crashes,
        )
        self.kinds[name] = kind
        note_declared(kind)
        return Job(self, kind)

    def job_named(self, name: str) -> Job[Any, Any]:
        """The declared job of this name, to be enqueued without its types."""
        kind = self.kinds.get(name)
        if kind is None:
            raise NotFoundError(f"no job is called {name!r}; declared are: {', '.join(sorted(self.kinds)) or 'none'}")
        return Job(self, kind)

    async def enqueue_many(self, calls: Iterable[Call[R]], *, connection: Any = None) -> list[Handle[R]]:
        """Store many jobs in one transaction; handles in the same order say which of them are new.

        `connection` makes them part of the caller's own transaction, as in `Job.using`.
        """
        batch: list[Call[R]] = []
        receipts = await self._put_all(Supply(_jobs_of(calls, batch)), connection)
        return [Handle(self, call.kind, receipt) for call, receipt in zip(batch, receipts, strict=True)]

    def enqueue_many_sync(self, calls: Iterable[Call[R]], *, connection: Any = None) -> list[Handle[R]]:
        """The same, for callers without an event loop."""
        if connection is None:
            return self._portal.call(self.enqueue_many(calls))
        batch = list(calls)
        receipts = self._put_here([call.job for call in batch], connection)
        return [Handle(self, call.kind, receipt) for call, receipt in zip(batch, receipts, strict=True)]

    async def store(self) -> Store:
        """The open store of the running event loop: the port itself, for tools and tests."""
        return (await self._stores.here()).store

    async def desk(self, actor: str) -> Desk:
        """The operator's desk: views, and commands that the audit trail records under the name of `actor`."""
        from perdure.operate.desk import Desk  # noqa: PLC0415 - who only enqueues needs none

        return Desk(await self.store(), actor)

    async def worker(self, settings: WorkerSettings | None = None) -> Worker:
        """A worker on the running loop, not started: `await worker.run()`, and `worker.stop()` from elsewhere.

        Without `settings` it has those of the app.
        """
        from perdure.worker.worker import Worker  # noqa: PLC0415 - who only enqueues needs none

        chosen = settings or self.worker_settings
        for queue in chosen.queues:
            self.check_queue(queue.name)
        return Worker(await self.store(), self.kinds, chosen, self.events, self._clock or SystemClock())

    async def migrate(self) -> list[str]:
        """Create the tables, or bring them up to date, whatever `migrate=` said; the migrations that were applied."""
        store = self._make_store()
        await store.open()
        try:
            return await store.migrate()
        finally:
            await store.close()

    def migrate_sync(self) -> list[str]:
        """The same, for callers without an event loop."""
        return self.run_sync(self.migrate())

    def keep_schema(self) -> None:
        """From now on only check the schema when the database is opened, whatever was said before."""
        self._stores.migrate = False

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Be told of every event; returns the way to unsubscribe."""
        return self.events.subscribe(listener)

    def log_events(self) -> Callable[[], None]:
        """Write events to the log."""
        return self.subscribe(log_event)

    async def close(self) -> None:
        """Close what the running loop has opened."""
        await self._stores.close()

    def close_sync(self) -> None:
        """Close what sync calls have opened."""
        self._portal.call(self._stores.close())
        self._portal.close()

    async def __aenter__(self) -> Self:
        await self._stores.here()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @contextmanager
    def diverted(
        self, *, url: str, clock: Clock, stores: Stores, unopened: BorrowingStore, portal: Portal
    ) -> Iterator[None]:
        """Keep jobs elsewhere until the block ends: for tests. What was open before stays open, and is left alone."""
        if self._is_diverted:
            raise ConflictError("this app is in a sandbox already: leave that one first, or give each test its own App")
        home = self.url, self._clock, self._stores, self._unopened, self._portal
        self._is_diverted = True
        self.url, self._clock, self._stores, self._unopened, self._portal = url, clock, stores, unopened, portal
        try:
            yield
        finally:
            self.url, self._clock, self._stores, self._unopened, self._portal = home
            self._is_diverted = False

    def check_queue(self, queue: str) -> None:
        """Refuse a queue that the app does not know."""
        if self.queues is not None and queue not in self.queues:
            raise ArgumentError("queue", f"{queue!r} is not one of this app's queues: {', '.join(sorted(self.queues))}")

    async def put(self, job: NewJob, connection: Any) -> Receipt:
        """Store one job, through the caller's own connection if there is one."""
        if connection is not None:
            return (await self._put_all([job], connection))[0]
        doorway = await self._stores.here()
        return await doorway.gatherer.put(job)

    def put_sync(self, job: NewJob, connection: Any) -> Receipt:
        """The same, for callers without an event loop."""
        if connection is not None:
            return self._put_here([job], connection)[0]
        return self._portal.call(self.put(job, None))

    async def view(self, job_id: JobId) -> JobView | None:
        """One job as it stands."""
        return await (await self.store()).job(job_id)

    def run_sync(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run one of this app's coroutines to its end, for callers without an event loop."""
        return self._portal.call(coroutine)

    async def _put_all(self, jobs: Sequence[NewJob], connection: Any) -> list[Receipt]:
        if connection is not None:
            return await self._unopened.through(connection).insert(list(jobs))
        doorway: Doorway = await self._stores.here()
        return await doorway.gatherer.put_all(jobs)

    def _put_here(self, jobs: list[NewJob], connection: Any) -> list[Receipt]:
        """Store jobs through a blocking connection, in the thread that it belongs to."""
        return at_once(self._unopened.through(connection, blocking=True).insert(jobs))

    def _make_store(self) -> Store:
        return store_for(self.url, self._clock)


def _jobs_of(calls: Iterable[Call[R]], batch: list[Call[R]]) -> Iterator[NewJob]:
    """The jobs of calls, one by one; the calls themselves are kept in `batch`."""
    for call in calls:
        batch.append(call)
        yield call.job
