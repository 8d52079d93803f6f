"""What an app declares: kinds of jobs, schedules, periodic functions, hooks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast, overload

from perdure.app.decorators import CronDecorator, JobDecorator, declared_kind, job_without_arguments
from perdure.app.kind_records import declared_record
from perdure.app.schedules import checked_schedule
from perdure.domain.duration import Duration
from perdure.domain.flows.plan import OWN
from perdure.domain.jobs.job import DEFAULT_CRASH_LIMIT, DEFAULT_PRIORITY, DEFAULT_QUEUE
from perdure.domain.schedule import Missed, Overlap, Schedule
from perdure.enqueue.job import Job
from perdure.errors import ArgumentError, NotFoundError, SettingsError
from perdure.hooks.around import read_around
from perdure.hooks.hooks import Hooks
from perdure.kinds.declared import note_declared
from perdure.kinds.kind import Kind, Registry
from perdure.kinds.options import checked_names, refuse_misspelt
from perdure.operate.alerts.declared import DeclaredAlerts
from perdure.policy.bounds import Bounds
from perdure.policy.keys.fairness import FairBy
from perdure.policy.keys.uniqueness import Unique
from perdure.policy.limits.gates import Breaker, Gate
from perdure.policy.retries.retry import RetrySource, checked_retry
from perdure.policy.retries.triage import Triage
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.records import Keep
from perdure.worker.attempt.context.context import Context
from perdure.worker.attempt.context.sync_context import SyncContext
from perdure.worker.periodic import Per, Periodic, periodic
from perdure.worker.settings import Queue

if TYPE_CHECKING:
    from perdure.enqueue.gateway import Gateway

P = ParamSpec("P")
R = TypeVar("R")
Task = TypeVar("Task", bound=Callable[[], Any])
Within = Iterator[None] | AsyncIterator[None] | AbstractContextManager[object] | AbstractAsyncContextManager[object]
Lifespan = TypeVar("Lifespan", bound=Callable[[], Within])
Middleware = TypeVar("Middleware", bound=Callable[[Context], Within])


class Declarations:
    """All declarations of one app, and the decorators that make them."""

    def __init__(self, queues: Iterable[str] | None, retry: RetrySource) -> None:
        self.queues = None if queues is None else checked_names("queues", queues)
        self.kinds: Registry = {}
        self.kind_records: dict[str, KindRecord] = {}
        self.schedules: dict[str, Schedule] = {}
        self.periodic: dict[str, Periodic] = {}
        self.hooks = Hooks()
        self.alerts = DeclaredAlerts()
        self.own_kinds: Registry = {}
        self.own_queues: dict[str, Queue] = {}
        self._retry = checked_retry("retry", retry)

    @overload
    def job(self, handler: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def job(self, handler: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def job(self, handler: Callable[Concatenate[SyncContext, P], R], /) -> Job[P, R]: ...
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
        gates: Iterable[Gate] | Gate = (),
        breaker: Breaker | None = None,
        fair: FairBy | None = None,
        bounds: Bounds | None = None,
        keep: Keep | Duration | None = None,
        state_words: Mapping[str, str] | None = None,
    ) -> JobDecorator: ...
    def job(self, *handler: Any, **options: Any) -> Any:
        """Declare a job.

        `name` identifies the kind in stored jobs (default: the function's name). `crashes` is the crash limit: how
        often the process may die during the job before the job is dead. `isolate` runs each attempt in a process of its
        own; only there are `timeout` and `memory` (in bytes) enforced by killing. `gates` are the Rates, Concurrencies
        and Budgets that a job must pass before it runs; `breaker` is the circuit breaker of the outside system that it
        calls. A job held by a gate or breaker uses no worker and no attempt. `fair` names arguments, or is a function
        of them, whose values share the queue evenly: one tenant's 100,000 jobs do not delay another's 10. `bounds`
        limits what can be set for a job, here and with `using`.
        `keep` is how long finished jobs of this kind are kept before any process prunes them: a Keep, or one time for
        all states.
        `state_words` are the app's own words for states, such as {"succeeded": "sent"}; all surfaces show them.
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
        gates: Iterable[Gate] | Gate = (),
        breaker: Breaker | None = None,
        fair: FairBy | None = None,
        bounds: Bounds | None = None,
        keep: Keep | Duration | None = None,
        state_words: Mapping[str, str] | None = None,
    ) -> Job[Any, Any]:
        kind = declared_kind(
            handler,
            name=name,
            queue=queue,
            priority=priority,
            retry=self._retry if retry is None else retry,
            triage=triage,
            unique=unique,
            timeout=timeout,
            isolate=isolate,
            memory=memory,
            crashes=crashes,
            gates=gates,
            breaker=breaker,
            fair=fair,
            bounds=bounds,
            hooks=self.hooks,
        )
        if kind.name.startswith(OWN):
            raise SettingsError(
                f"name of job {kind.name}", f"begins with {OWN!r}, which perdure reserves: choose another name"
            )
        if kind.name in self.kinds:
            raise SettingsError(f"job {kind.name}", "is declared twice: give one another name")
        self.check_queue(kind.queue)
        record = declared_record(kind, keep, state_words)
        self.kinds[kind.name] = kind
        self.kind_records[kind.name] = record
        note_declared(kind)
        return Job(cast("Gateway", self), kind)

    def cron(
        self,
        expression: str,
        *,
        tz: str = "UTC",
        missed: Missed | str = Missed.SKIP,
        within: Duration | None = None,
        overlap: Overlap | str = Overlap.SKIP,
        jitter: Duration = 0,
        schedule: str | None = None,
        **options: Any,
    ) -> CronDecorator:
        """Declare a job that a schedule enqueues once per nominal time, no matter how many processes run.

        `expression` is cron with five fields, or six with seconds first, or `@daily` and similar, or `@every 90s`, in
        the time zone `tz`. `missed` decides what happens to times at which no worker ran, up to `within` ago; `overlap`
        what happens while the previous job is not finished; `jitter` delays the job by a random time up to this.
        `schedule` names the schedule (default: the job's name). Other options are those of `@app.job`, unless this
        decorates a declared job.
        """
        if callable(expression):
            raise SettingsError("expression", 'of @app.cron is missing: write for example @app.cron("0 2 * * *")')

        def declare(handler: Any) -> Job[Any, Any]:
            if isinstance(handler, Job) and options:
                raise SettingsError(f"option {next(iter(options))} of cron", "belongs to the job: give it to @app.job")
            job: Job[Any, Any] = handler if isinstance(handler, Job) else self.job(**options)(handler)
            made = checked_schedule(
                schedule or job.kind.name,
                job_without_arguments(job),
                expression,
                tz=tz,
                missed=missed,
                within=within,
                overlap=overlap,
                jitter=jitter,
            )
            if made.name in self.schedules:
                raise SettingsError(f"schedule {made.name}", "is declared twice: give one another schedule=")
            self.schedules[made.name] = made
            return job

        return declare

    def every(
        self,
        interval: Duration,
        *,
        limit: Duration | None = None,
        at_start: bool = True,
        jitter: float = 0.1,
        per: Per | str = Per.PROCESS,
        name: str | None = None,
    ) -> Callable[[Task], Task]:
        """Have every worker call a function at an interval, never twice at a time; it does not become a job.

        A call that still runs when the next is due makes that one skip. A call that exceeds `limit` (default: the
        interval) is told to stop. `at_start` makes the first call at once instead of after one interval. `jitter`
        spreads the calls by that share of the interval. With per="fleet", only one worker of the fleet calls it.
        """
        if callable(interval):
            raise SettingsError("interval", 'of @app.every is missing: write for example @app.every("2m")')

        def declare(function: Task) -> Task:
            made = periodic(function, interval, limit=limit, at_start=at_start, jitter=jitter, per=per, name=name)
            if made.name in self.periodic:
                raise SettingsError(f"every of {made.name}", "is declared twice: give one another name=")
            self.periodic[made.name] = made
            return function

        return declare

    def lifespan(self, function: Lifespan) -> Lifespan:
        """Declare a resource that each worker opens before its first job and closes after its last.

        `function` takes no arguments and yields once: open a client or a pool, `yield`, close it. It may be async.
        Several lifespans open in declaration order and close in reverse. A worker whose lifespan cannot be opened does
        not start. The process of an isolated attempt opens them too, for that attempt.
        """
        self.hooks.lifespans.add(read_around("lifespan", function, 0))
        return function

    def middleware(self, around: Middleware) -> Middleware:
        """Declare middleware around every attempt of every job of this app.

        `around` takes the attempt's context and yields once: the handler runs at the yield, and its exception is raised
        there. A plain generator function serves sync and async handlers; an async one runs on the worker's event loop,
        for sync handlers too. The first declared is the outermost.
        """
        self.hooks.add_middleware(read_around("middleware", around, 1))
        return around

    def serve_own(self, kind: Kind, queue: Queue) -> None:
        """Run an internal kind of perdure in every worker of this app, on top of the queues it serves.

        For parts of perdure that do their work in jobs. The queue's slots are its own, so that the app's jobs do not
        hold those jobs up.
        """
        if not kind.name.startswith(OWN):
            raise SettingsError("kind", f"of perdure's own must begin with {OWN!r}, got {kind.name!r}")
        self.own_kinds[kind.name] = kind
        self.own_queues[queue.name] = queue

    def job_named(self, name: str) -> Job[Any, Any]:
        """The declared job of this name, to enqueue it without its types."""
        kind = self.kinds.get(name)
        if kind is None:
            raise NotFoundError(f"no job is called {name!r}; declared are: {', '.join(sorted(self.kinds)) or 'none'}")
        return Job(cast("Gateway", self), kind)

    def check_queue(self, queue: str) -> None:
        """Refuse a queue that the app does not declare."""
        if self.queues is not None and queue not in self.queues:
            raise ArgumentError("queue", f"{queue!r} is not one of this app's queues: {', '.join(sorted(self.queues))}")
