"""A job as its author sees it: a function that can also be enqueued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from perdure.domain.duration import Duration
from perdure.domain.jobs.ids import as_job_id, new_job_id
from perdure.domain.jobs.job import Intake, NewJob, Receipt
from perdure.enqueue.calls import RESULT, RESULTS, Call
from perdure.enqueue.gateway import Gateway
from perdure.enqueue.handle import Handle
from perdure.errors import ArgumentError
from perdure.kinds.kind import Kind
from perdure.kinds.options import Options, checked_options
from perdure.kinds.signature import Signature
from perdure.policy.keys.uniqueness import Unique
from perdure.policy.retries.retry import Retry

P = ParamSpec("P")
R = TypeVar("R")
Rest = ParamSpec("Rest")

_PLAIN = Options()


class Prepared(Generic[P, R]):
    """A job with options for its next enqueues."""

    def __init__(self, gateway: Gateway, kind: Kind, options: Options) -> None:
        self._gateway = gateway
        self._kind = kind
        self._options = options
        self._estimates = [budget for budget in kind.budgets.values() if callable(budget.estimate)]
        self._is_plain = options is _PLAIN and kind.unique is None and kind.fair is None and not self._estimates

    @property
    def kind(self) -> Kind:
        """The declaration of the job."""
        return self._kind

    @property
    def options(self) -> Options:
        """The options given with `using`."""
        return self._options

    def handle(self, job_id: object) -> Handle[R]:
        """A handle for an existing job of this kind, by id. It does not query the database yet.

        `view()` raises NotFoundError if the job does not exist; `result()` raises ConflictError if its kind differs.
        """
        return Handle(self._gateway, self._kind, Receipt(as_job_id(job_id), Intake.EXISTING))

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Store the job. Once this returns, the job survives a process crash and a power cut."""
        receipt = await self._gateway.put(self._new_job(args, kwargs), self._options.connection)
        return Handle(self._gateway, self._kind, receipt)

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Blocking version of `enqueue`."""
        receipt = self._gateway.put_sync(self._new_job(args, kwargs), self._options.connection)
        return Handle(self._gateway, self._kind, receipt)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Check the arguments now; enqueue later, with `app.enqueue_many`."""
        self._refuse_connection()
        return Call(self._new_job(args, kwargs), self._kind, self._gateway)

    def after(self: Prepared[Concatenate[Any, Rest], R], *args: Rest.args, **kwargs: Rest.kwargs) -> Call[R]:
        """A call without the handler's first argument, which the previous job's result fills.

        That parameter is called `result` in a chain (the previous job's result), and `results` in a job that follows a
        batch (a list of ChildResult).
        """
        self._refuse_connection()
        first = next(iter(self._kind.signature.names), None)
        if first not in {RESULT, RESULTS}:
            raise ArgumentError(
                f"after of job {self._kind.name}",
                f"needs a handler whose first parameter is called {RESULT!r} (in a chain) or {RESULTS!r} (after a"
                f" batch), and it is {first!r}: use call()",
            )
        rest = self._kind.signature.without(first)
        return Call(self._new_job(args, kwargs, rest), self._kind, self._gateway, first)

    def _refuse_connection(self) -> None:
        if self._options.connection is not None:
            raise ArgumentError("connection", "belongs to the whole batch: enqueue_many(calls, connection=...)")

    def _new_job(self, args: tuple[Any, ...], kwargs: dict[str, Any], signature: Signature | None = None) -> NewJob:
        kind, options = self._kind, self._options
        signature = signature or kind.signature
        bound = signature.bind(args, kwargs)
        document = signature.encode(bound, self._gateway.payload_limit)
        if self._is_plain:  # fast path, with the same outcome as below
            return NewJob(
                id=new_job_id(),
                kind=kind.name,
                args=document,
                queue=kind.queue,
                priority=kind.priority,
                max_attempts=kind.attempts,
                crash_limit=kind.crash_limit,
            )
        if signature is kind.signature:  # else an argument is still missing
            for budget in self._estimates:
                budget.estimate_for(signature.with_defaults(bound))
        queue = options.queue or kind.queue
        self._gateway.check_queue(queue)
        unique = options.unique or kind.unique
        return NewJob(
            id=options.id or new_job_id(),
            kind=kind.name,
            args=document,
            queue=queue,
            priority=kind.priority if options.priority is None else options.priority,
            delay=options.delay,
            run_at=options.run_at,
            unique=None if unique is None else unique.key_for(kind.name, queue, signature.with_defaults(bound)),
            max_attempts=kind.attempts if options.retry is None else options.retry.most_attempts,
            crash_limit=options.crash_limit or kind.crash_limit,
            tags=options.tags,
            meta=options.meta,
            fair_key=None if kind.fair is None else kind.fair.key_for(signature.with_defaults(bound)),
            has_own_id=options.id is not None,
            settings=options.settings,
            ref=options.ref,
        )


class Job(Prepared[P, R]):
    """A declared job: call it like the function it wraps, or enqueue it."""

    def __init__(self, gateway: Gateway, kind: Kind) -> None:
        super().__init__(gateway, kind, _PLAIN)
        self.__name__ = kind.handler.__name__
        self.__qualname__ = kind.handler.__qualname__
        self.__module__ = kind.handler.__module__
        self.__doc__ = kind.handler.__doc__
        self.__wrapped__ = kind.handler

    def __repr__(self) -> str:
        return f"<job {self._kind.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function directly, without making a job: for tests and for composing handlers."""
        return self._kind.handler(*args, **kwargs)

    def using(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        delay: Duration | None = None,
        run_at: datetime | None = None,
        id: object = None,  # noqa: A002 - the word that callers write
        tags: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
        unique: Unique | None = None,
        connection: Any = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        crash_limit: int | None = None,
        ref: str | None = None,
    ) -> Prepared[P, R]:
        """Set options for the next enqueue.

        `retry`, `timeout` and `crash_limit` are stored with the job and override those of its kind, within the kind's
        `bounds`. `ref` is an external name for the job, such as "JB_abc123". Like an `id` it identifies one job:
        enqueueing it again returns the existing job, and using it for another kind is refused.

        `connection` stores the job in the caller's own transaction: the job exists once the caller commits, or not at
        all. It is an open connection of psycopg, asyncpg, sqlite3, aiosqlite or apsw, a connection or session of
        SQLAlchemy, or Django's connection, to the database that holds this app's jobs. perdure neither commits nor
        rolls back; if enqueue raises, the transaction continues as if enqueue had not been called. On a connection in
        autocommit mode the job is stored at once. The app and perdure must open an SQLite file through the same
        library: `sqlite:///file.db?driver=sqlite3` for all but apsw.
        """
        options = checked_options(
            queue=queue,
            priority=priority,
            delay=delay,
            run_at=run_at,
            id=id,
            tags=tags,
            meta=meta,
            unique=unique,
            connection=connection,
            retry=retry,
            timeout=timeout,
            crash_limit=crash_limit,
            ref=ref,
            parameters=self._kind.signature.names,
        )
        bounds, name = self._kind.bounds, self._kind.name
        if options.retry is not None:
            bounds.check_retry(options.retry, name)
        if options.timeout is not None:
            bounds.check_timeout(options.timeout, name)
        if options.crash_limit is not None:
            bounds.check_crash_limit(options.crash_limit, name)
        return cast("Prepared[P, R]", Prepared(self._gateway, self._kind, options))
