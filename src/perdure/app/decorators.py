"""What the decorators build from functions: the kinds of an app, checked when declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from perdure.domain.duration import Duration
from perdure.domain.jobs.job import NewJob
from perdure.enqueue.job import Job
from perdure.errors import PayloadError, SettingsError
from perdure.hooks.hooks import Hooks
from perdure.kinds.kind import Kind, Mode, is_async
from perdure.kinds.options import checked_count, checked_limit, checked_name, checked_priority, checked_unique
from perdure.kinds.signature import Signature
from perdure.policy.bounds import NO_BOUNDS, Bounds, checked_bounds
from perdure.policy.keys.fairness import FairBy, FairShare
from perdure.policy.keys.uniqueness import Unique
from perdure.policy.limits.declared_gates import check_gates
from perdure.policy.limits.gates import Breaker, Gate
from perdure.policy.retries.retry import RetrySource, checked_retry
from perdure.policy.retries.triage import Triage
from perdure.worker.attempt.context.context import Context
from perdure.worker.attempt.context.sync_context import SyncContext

P = ParamSpec("P")
R = TypeVar("R")


class JobDecorator(Protocol):
    """The result of `@app.job(...)`: turns a handler into a Job with the handler's own parameters and result."""

    @overload
    def __call__(self, handler: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]]) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, Coroutine[Any, Any, R]]) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[SyncContext, P], R]) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, R]) -> Job[P, R]: ...


class CronDecorator(Protocol):
    """The result of `@app.cron(...)`: turns a handler into a Job, or accepts one that was declared before."""

    @overload
    def __call__(self, handler: Job[P, R]) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]]) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, Coroutine[Any, Any, R]]) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[SyncContext, P], R]) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, R]) -> Job[P, R]: ...


def declared_kind(
    handler: Callable[..., Any],
    *,
    name: str | None,
    queue: str,
    priority: int,
    retry: RetrySource,
    triage: Triage | None,
    unique: Unique | None,
    timeout: Duration | None,
    isolate: bool,
    memory: int | None,
    crashes: int,
    gates: Iterable[Gate] | Gate,
    breaker: Breaker | None,
    fair: FairBy | None,
    bounds: Bounds | None,
    hooks: Hooks,
) -> Kind:
    """A kind of job as declared; invalid options are refused by name."""
    _refuse_method(handler)
    name = checked_name("name", name or handler.__name__)
    if memory is not None and not isolate:
        raise SettingsError(f"memory of job {name}", "can only be limited with isolate=True")
    if triage is not None and (not callable(triage) or isinstance(triage, type)):
        raise SettingsError(f"triage of job {name}", f"must be a function of the exception, got {triage!r}")
    signature = Signature(handler, Context)
    passed = tuple(gates) if isinstance(gates, Iterable) else (gates,)
    check_gates(passed, breaker, signature.names)
    share = None if fair is None else FairShare(fair)
    if share is not None:
        share.check(signature.names)
    limit = None if timeout is None else checked_limit(f"timeout of job {name}", timeout)
    bounds = NO_BOUNDS if bounds is None else checked_bounds(f"bounds of job {name}", bounds)
    bounds.check_timeout(limit, name)
    bounds.check_crash_limit(checked_count(f"crashes of job {name}", crashes), name)
    return Kind(
        name=name,
        handler=handler,
        signature=signature,
        mode=Mode.PROCESS if isolate else Mode.TASK if is_async(handler) else Mode.THREAD,
        retry=bounds.bounded(checked_retry(f"retry of job {name}", retry), name),
        triage=triage,
        queue=checked_name("queue", queue),
        priority=checked_priority(priority),
        unique=checked_unique(unique, signature.names),
        timeout=limit,
        memory=None if memory is None else checked_count(f"memory of job {name}", memory),
        crash_limit=crashes,
        gates=passed,
        breaker=breaker,
        fair=share,
        bounds=bounds,
        hooks=hooks,
    )


def _refuse_method(handler: Callable[..., Any]) -> None:
    """Refuse a method of a class: a worker has no object to pass as its first argument."""
    name = getattr(handler, "__qualname__", type(handler).__qualname__)
    is_in_class = inspect.isfunction(handler) and name.rpartition(".")[0].rpartition(".")[2] not in {"", "<locals>"}
    first = next(iter(inspect.signature(handler).parameters), None) if is_in_class else None
    if first in {"self", "cls"}:
        raise SettingsError(
            f"job {name}",
            "is a method, and a worker has no object to call it on: make it a function, or declare a bound method",
        )


def job_without_arguments(job: Job[Any, Any]) -> NewJob:
    """The job that a declared schedule enqueues; refuses a handler that needs arguments."""
    try:
        return job.call().job
    except PayloadError as error:
        raise SettingsError(
            f"cron of job {job.kind.name}",
            f"needs a handler without arguments ({error}); give them with app.schedule(...)",
        ) from error
