"""What an app declares: its kinds of jobs, its schedules, its periodic functions."""

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
from perdure.kinds.kind import Registry
from perdure.kinds.options import checked_names, refuse_misspelt
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

if TYPE_CHECKING:
    from perdure.enqueue.gateway import Gateway

P = ParamSpec("P")
R = TypeVar("R")
Task = TypeVar("Task", bound=Callable[[], Any])
Within = Iterator[None] | AsyncIterator[None] | AbstractContextManager[object] | AbstractAsyncContextManager[object]
Lifespan = TypeVar("Lifespan", bound=Callable[[], Within])
Middleware = TypeVar("Middleware", bound=Callable[[Context], Within])


class Declarations:
    """Everything that is declared on one app, with the decorators that declare it."""

    def __init__(self, queues: Iterable[str] | None, retry: RetrySource) -> None:
        self.queues = None if queues is None else checked_names("queues", queues)
        self.kinds: Registry = {}
        self.kind_records: dict[str, KindRecord] = {}
        self.schedules: dict[str, Schedule] = {}
        self.periodic: dict[str, Periodic] = {}
        self.hooks = Hooks()
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

        `name` is what stored jobs are called (default: the function's). `crashes` is how many times the process may
        die under the job before it is dead. `isolate` runs each attempt in a process of its own; only there are
        `timeout` and `memory` (in bytes) enforced by killing. `gates` are the Rates, Concurrencies and Budgets that a
        job must pass before it runs, `breaker` the outside system that it calls: while they hold it, it waits at no
        cost. `fair` names the arguments, or is a function of them, whose values share the queue evenly: one tenant's
        100,000 jobs do not delay another's 10. `bounds` is what may be set for a job, here and with `using`.
        `keep` is how long finished jobs of this kind are kept, whoever prunes: a Keep, or one time for all of them.
        `state_words` are the app's own words for states, such as {"succeeded": "sent"}, which all surfaces show.
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
            raise SettingsError(f"name of job {kind.name}", f"begins with {OWN!r}, which is ours: choose another one")
        if kind.name in self.kinds:
            raise SettingsError(f"job {kind.name}", "is declared twice: give one of them another name")
        self.check_queue(kind.queue)
        record = declared_record(kind.name, keep, state_words)
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
        """Declare a job that the calendar enqueues: once for each nominal time, however many processes run.

        `expression` is cron with five fields, or six with seconds first, `@daily` and its kin, or `@every 90s`, told by
        the clocks of `tz`. `missed` says what becomes of times at which no worker ran, up to `within` ago; `overlap`
        what happens while the last job is not finished; `jitter` lets the job run up to so much later. `schedule`
        names it (default: the job's name). Other options are those of `@app.job`, unless it is put on a declared job.
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
                raise SettingsError(f"schedule {made.name}", "is declared twice: give one of them another schedule=")
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
        """Let every worker call a function again and again, never twice at a time; no job is made of it.

        A call that is still under way when the next is due lets that one pass; one that takes longer than `limit`
        (the interval) is told to stop. `at_start`: the first at once, not after an interval. `jitter` spreads the
        calls by that share of the interval. With per="fleet" only one worker of all calls it.
        """
        if callable(interval):
            raise SettingsError("interval", 'of @app.every is missing: write for example @app.every("2m")')

        def declare(function: Task) -> Task:
            made = periodic(function, interval, limit=limit, at_start=at_start, jitter=jitter, per=per, name=name)
            if made.name in self.periodic:
                raise SettingsError(f"every of {made.name}", "is declared twice: give one of them another name=")
            self.periodic[made.name] = made
            return function

        return declare

    def lifespan(self, function: Lifespan) -> Lifespan:
        """Declare what each worker opens before its first job and closes after its last one.

        `function` takes nothing and yields once: open a client or a pool, `yield`, close it. It may be async. Several
        open in the order of their declaration and close in reverse. A worker whose lifespan cannot be opened does not
        start. The process of an isolated attempt opens them too, for that attempt.
        """
        self.hooks.lifespans.add(read_around("lifespan", function, 0))
        return function

    def middleware(self, around: Middleware) -> Middleware:
        """Declare what runs around every attempt of every job of this app.

        `around` takes the attempt's context and yields once: the handler runs where it yields, and what the handler
        raises is raised there. A plain generator function serves sync and async handlers alike; an async one runs on
        the worker's event loop, also for sync handlers. The first one declared is the outermost.
        """
        self.hooks.add_middleware(read_around("middleware", around, 1))
        return around

    def job_named(self, name: str) -> Job[Any, Any]:
        """The declared job of this name, to be enqueued without its types."""
        kind = self.kinds.get(name)
        if kind is None:
            raise NotFoundError(f"no job is called {name!r}; declared are: {', '.join(sorted(self.kinds)) or 'none'}")
        return Job(cast("Gateway", self), kind)

    def check_queue(self, queue: str) -> None:
        """Refuse a queue that the app does not know."""
        if self.queues is not None and queue not in self.queues:
            raise ArgumentError("queue", f"{queue!r} is not one of this app's queues: {', '.join(sorted(self.queues))}")
