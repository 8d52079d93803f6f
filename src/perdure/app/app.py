"""The public API, and the only place that joins all parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar

from perdure.app.database import AppDatabase
from perdure.app.declarations import Declarations
from perdure.app.schedules import checked_schedule, one_expression
from perdure.clock import Clock, SystemClock
from perdure.domain.duration import Duration
from perdure.domain.flows.flow import Emission
from perdure.domain.jobs.ids import as_job_id
from perdure.domain.jobs.job import DEFAULT_QUEUE, Intake, NewJob, Receipt
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Missed, Overlap, ScheduleView
from perdure.enqueue.batches import batch_job
from perdure.enqueue.calls import Call, check_child, check_own
from perdure.enqueue.handle import Handle
from perdure.errors import ArgumentError, SettingsError
from perdure.events import Emitter, Event, Listener
from perdure.events.log import AttemptLog, EventLog
from perdure.flows.events import event_payload
from perdure.flows.families.batches import BatchOutcome
from perdure.flows.throttle import throttle
from perdure.kinds.including import checked_modules, import_modules
from perdure.kinds.kind import Kind
from perdure.kinds.options import checked_count
from perdure.policy.retries.retry import DEFAULT_RETRY, RetrySource
from perdure.worker.execution.built_in import BATCH_KIND
from perdure.worker.settings import WorkerSettings, beside, serving

if TYPE_CHECKING:
    from perdure.operate.desk import Desk
    from perdure.operate.sync_desk import SyncDesk
    from perdure.worker.worker import Worker

R = TypeVar("R")
_PAYLOAD_LIMIT_BYTES = 64 * 1024


class App(Declarations, AppDatabase):
    """A set of jobs and the database that stores them.

    `url` is `sqlite:///file.db` or `postgresql://…`. The default is PERDURE_URL, then `perdure.db` in the working
    directory. `listen_url` reaches the same PostgreSQL database without a pooler, for notifications; the default is
    PERDURE_LISTEN_URL, if set. `queues` lists the allowed queues; without it, any queue name is allowed.
    `include` lists modules that declare jobs of this app: workers and the command line import them; `shop.jobs.*` means
    all modules of a package.
    `migrate` updates the schema when the database is first opened. `enqueue_patience` is how long an enqueue retries
    while the database cannot be reached. `worker` holds the default settings of this app's workers.
    `clock` replaces the database's clock: for tests.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        listen_url: str | None = None,
        queues: Iterable[str] | None = None,
        include: Iterable[str] | str = (),
        retry: RetrySource = DEFAULT_RETRY,
        payload_limit: int = _PAYLOAD_LIMIT_BYTES,
        migrate: bool = True,
        enqueue_patience: Duration = "2s",
        worker: WorkerSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        Declarations.__init__(self, queues, retry)
        AppDatabase.__init__(
            self,
            url,
            listen_url=listen_url,
            migrate=migrate,
            enqueue_patience=enqueue_patience,
            clock=clock,
            hooks=self.hooks,
        )
        self.include = checked_modules("include", include)
        self.payload_limit = checked_count("payload_limit", payload_limit)
        self.worker_settings = WorkerSettings() if worker is None else _checked_settings(worker)
        self.events = Emitter()

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
        """Create or replace a schedule at run time: `await app.schedule("x", job.call(1), cron=…)`.

        The schedule is stored, and any worker fires it. Use the desk to list, pause, trigger or delete it: `(await
        app.desk("me")).calendar`.
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
        """A handle for a job of any kind, by id. It does not query the database yet.

        Its result is plain Python. `job.handle(id)` converts the result to the handler's declared type.
        """
        return Handle(self, None, Receipt(as_job_id(job_id), Intake.EXISTING))

    async def enqueue_many(self, calls: Iterable[Call[R]], *, connection: Any = None) -> list[Handle[R]]:
        """Store many jobs in one transaction; returns handles in the same order.

        `connection` stores them in the caller's own transaction, as in `Job.using`.
        """
        kinds: list[Kind] = []
        receipts = await self._put_all(_jobs_of(self, calls, kinds), connection)
        return [Handle(self, kind, receipt) for kind, receipt in zip(kinds, receipts, strict=True)]

    def enqueue_many_sync(self, calls: Iterable[Call[R]], *, connection: Any = None) -> list[Handle[R]]:
        """Blocking version of `enqueue_many`."""
        if connection is None:
            return self._portal.call(self.enqueue_many(calls))
        kinds: list[Kind] = []
        receipts = self._put_here(_jobs_of(self, calls, kinds), connection)
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
        """Run calls in parallel, then run `then` once all are final, whether they succeeded or not.

        The batch is a job of its own in `queue`; it occupies no worker while it waits. `then` finds the outcome in
        `ctx.meta["batch"]`. If its handler has a free parameter `results`, it receives a list of ChildResult in call
        order: `then=report.after()`. `connection` works as in `Job.using`.
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
        """Blocking version of `batch`."""
        receipt = self.put_sync(batch_job(self, calls, then, name, queue), connection)
        return Handle(self, BATCH_KIND, receipt)

    async def emit(self, event: str, payload: Any = None) -> Emission:
        """Emit an event and wake the jobs waiting for it: `await app.emit("paid:42", {"sum": 3})`.

        The event is stored, so a job that waits for it later finds it. The first emission wins. The returned Emission
        holds whether this call was the first, the stored payload, and the number of jobs woken.
        """
        text = event_payload(event, payload, self.payload_limit)
        store = await self.store()
        emission = await store.emit(event, text, By("app", source="code"))
        if emission.woken:
            store.ring({kind.queue for kind in self.kinds.values()} | (self.queues or frozenset()))
        return emission

    def emit_sync(self, event: str, payload: Any = None) -> Emission:
        """Blocking version of `emit`."""
        return self.run_sync(self.emit(event, payload))

    async def once_per(self, period: Duration, *, key: str) -> bool:
        """Claim the right to act at most once per period, across all processes on this database.

        `if await app.once_per("1h", key=f"alert:{audit}"): …`. The first caller gets True; all others get False until
        the period ends by the database's clock.
        """
        return await throttle(period, key).ask(await self.store())

    def once_per_sync(self, period: Duration, *, key: str) -> bool:
        """Blocking version of `once_per`."""
        return self.run_sync(self.once_per(period, key=key))

    async def desk(self, actor: str, source: str = "code") -> Desk:
        """The operator's desk: views, and commands that the audit trail records under the name `actor`.

        `source` is where they come from: a surface of yours, with the caller's address if it has one.
        """
        from perdure.operate.desk import Desk  # noqa: PLC0415 - who only enqueues needs none

        return Desk(await self.store(), actor, source)

    def desk_sync(self, actor: str, source: str = "code") -> SyncDesk:
        """Blocking version of `desk`: each of its methods blocks until it is done."""
        from perdure.operate.sync_desk import SyncDesk  # noqa: PLC0415 - who only enqueues needs none

        self.run_sync(self.desk(actor, source))  # refuse a bad actor or database here, not at the first query
        return SyncDesk(self, actor, source)

    async def worker(self, settings: WorkerSettings | None = None) -> Worker:
        """Create a worker on the running loop. Start it with `await worker.run()`; stop it with `worker.stop()`.

        Without `settings` it uses the app's settings.
        """
        from perdure.worker.wiring.worker import build_worker  # noqa: PLC0415 - who only enqueues needs none

        self.import_included()
        chosen = self.serving(self.worker_settings if settings is None else _checked_settings(settings))
        for queue in chosen.queues:
            self.check_queue(queue.name)
        worker = build_worker(
            store=await self.store(),
            kinds=self.kinds | self.own_kinds,
            settings=beside(chosen, self.own_queues.values()),
            emitter=self.events,
            clock=self._clock or SystemClock(),
            schedules=tuple(self.schedules.values()),
            periodic=tuple(self.periodic.values()),
            hooks=self.hooks,
            records=tuple(self.kind_records.values()),
            alerts=self.alerts,
        )
        if self.hooks.on_worker is not None:
            self.hooks.on_worker(worker)
        return worker

    def serving(self, settings: WorkerSettings) -> WorkerSettings:
        """These settings; if they name no queues, with the queues that this app's workers serve."""
        return serving(settings, self.kinds, self.queues)

    def import_included(self) -> None:
        """Import the modules of `include=`, which registers the jobs they declare."""
        import_modules(self.include)

    def subscribe(self, listener: Listener, *types: type[Event]) -> Callable[[], None]:
        """Call `listener` with each event of these types; returns a function that unsubscribes.

        Without types, the listener gets every event except those of single attempts: name JobStarted, JobSucceeded and
        JobFailed explicitly, because they add a cost to each job.
        """
        return self.events.subscribe(listener, *types)

    def log_events(self, attempts: AttemptLog | None = None) -> Callable[[], None]:
        """Write events to the log; with `attempts`, also a line for each attempt that starts and succeeds."""
        stop = self.subscribe(EventLog(more=self.hooks.log_fields))
        if attempts is None:
            return stop
        stop_attempts = attempts.follow(self.events, self.hooks.log_fields)

        def stop_both() -> None:
            stop()
            stop_attempts()

        return stop_both

    async def __aenter__(self) -> Self:
        store = (await self._stores.here()).store
        if not all(record.says_nothing for record in self.kind_records.values()):
            await store.declare_kinds(tuple(self.kind_records.values()))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _checked_settings(given: object) -> WorkerSettings:
    if not isinstance(given, WorkerSettings):
        raise SettingsError("worker", f"must be WorkerSettings, as in WorkerSettings(concurrency=10), got {given!r}")
    return given


def _jobs_of(app: App, calls: Iterable[Call[R]], kinds: list[Kind]) -> Iterator[NewJob]:
    """Yield the jobs of these calls, and append their kinds to `kinds`."""
    if not isinstance(calls, Iterable):
        raise ArgumentError("calls", f"must be a list of calls such as job.call(1), got {calls!r}")
    for call in calls:
        if type(call) is not Call or call.gateway is not app:
            check_own("calls", call, app)
        if call.lacks is not None:
            check_child(call)
        kinds.append(call.kind)
        yield call.job
