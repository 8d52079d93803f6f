"""The public face, and the only place that joins the parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from perdure.app.connect import DEFAULT_URL, LISTEN_URL_VARIABLE, listen_url_for, store_for
from perdure.app.declarations import Declarations
from perdure.app.schedules import checked_schedule, one_expression
from perdure.clock import Clock, SystemClock
from perdure.domain.duration import Duration, parse_duration
from perdure.domain.flows.flow import Emission, Progress
from perdure.domain.jobs.ids import JobId, as_job_id
from perdure.domain.jobs.job import (
    DEFAULT_QUEUE,
    Intake,
    JobView,
    NewJob,
    Receipt,
)
from perdure.domain.schedule import Missed, Overlap, ScheduleView
from perdure.enqueue.batches import batch_job
from perdure.enqueue.calls import Call, check_child, check_own
from perdure.enqueue.handle import Handle
from perdure.enqueue.stores import Doorway, Stores
from perdure.errors import ArgumentError, ConflictError, SettingsError
from perdure.events import Emitter, Event, Listener
from perdure.events.log import AttemptLog, EventLog
from perdure.flows.events import event_payload
from perdure.flows.families.batches import BatchOutcome
from perdure.flows.throttle import throttle
from perdure.kinds.including import checked_modules, import_modules
from perdure.kinds.kind import Kind
from perdure.kinds.options import checked_count
from perdure.lifecycle.bridges.portal import Portal
from perdure.lifecycle.bridges.without_loop import at_once
from perdure.policy.retries.retry import DEFAULT_RETRY, RetrySource
from perdure.storage.intake import BorrowingStore
from perdure.storage.port import Store
from perdure.storage.supply import Supply
from perdure.worker.execution.built_in import BATCH_KIND
from perdure.worker.settings import WorkerSettings, serving

if TYPE_CHECKING:
    from perdure.operate.desk import Desk
    from perdure.operate.sync_desk import SyncDesk
    from perdure.worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
Task = TypeVar("Task", bound=Callable[[], Any])
_URL_VARIABLE = "PERDURE_URL"
_PAYLOAD_LIMIT = 64 * 1024


class App(Declarations):
    """A set of jobs and the database they live in.

    `url` is `sqlite:///file.db` or `postgresql://…`; without one PERDURE_URL is used, or `perdure.db` in the working
    directory. `listen_url` leads to the same PostgreSQL database without a pooler, for notifications; without one
    PERDURE_LISTEN_URL is used, if it is set. `queues` names the queues that may be used; without it any name will do.
    `include` names modules that declare jobs of this app: workers and the command line import them; `shop.jobs.*`
    means all modules of a package.
    `migrate` brings the schema up to date when the database is first opened. `enqueue_patience` is how long an enqueue
    waits for a database that cannot be reached. `worker` are the settings of this app's workers, where nothing else is
    said. `clock` replaces the database's clock: for tests.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        listen_url: str | None = None,
        queues: Iterable[str] | None = None,
        include: Iterable[str] | str = (),
        retry: RetrySource = DEFAULT_RETRY,
        payload_limit: int = _PAYLOAD_LIMIT,
        migrate: bool = True,
        enqueue_patience: Duration = "2s",
        worker: WorkerSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(queues, retry)
        self.url = url or os.environ.get(_URL_VARIABLE) or DEFAULT_URL
        self.include = checked_modules("include", include)
        self._listen_url = _checked_listen_url(self.url, listen_url)
        self.payload_limit = checked_count("payload_limit", payload_limit)
        self.worker_settings = WorkerSettings() if worker is None else _checked_settings(worker)
        self.events = Emitter()
        self._clock = clock
        self._stores = Stores(
            self._make_store,
            migrate=migrate,
            patience=parse_duration("enqueue_patience", enqueue_patience, error=SettingsError),
        )
        self._portal = Portal()
        self._is_diverted = False
        try:
            self._unopened: BorrowingStore = self._make_store()  # a bad URL is refused here, not at the first job
        except SettingsError as error:
            sources = {"url": (url, _URL_VARIABLE), "listen_url": (listen_url, LISTEN_URL_VARIABLE)}
            given, variable = sources.get(error.field, (error.field, ""))
            if given:
                raise
            raise SettingsError(variable, str(error).removeprefix(f"{error.field} ")) from None

    async def schedule(
        self,
        name: str,
        call: Call[Any],
        *,
        cron: str | None = None,
        every: Duration | None = None,
        tz: str = "UTC",
        missed: Missed | str = Missed.SKIP,
        within: Duration | None = None,
        overlap: Overlap | str = Overlap.SKIP,
        jitter: Duration = 0,
        actor: str = "app",
    ) -> ScheduleView:
        """Make a schedule at run time, or change the one of this name: `await app.schedule("x", job.call(1), cron=…)`.

        It is stored, and fired by whichever worker is there. To see, pause, trigger or delete it, ask the desk:
        `(await app.desk("me")).calendar`.
        """
        check_own("call", call, self)
        made = checked_schedule(
            name,
            call.job,
            one_expression(cron, every),
            tz=tz,
            missed=missed,
            within=within,
            overlap=overlap,
            jitter=jitter,
        )
        return await (await self.desk(actor)).calendar.save(made)

    def handle(self, job_id: object) -> Handle[Any]:
        """The handle of a job of any kind, by its id; nothing is looked up yet.

        Its result is plain Python. `job.handle(id)` gives it as the type that the handler declares.
        """
        return Handle(self, None, Receipt(as_job_id(job_id), Intake.EXISTING))

    async def enqueue_many(self, calls: Iterable[Call[R]], *, connection: Any = None) -> list[Handle[R]]:
        """Store many jobs in one transaction; handles in the same order say which of them are new.

        `connection` makes them part of the caller's own transaction, as in `Job.using`.
        """
        kinds: list[Kind] = []
        receipts = await self._put_all(Supply(_jobs_of(self, calls, kinds)), connection)
        return [Handle(self, kind, receipt) for kind, receipt in zip(kinds, receipts, strict=True)]

    def enqueue_many_sync(self, calls: Iterable[Call[R]], *, connection: Any = None) -> list[Handle[R]]:
        """The same, for callers without an event loop."""
        if connection is None:
            return self._portal.call(self.enqueue_many(calls))
        kinds: list[Kind] = []
        receipts = self._put_here(list(_jobs_of(self, calls, kinds)), connection)
        return [Handle(self, kind, receipt) for kind, receipt in zip(kinds, receipts, strict=True)]

    async def batch(
        self,
        calls: Iterable[Call[Any]],
        *,
        then: Call[Any] | None = None,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        connection: Any = None,
    ) -> Handle[BatchOutcome]:
        """Run calls at once, and `then` when they are all final, whatever became of them.

        The batch is a job of its own, in `queue`, which holds no worker while it waits. `then` finds how it went in
        `ctx.meta["batch"]`; if its handler has a parameter `results` that was not given, it gets a list of ChildResult
        in the order of the calls: `then=report.after()`. `connection` is that of `Job.using`.
        """
        receipt = await self.put(batch_job(self, calls, then, name, queue), connection)
        return Handle(self, BATCH_KIND, receipt)

    def batch_sync(
        self,
        calls: Iterable[Call[Any]],
        *,
        then: Call[Any] | None = None,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        connection: Any = None,
    ) -> Handle[BatchOutcome]:
        """The same, for callers without an event loop."""
        receipt = self.put_sync(batch_job(self, calls, then, name, queue), connection)
        return Handle(self, BATCH_KIND, receipt)

    async def emit(self, event: str, payload: Any = None) -> Emission:
        """Make an event known, and wake the jobs that wait for it: `await app.emit("paid:42", {"sum": 3})`.

        It is kept: a job that asks later finds it. The first emission wins; the answer says whether it was this one,
        what the payload is, and how many jobs it has woken.
        """
        text = event_payload(event, payload, self.payload_limit)
        store = await self.store()
        emission = await store.emit(event, text, "app")
        if emission.woken:
            store.ring({kind.queue for kind in self.kinds.values()} | (self.queues or frozenset()))
        return emission

    def emit_sync(self, event: str, payload: Any = None) -> Emission:
        """The same, for callers without an event loop."""
        return self.run_sync(self.emit(event, payload))

    async def once_per(self, period: Duration, *, key: str) -> bool:
        """Whether to take an action that is taken at most once in a period, over all processes on this database.

        `if await app.once_per("1h", key=f"alert:{audit}"): …`. The first caller gets True, and every other False until
        the period is over, by the database's clock.
        """
        return await throttle(period, key).ask(await self.store())

    def once_per_sync(self, period: Duration, *, key: str) -> bool:
        """Blocking version of `once_per`."""
        return self.run_sync(self.once_per(period, key=key))

    async def store(self) -> Store:
        """The open store of the running event loop: the port itself, for tools and tests."""
        return (await self._stores.here()).store

    async def desk(self, actor: str) -> Desk:
        """The operator's desk: views, and commands that the audit trail records under the name of `actor`."""
        from perdure.operate.desk import Desk  # noqa: PLC0415 - who only enqueues needs none

        return Desk(await self.store(), actor)

    def desk_sync(self, actor: str) -> SyncDesk:
        """The same, for callers without an event loop: each of its methods blocks until it is done."""
        from perdure.operate.sync_desk import SyncDesk  # noqa: PLC0415 - who only enqueues needs none

        self.run_sync(self.desk(actor))  # a bad actor or database is refused here, not at the first question
        return SyncDesk(self, actor)

    async def worker(self, settings: WorkerSettings | None = None) -> Worker:
        """A worker on the running loop, not started: `await worker.run()`, and `worker.stop()` from elsewhere.

        Without `settings` it has those of the app.
        """
        from perdure.worker.worker import Worker  # noqa: PLC0415 - who only enqueues needs none

        self.import_included()
        chosen = self.serving(self.worker_settings if settings is None else _checked_settings(settings))
        for queue in chosen.queues:
            self.check_queue(queue.name)
        return Worker(
            await self.store(),
            self.kinds,
            chosen,
            self.events,
            self._clock or SystemClock(),
            schedules=tuple(self.schedules.values()),
            periodic=tuple(self.periodic.values()),
            hooks=self.hooks,
            records=tuple(self.kind_records.values()),
        )

    def serving(self, settings: WorkerSettings) -> WorkerSettings:
        """These settings with the queues that a worker of this app serves, if they name none."""
        return serving(settings, self.kinds, self.queues)

    def import_included(self) -> None:
        """Import the modules of `include=`, so that the jobs that they declare are known."""
        import_modules(self.include)

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

    def subscribe(self, listener: Listener, *types: type[Event]) -> Callable[[], None]:
        """Call `listener` with each event of these types; returns the function that unsubscribes.

        Without types it hears every event but those of single attempts: JobStarted, JobSucceeded and JobFailed must be
        named, because they cost something for each job.
        """
        return self.events.subscribe(listener, *types)

    def log_events(self, attempts: AttemptLog | None = None) -> Callable[[], None]:
        """Write events to the log, and with `attempts` a line for each attempt that starts and succeeds."""
        stop = self.subscribe(EventLog())
        if attempts is None:
            return stop
        stop_attempts = attempts.follow(self.events)

        def stop_both() -> None:
            stop()
            stop_attempts()

        return stop_both

    async def close(self) -> None:
        """Close what the running loop has opened."""
        await self._stores.close()

    def close_sync(self) -> None:
        """Close what sync calls have opened."""
        self._portal.call(self._stores.close())
        self._portal.close()

    async def __aenter__(self) -> Self:
        store = (await self._stores.here()).store
        if not all(record.says_nothing for record in self.kind_records.values()):
            await store.declare_kinds(tuple(self.kind_records.values()))
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

    async def put(self, job: NewJob, connection: Any) -> Receipt:
        """Store one job, through the caller's own connection if there is one."""
        if connection is not None:
            return (await self._put_all([job], connection))[0]
        doorway = self._stores.at_hand() or await self._stores.here()
        return await doorway.group_commit.put(job)

    def put_sync(self, job: NewJob, connection: Any) -> Receipt:
        """The same, for callers without an event loop."""
        if connection is not None:
            return self._put_here([job], connection)[0]
        return self._portal.call(self.put(job, None))

    async def view(self, job_id: JobId) -> JobView | None:
        """One job as it stands."""
        return await (await self.store()).job(job_id)

    async def final(self, job_id: JobId) -> JobView:
        """One job, as soon as it is final."""
        return await (await self._stores.outcomes()).final(job_id)

    async def progress(self, job_id: JobId) -> Progress | None:
        """How far a job was when it last said so."""
        return await (await self.store()).progress(job_id)

    def run_sync(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run one of this app's coroutines to its end, for callers without an event loop."""
        return self._portal.call(coroutine)

    async def _put_all(self, jobs: Sequence[NewJob], connection: Any) -> list[Receipt]:
        if connection is not None:
            return await self._unopened.through(connection).insert(list(jobs))
        doorway: Doorway = await self._stores.here()
        return await doorway.group_commit.put_all(jobs)

    def _put_here(self, jobs: list[NewJob], connection: Any) -> list[Receipt]:
        """Store jobs through a blocking connection, in the thread that it belongs to."""
        return at_once(self._unopened.through(connection, blocking=True).insert(jobs))

    def _make_store(self) -> Store:
        return store_for(self.url, self._clock, listen_url=self._listen_url)


def _checked_listen_url(url: str, given: str | None) -> str | None:
    """What the caller says, else what the environment does."""
    if given is None:
        return listen_url_for(url)
    if not isinstance(given, str):
        raise SettingsError("listen_url", f"must be text, got {type(given).__name__}")
    if str(url).startswith("sqlite:"):
        raise SettingsError("listen_url", "is for PostgreSQL: an SQLite file needs none")
    return given


def _checked_settings(given: object) -> WorkerSettings:
    if not isinstance(given, WorkerSettings):
        raise SettingsError("worker", f"must be WorkerSettings, as in WorkerSettings(concurrency=10), got {given!r}")
    return given


def _jobs_of(app: App, calls: Iterable[Call[R]], kinds: list[Kind]) -> Iterator[NewJob]:
    """The jobs of calls, one by one; of what kind they are is noted in `kinds`."""
    if not isinstance(calls, Iterable):
        raise ArgumentError("calls", f"must be a list of calls such as job.call(1), got {calls!r}")
    for call in calls:
        if type(call) is not Call or call.gateway is not app:
            check_own("calls", call, app)
        if call.lacks is not None:
            check_child(call)
        kinds.append(call.kind)
        yield call.job
